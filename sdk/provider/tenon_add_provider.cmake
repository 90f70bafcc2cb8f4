# tenon_add_provider(<name> SOURCES <file>... [LIBS <target>...] [OUTPUT_DIRECTORY <dir>] [NO_INSTALL])
#
# Makes libtenon_<name>.so, a plug-in, from the given sources; the CMake target is called tenon_<name>.
# It exports ep_plugin_query_v0 and nothing else, may leave no symbol to be found in the host (-z defs), and is
# installed to <libdir>/tenon. Inside the Tenon tree it is built into <build>/lib/tenon, beside libtenon.so;
# outside it goes where CMake puts libraries, and `cmake --install` or a copy brings it to the plug-in folder.
#   LIBS              the vendor library and whatever else the plug-in links; never a library of the host
#   OUTPUT_DIRECTORY  build it into this folder instead (test plug-ins that no one must find by default)
#   NO_INSTALL        leave it out of the installation
include_guard(GLOBAL)

function(tenon_add_provider name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_INSTALL" "OUTPUT_DIRECTORY" "SOURCES;LIBS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tenon_add_provider(${name}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "tenon_add_provider: the name '${name}' must be lower-case letters, digits and underscores.")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "tenon_add_provider(${name}): SOURCES is empty.")
  endif()

  set(target tenon_${name})
  add_library(${target} MODULE ${arg_SOURCES})
  set(exports "${CMAKE_CURRENT_BINARY_DIR}/${target}.map")
  file(CONFIGURE OUTPUT "${exports}" CONTENT "{ global: ep_plugin_query_v0; local: *; };\n")
  set_target_properties(${target} PROPERTIES
    PREFIX lib
    OUTPUT_NAME tenon_${name}
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    INSTALL_RPATH ""
    LINK_DEPENDS "${exports}")
  if(CMAKE_CXX_COMPILER_LOADED)
    target_compile_features(${target} PRIVATE cxx_std_20)  # what sdk/provider is written in
  endif()
  target_link_options(${target} PRIVATE "LINKER:--version-script=${exports}")
  # clang leaves the sanitizers' run-time symbols of a shared library to the program.
  if(NOT ("${TENON_SANITIZE}${CMAKE_C_FLAGS}${CMAKE_CXX_FLAGS}" MATCHES "address|thread|undefined" AND
          "${CMAKE_C_COMPILER_ID}${CMAKE_CXX_COMPILER_ID}" MATCHES "Clang"))
    target_link_options(${target} PRIVATE LINKER:-z,defs)
  endif()
  foreach(library tenon::provider tenon_sdk_provider tenon_ep_api)
    if(TARGET ${library})
      target_link_libraries(${target} PRIVATE ${library})
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE ${arg_LIBS})

  set(in_tree FALSE)
  if(TARGET tenon_warnings)
    set(in_tree TRUE)
    target_link_libraries(${target} PRIVATE tenon_warnings)
  endif()
  if(arg_OUTPUT_DIRECTORY)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${arg_OUTPUT_DIRECTORY}")
  elseif(in_tree)
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/tenon")
  endif()
  if(NOT arg_NO_INSTALL)
    include(GNUInstallDirs)
    install(TARGETS ${target} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/tenon")
  endif()
endfunction()
