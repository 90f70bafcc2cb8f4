// Reads the versions of format and operators that a file requires, and its metadata.
#pragma once

#include <string>
#include <vector>

#include "onnx_messages.h"
#include "sdk/onnx/importer/scope.h"
#include "sdk/onnx/onnx.h"

namespace tenon::onnx {

Opsets read_opsets(const std::vector<onnx_proto::OperatorSetIdProto>& imports);

// Fills `info` and returns the versions of operators. An unknown version adds a line to `refusals`. Errors:
// invalid_argument if the model does not state its versions.
Opsets read_versions(const onnx_proto::ModelProto& model, ModelInfo* info, std::vector<std::string>* refusals);

}  // namespace tenon::onnx
