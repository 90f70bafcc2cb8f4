# Copies the shared libraries that a wheel needs from the system into its folder `lib`, under the names by which they are
# looked for. The libraries of the package have that folder in their RPATH, which holds for the libraries of libraries too.
# Run when the wheel is installed, with TENON_BUNDLE_FOR (libraries of the package) and TENON_BUNDLE_INTO (a folder).

# What every Linux with glibc and a C++ runtime has, and what the package brings itself.
set(not_bundled "^ld-linux" "^libc\\.so" "^libm\\.so" "^libdl\\.so" "^librt\\.so" "^libpthread\\.so" "^libstdc\\+\\+\\.so"
    "^libgcc_s\\.so" "^libtenon")
file(GET_RUNTIME_DEPENDENCIES
  LIBRARIES ${TENON_BUNDLE_FOR}
  PRE_EXCLUDE_REGEXES ${not_bundled}
  RESOLVED_DEPENDENCIES_VAR found
  UNRESOLVED_DEPENDENCIES_VAR missing
  CONFLICTING_DEPENDENCIES_PREFIX several)
foreach(name IN LISTS several_FILENAMES)
  list(GET several_${name} 0 first)
  list(APPEND found "${first}")
endforeach()
if(missing)
  message(FATAL_ERROR "a wheel needs the libraries ${missing}, which were not found")
endif()
find_program(dpkg_query dpkg-query)
foreach(library IN LISTS found)
  cmake_path(GET library FILENAME name)
  message(STATUS "bundled: ${library}")
  file(COPY_FILE "${library}" "${TENON_BUNDLE_INTO}/${name}")
  # The licence of each goes with it, where the system says which that is. Packages name files with or without /usr.
  file(REAL_PATH "${library}" real)
  string(REGEX REPLACE "^/usr/" "/" short "${real}")
  set(owner "")
  if(dpkg_query)
    execute_process(COMMAND "${dpkg_query}" -S "${real}" "${short}" OUTPUT_VARIABLE owner ERROR_QUIET)
  endif()
  string(REGEX REPLACE "[:,].*" "" owner "${owner}")
  if(owner AND EXISTS "/usr/share/doc/${owner}/copyright")
    file(COPY_FILE "/usr/share/doc/${owner}/copyright" "${TENON_BUNDLE_INTO}/${owner}.copyright")
  endif()
endforeach()
