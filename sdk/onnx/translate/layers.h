// Windows over spatial axes, for operators beside Conv.
#pragma once

#include "sdk/onnx/importer/node_context.h"

namespace tenon::onnx {

// Limit of the lengths, strides, dilations and pads of windows: the product of any two of them fits 64 bits.
constexpr int64_t kTooLong = int64_t{1} << 31;
// Whether each of the numbers is at least `least` and below kTooLong.
bool all_within(const std::vector<int64_t>& values, int64_t least);

// The convolution that the node's window describes. Input 0 of the node is of the shape of `x`.
Tensor conv_of_node(NodeContext& n, const Tensor& x, const Tensor& weight, const Tensor& bias);

// The means over the node's windows. Input 0 of the node is of the shape of `x`.
Tensor average_pool_of_node(NodeContext& n, const Tensor& x);

// Numbers that stand for reals, with scale and zero point; undefined: there is none.
struct QuantizedTensor {
  Tensor value, scale, zero_point;
};
// The same of quantised tensors, as numbers of `result`, or as `dtype`.
Tensor quantized_conv_of_node(NodeContext& n, const QuantizedTensor& x, const QuantizedTensor& weight,
                              const Tensor& bias, const QuantizedTensor& result, DType dtype);

}  // namespace tenon::onnx
