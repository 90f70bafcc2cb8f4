# The ops of tenon_core: the sources that core/ops/generate.py makes from ops.yaml.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# tenon_generate_ops(<out-variable> YAML <file> FOLDER <folder> [METHODS <folder>] NAMESPACE <namespace> INCLUDE <path>)
#
# Generates the API and tables of an op list into <folder>, and methods.inc into the folder METHODS. Sets <out-variable>
# to the generated sources.  Fails at configure time if the system's Python lacks a package.
function(tenon_generate_ops out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "YAML;FOLDER;METHODS;NAMESPACE;INCLUDE" "")
  set(generator "${PROJECT_SOURCE_DIR}/core/ops/generate.py")
  file(GLOB templates CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/core/ops/templates/*.j2"
       "${PROJECT_SOURCE_DIR}/core/autograd/templates/*.j2" "${PROJECT_SOURCE_DIR}/core/global/templates/*.j2")
  file(GLOB_RECURSE modules CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/core/ops/generator/*.py")
  foreach(template IN LISTS templates)
    cmake_path(GET template FILENAME name)
    string(REGEX REPLACE "\\.j2$" "" name "${name}")
    if(name STREQUAL "methods.inc")
      continue()
    endif()
    list(APPEND made "${arg_FOLDER}/${name}")
  endforeach()
  if(arg_METHODS)
    list(APPEND made "${arg_METHODS}/methods.inc")
    set(methods --methods "${arg_METHODS}")
  endif()
  set(abi "${tenon_SOURCE_DIR}/ep_api")
  add_custom_command(
    OUTPUT ${made}
    COMMAND "${Python3_EXECUTABLE}" "${generator}" "${arg_YAML}" --out "${arg_FOLDER}" ${methods} --namespace "${arg_NAMESPACE}"
            --include "${arg_INCLUDE}" --ep-api "${abi}"
    COMMAND "${CMAKE_COMMAND}" -E touch ${made}
    DEPENDS "${generator}" ${modules} "${arg_YAML}" ${templates} "${abi}/ep_api.h" "${abi}/dtypes.def" "${abi}/primitives.def"
            "${abi}/scalar_ops.def"
    COMMENT "Generating ops from ${arg_YAML}"
    VERBATIM)
  set(${out} ${made} PARENT_SCOPE)
endfunction()

execute_process(COMMAND "${Python3_EXECUTABLE}" -c "import yaml, jinja2" RESULT_VARIABLE missing ERROR_VARIABLE why)
if(missing)
  message(FATAL_ERROR "${Python3_EXECUTABLE} cannot import PyYAML and Jinja2, which generate the ops: ${why}")
endif()

set(TENON_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")
tenon_generate_ops(generated
  YAML "${PROJECT_SOURCE_DIR}/core/ops/ops.yaml"
  FOLDER "${TENON_GENERATED_DIR}/core/ops"
  METHODS "${TENON_GENERATED_DIR}/core/tensor"
  NAMESPACE tenon
  INCLUDE core/ops)
target_include_directories(tenon_core PUBLIC "${TENON_GENERATED_DIR}")
target_sources(tenon_core PRIVATE ${generated})
# The reference page; the build of tenon_core makes it too.
add_custom_target(tenon_ops_page DEPENDS "${TENON_GENERATED_DIR}/core/ops/ops.md")
add_dependencies(tenon_core tenon_ops_page)
install(FILES "${TENON_GENERATED_DIR}/core/ops/ops.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
