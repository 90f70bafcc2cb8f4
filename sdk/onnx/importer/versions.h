// Which versions of the format and of operators a file wants, and what it says of itself.
#pragma once

#include <string>
#include <vector>

#include "onnx_messages.h"
#include "sdk/onnx/importer/scope.h"
#include "sdk/onnx/onnx.h"

namespace tenon::onnx {

Opsets read_opsets(const std::vector<onnx_proto::OperatorSetIdProto>& imports);

// Fills `info` and gives the versions of operators. A version that is not known adds a line to `refusals`. Errors:
// invalid_argument, for a model that does not say what it wants.
Opsets read_versions(const onnx_proto::ModelProto& model, ModelInfo* info, std::vector<std::string>* refusals);

}  // namespace tenon::onnx
