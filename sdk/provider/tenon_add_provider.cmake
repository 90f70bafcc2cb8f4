# tenon_add_provider(<name> SOURCES <file>... [LIBS <target>...] [QUERY <symbol>] [SERVES <symbol>...]
#                    [OUTPUT_DIRECTORY <dir>] [NO_INSTALL])
#
# Builds the plug-in libtenon_<name>.so from the sources, as CMake target tenon_<name>. The plug-in exports only its
# query, and every symbol that it needs comes from itself or its libraries (-z defs). The installation puts
# it into <libdir>/tenon, or for a Python package (scikit-build-core) into the package's folder. The Tenon tree builds
# it into <build>/lib/tenon, next to libtenon.so; other trees build it where CMake puts libraries.
#   LIBS              the vendor library and everything else that the plug-in links; never a library of the host
#   QUERY             the query; default ep_plugin_query_v0. For a plug-in that moves data between processes:
#                     ep_collectives_query_v0
#   SERVES            other symbols to export, because a library that the plug-in links looks them up in it (N04)
#   OUTPUT_DIRECTORY  the folder to build into (for test plug-ins that the loader must not find by default)
#   NO_INSTALL        leaves the plug-in out of the installation
include_guard(GLOBAL)

function(tenon_add_provider name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_INSTALL" "OUTPUT_DIRECTORY;QUERY" "SOURCES;LIBS;SERVES")
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
  if(NOT arg_QUERY)
    set(arg_QUERY ep_plugin_query_v0)
  endif()
  list(JOIN arg_SERVES "; " served)
  if(served)
    string(APPEND served "; ")
  endif()
  file(CONFIGURE OUTPUT "${exports}" CONTENT "{ global: ${arg_QUERY}; ${served}local: *; };\n")
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
    target_compile_features(${target} PRIVATE cxx_std_20)  # sdk/provider needs C++20
  endif()
  target_link_options(${target} PRIVATE "LINKER:--version-script=${exports}")
  # clang expects the program to provide the sanitizers' run-time symbols of a shared library.
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
    set(folder "${CMAKE_INSTALL_LIBDIR}/tenon")
    if(DEFINED SKBUILD AND NOT in_tree)
      set(folder .)
    endif()
    install(TARGETS ${target} LIBRARY DESTINATION "${folder}")
  endif()
endfunction()
