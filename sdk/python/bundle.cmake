# Copies the system's shared libraries that a wheel needs into its folder `lib`, under the names by which the dynamic
# linker looks for them. The libraries of the package have that folder in their RPATH, which indirect dependencies
# search too. Runs when the wheel is installed, with TENON_BUNDLE_FOR (libraries of the package) and TENON_BUNDLE_INTO
# (a folder).

# Libraries that every Linux with glibc and a C++ runtime has, and libraries that the package itself installs.
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
  # Copies each library's licence too, where the system knows its package. Packages name files with or without /usr.
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
