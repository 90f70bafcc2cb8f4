# tenon_find_newest_torch(<variable>) sets <variable> to the folder TENON_NEWEST_TORCH, which
# benchmarks/peers/newest_torch fills, or to "" if the setting is empty. If the folder was removed, prints a message and
# the build continues.
function(tenon_find_newest_torch variable)
  set(${variable} "" PARENT_SCOPE)
  if(NOT TENON_NEWEST_TORCH)
    return()
  endif()
  foreach(library libtorch_cpu.so libc10.so)
    if(NOT EXISTS "${TENON_NEWEST_TORCH}/lib/${library}")
      tenon_leave_out("rows against the newest PyTorch"
        "TENON_NEWEST_TORCH is ${TENON_NEWEST_TORCH}, where lib/${library} is missing; run benchmarks/peers/newest_torch again, or configure with -UTENON_NEWEST_TORCH")
      return()
    endif()
  endforeach()
  set(${variable} "${TENON_NEWEST_TORCH}" PARENT_SCOPE)
endfunction()
