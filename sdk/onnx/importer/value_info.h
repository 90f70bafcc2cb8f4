// What a ValueInfoProto says of a value.
#pragma once

#include <string>

#include "onnx_messages.h"
#include "sdk/onnx/onnx.h"

namespace tenon::onnx {

// Fills `info`. Returns a sentence if the value is none that Tenon can hold, else nothing. `what`: "input". Throws
// invalid_argument for a negative dim.
std::string read_value_info(const onnx_proto::ValueInfoProto& value, const char* what, ValueInfo* info);

}  // namespace tenon::onnx
