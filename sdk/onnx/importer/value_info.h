// Reads a ValueInfoProto.
#pragma once

#include <string>

#include "onnx_messages.h"
#include "sdk/onnx/onnx.h"

namespace tenon::onnx {

// Fills `info`. Returns a sentence if Tenon cannot hold the value, else nothing. `what` is for messages: "input".
// Throws invalid_argument for a negative dim.
std::string read_value_info(const onnx_proto::ValueInfoProto& value, const char* what, ValueInfo* info);

}  // namespace tenon::onnx
