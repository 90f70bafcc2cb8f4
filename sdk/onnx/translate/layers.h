// The convolution that a node's window describes, for operators beside Conv.
#pragma once

#include "sdk/onnx/importer/node_context.h"

namespace tenon::onnx {

// Input 0 of the node is of the shape of `x`.
Tensor conv_of_node(NodeContext& n, const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace tenon::onnx
