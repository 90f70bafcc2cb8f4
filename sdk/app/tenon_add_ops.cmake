# tenon_add_ops(<target> <ops.yaml>)
#
# Adds the ops of a list to <target>: the generator makes the C++ API and the tables from the list, and the target
# compiles them with your own code. The list begins with `library: mypkg`; its ops are named mypkg::name, and the
# generated header is <mypkg/ops.h>. If the target is a library, it becomes libtenon_ops_mypkg.so, which tenon::load_ops
# and TENON_OPS_PATH load; if it is a program, it has the ops built in. A target can have the ops of only one list.
function(tenon_add_ops target yaml)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  execute_process(COMMAND "${Python3_EXECUTABLE}" -c "import yaml, jinja2" RESULT_VARIABLE missing ERROR_VARIABLE why)
  if(missing)
    message(FATAL_ERROR "tenon_add_ops: ${Python3_EXECUTABLE} cannot import PyYAML and Jinja2, which generate the ops: ${why}")
  endif()
  cmake_path(ABSOLUTE_PATH yaml)
  file(STRINGS "${yaml}" line REGEX "^library: *[a-z][a-z0-9_]* *(#.*)?$")
  if(NOT line MATCHES "^library: *([a-z0-9_]+)")
    message(FATAL_ERROR "tenon_add_ops: ${yaml} has no line `library: name`, which names the ops in front: name::op.")
  endif()
  set(library "${CMAKE_MATCH_1}")
  set(include "${CMAKE_CURRENT_BINARY_DIR}/${target}.ops")
  set(folder "${include}/${library}")
  set(generator "${tenon_GENERATOR_DIR}/core/ops")
  file(GLOB templates "${generator}/templates/*.j2" "${generator}/templates/library/*.j2"
       "${tenon_GENERATOR_DIR}/core/autograd/templates/*.j2")
  foreach(template IN LISTS templates)
    cmake_path(GET template FILENAME name)
    string(REGEX REPLACE "\\.j2$" "" name "${name}")
    if(NOT name MATCHES "^(methods.inc|operators.h|ops.cpp)$")
      list(APPEND made "${folder}/${name}")
    endif()
  endforeach()
  file(GLOB_RECURSE modules "${generator}/*.py")
  add_custom_command(
    OUTPUT ${made}
    COMMAND "${Python3_EXECUTABLE}" "${generator}/generate.py" "${yaml}" --out "${folder}" --version "${tenon_PACKAGE_VERSION}"
    COMMAND "${CMAKE_COMMAND}" -E touch ${made}
    DEPENDS "${yaml}" ${modules} ${templates}
    COMMENT "Generating the ops of ${library}"
    VERBATIM)
  target_sources(${target} PRIVATE ${made})
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${include}>")
  target_link_libraries(${target} PUBLIC tenon::tenon)
  get_target_property(type ${target} TYPE)
  if(type MATCHES "^(SHARED|MODULE)_LIBRARY$")
    set_target_properties(${target} PROPERTIES PREFIX lib OUTPUT_NAME "tenon_ops_${library}" SUFFIX .so)
  endif()
endfunction()
