// CudnnProblem: a convolution, a transposed convolution or a filter gradient as cuDNN sees it. A convolution Y of
// images X with a filter W, its gradient with respect to X (a transposed convolution) and with respect to W are the
// same problem with another result. Pure.
#pragma once

#include <array>

#include "providers/cuda/convolution/cudnn_graph.h"
#include "sdk/provider/implementation.h"

namespace tenon::provider::cuda {

constexpr int32_t most_spatial = 3;

// The operand numbers of X, W and Y, and which of them is the result.
struct CudnnProblem {
  ConvolutionResult result;
  int32_t x, w, y;
  int32_t spatial;
  int64_t groups;
  std::array<int64_t, most_spatial> stride, dilation, low, high;

  std::array<int32_t, 3> operands() const { return {x, w, y}; }
  int32_t src() const { return result == ConvolutionResult::X ? y : x; }
};

CudnnProblem problem_of(const ep_primitive_desc& desc);

// Why cuDNN cannot compute `desc`.
Refusal why_no_problem(const ep_primitive_desc& desc);
// Why cuDNN cannot take operand `index`.
Refusal why_no_operand(const ep_primitive_desc& desc, int32_t index);

int64_t elements_of(const ep_operand_desc& operand);
// True if `operand` is dense, row-major or with axis 1 innermost. The strides of axes of length 1 do not matter.
bool lies(const ep_operand_desc& operand, bool channels_last);
// True if the operands prefer channels-last: the first one with a clear order decides, and the source comes first.
bool prefers_channels_last(const ep_primitive_desc& desc);
// The window along at least two axes, the minimum of cuDNN.
CudnnWindow window_of(const CudnnProblem& problem);

}  // namespace tenon::provider::cuda
