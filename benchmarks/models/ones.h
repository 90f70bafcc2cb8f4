// The inputs of a measured model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/ops/ops.h"
#include "sdk/onnx/onnx.h"

namespace tenon::bench {

// Ones for all inputs of `model`; its open dims are taken from `open_dims`, in order. Throws std::out_of_range if there
// are too few.
inline onnx::Inputs ones(const onnx::Model& model, const std::vector<int64_t>& open_dims) {
  onnx::Inputs inputs;
  for (const onnx::ValueInfo& input : model.inputs()) {
    std::vector<int64_t> dims;
    size_t open = 0;
    for (const onnx::Dim& dim : input.dims) dims.push_back(dim.value >= 0 ? dim.value : open_dims.at(open++));
    inputs[input.name] = full(dims, Scalar(int64_t{1}), input.dtype);
  }
  return inputs;
}

}  // namespace tenon::bench
