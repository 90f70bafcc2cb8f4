// Reads an AttributeProto into an Attribute. The reader handles graphs.
#pragma once

#include <string>

#include "onnx_messages.h"
#include "sdk/onnx/importer/parsed_model.h"

namespace tenon::onnx {

// Reads the attribute without its graph. Throws invalid_argument if its tag and its content differ. Adds a line to
// `refusals` if it holds a tensor of a type that Tenon does not have.
Attribute read_attribute(const Node& node, const onnx_proto::AttributeProto& from, TensorFiles& files,
                         std::vector<std::string>* refusals);

}  // namespace tenon::onnx
