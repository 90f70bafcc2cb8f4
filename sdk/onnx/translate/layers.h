// Windows over spatial axes, for operators other than Conv too.
#pragma once

#include "sdk/onnx/importer/node_context.h"

namespace tenon::onnx {

// Limit of the lengths, strides, dilations and pads of windows: the product of any two of them fits 64 bits.
constexpr int64_t kTooLong = int64_t{1} << 31;
// True if each number is at least `least` and below kTooLong.
bool all_within(const std::vector<int64_t>& values, int64_t least);

// The product that a Gemm node describes, with its third input added.
Tensor gemm_of_node(NodeContext& n);

// The convolution of x [n, c, d1..] with the node's window.
Tensor conv_of_node(NodeContext& n, const Tensor& x, const Tensor& weight, const Tensor& bias);

// The means, and the maxima, over the node's windows in x [n, c, d1..].
Tensor average_pool_of_node(NodeContext& n, const Tensor& x);
Tensor max_pool_of_node(NodeContext& n, const Tensor& x);

// The Upsample of com.microsoft.nchwc, for the rows in microsoft_nchwc.cpp.
TensorList translate_blocked_upsample(NodeContext& n);

// Numbers that represent reals, with scale and zero point; undefined members are absent.
struct QuantizedTensor {
  Tensor value, scale, zero_point;
};
// Quantises x to u8 over its own range, extended to include 0.
QuantizedTensor quantized_over_range(const Tensor& x);

// The convolution of quantised tensors with the node's window, quantised like `result` or in `dtype`.
Tensor quantized_conv_of_node(NodeContext& n, const QuantizedTensor& x, const QuantizedTensor& weight,
                              const Tensor& bias, const QuantizedTensor& result, DType dtype);

}  // namespace tenon::onnx
