// CudnnProblem: a convolution, a transposed one or the gradient of a filter as cuDNN sees it. A convolution Y of images
// X with a filter W, its gradient with respect to X (a transposed convolution) and to W are one problem with another
// result. Pure.
#pragma once

#include <array>

#include "providers/cuda/convolution/cudnn_graph.h"
#include "sdk/provider/implementation.h"

namespace tenon::provider::cuda {

constexpr int32_t most_spatial = 3;

// The three operands by number, and which of them is the result.
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

// Why cuDNN cannot be asked for `desc`.
Refusal why_no_problem(const ep_primitive_desc& desc);
// Why cuDNN cannot be given operand `index`.
Refusal why_no_operand(const ep_primitive_desc& desc, int32_t index);

int64_t elements_of(const ep_operand_desc& operand);
// True if `operand` lies dense, row-major or with axis 1 innermost. Axes of length 1 lie anywhere.
bool lies(const ep_operand_desc& operand, bool channels_last);
// The order of axes in which the operands lie, the source first of all.
bool prefers_channels_last(const ep_primitive_desc& desc);
// The window along at least two axes, since cuDNN has no fewer.
CudnnWindow window_of(const CudnnProblem& problem);

}  // namespace tenon::provider::cuda
