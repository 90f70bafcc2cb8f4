# Makes the models in FOLDER with PYTHON, then runs them with TOOL on DEVICE.  Called by ctest with -P.
file(REMOVE_RECURSE "${FOLDER}")
execute_process(COMMAND "${PYTHON}" -B "${CMAKE_CURRENT_LIST_DIR}/make_models.py" "${FOLDER}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${TOOL}" onnx-test --device "${DEVICE}" "${FOLDER}"
  RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
message("${text}")
if(NOT status EQUAL 0 OR NOT text MATCHES "5 passed, 0 failed, 0 skipped")
  message(FATAL_ERROR "onnx-test ended with ${status}; expected '5 passed, 0 failed, 0 skipped'.")
endif()
