// Tensors of indices, and what x.index({...}) and index_put have in common. There several index tensors broadcast;
// their axes stand where the first of them stood, or in front if other axes lie between them. A mask stands for the
// positions of its true elements.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace tenon::functors {

// `tensor`, integers of any dtype, as positions: i32 or i64. What i64 does not hold becomes 2^62 - 1, which is out of
// every range. All ops that take indices convert them here.
Tensor as_index(std::string_view op, std::string_view name, const Tensor& tensor);

// Like as_index, for ops that do not count from the end: the sign bit is cleared, so that a negative position is out of
// every range. The fault of the kernel names the position as it was given (vm::fault_status).
Tensor as_index_from_start(std::string_view op, std::string_view name, const Tensor& tensor);

#pragma GCC visibility push(default)  // exported by libtenon.so, for gradients and the importer of models
// gather and scatter with positions that are i32 or i64 and may count from the end. `input` has a rank of at least 1.
Tensor gather_at(const Tensor& input, int32_t axis, const Tensor& index);
// `mode` is EP_GATHER_*, `how` EP_SCATTER_*.
Tensor scatter_at(std::string_view op, int32_t mode, int32_t how, const Tensor& input, int32_t axis,
                  const Tensor& index, const Tensor& src);
#pragma GCC visibility pop

struct IndexTensor {
  int32_t axis;   // the first one that it indexes
  Tensor tensor;  // integers but u8, or bool for as many axes as it has
};

// A tensor and what indexes some of its axes.
struct Indexed {
  std::string_view op;  // what errors call it
  Tensor view;
  std::vector<IndexTensor> tensors;  // axes rise
  bool adjacent = true;              // nothing stands between the tensors
};

// How many axes `tensor` indexes.
int32_t axes_of(const Tensor& tensor);

// Adds `tensor` from `axis` of the view on, and gives the axis after it. Refuses a mask of another shape than these
// axes and a tensor of floats.
int32_t add_index(const Tensor& tensor, int32_t axis, Indexed* indexed);

// The elements at the positions. A mask is read if the number of its true elements is needed.
Tensor gathered(const Indexed& indexed);

// The view with `values`, which broadcast, at the positions, or added there.
Tensor written(const Indexed& indexed, const Tensor& values, bool accumulate);

}  // namespace tenon::functors
