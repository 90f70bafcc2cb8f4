// Nodes whose inputs are strings.
#pragma once

#include "sdk/onnx/importer/parsed_model.h"

namespace tenon::onnx {

bool has_text(const Node& node, const std::vector<Value>& values);

// Applies a translator of numbers to a node that only moves or compares strings: each string becomes its position in
// the sorted list of all strings. Errors: those of the translator; UnknownValue if an input is not known.
ValueList move_text(const ParsedModel& parsed, const Node& node, const std::vector<Value>& values);

}  // namespace tenon::onnx
