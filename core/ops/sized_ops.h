// Ops whose number arguments may be expressions while a program is recorded; lists of sizes are passed to the ops of
// ops.h as a SizeList. If all are numbers, these are the ops of ops.h. Internal.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/symbolic/sym_dim.h"
#include "core/tensor/tensor.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon::sized {

// input[.., start:end:step, ..] along `dim`; bounds as in Python; `step` is at least 1.
Tensor slice(const Tensor& input, int64_t dim, SymDim start, SymDim end, int64_t step = 1);
// `length` elements from `start` on.
Tensor narrow(const Tensor& input, int64_t dim, SymDim start, SymDim length);
Tensor select(const Tensor& input, int64_t dim, SymDim index);
Tensor slice_scatter(const Tensor& input, const Tensor& src, int64_t dim, SymDim start, SymDim end, int64_t step);
Tensor select_scatter(const Tensor& input, const Tensor& src, int64_t dim, SymDim index);
TensorList split(const Tensor& input, std::span<const SymDim> sizes, int64_t dim);
// 0, 1, .. count - 1 in i64.
Tensor positions(SymDim count, Device device);
// input / divisor, computed in floats.
Tensor div(const Tensor& input, SymDim divisor);
// The elements of `input` repeated along each axis.
Tensor tile(const Tensor& input, std::span<const SymDim> repeats);

}  // namespace tenon::sized
#pragma GCC visibility pop
