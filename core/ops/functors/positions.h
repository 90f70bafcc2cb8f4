// Tensors of indices, and the shared code of x.index({...}) and index_put. Several index tensors broadcast. Their axes
// are placed at the first index tensor's axis, or in front if other axes lie between them. A mask means the positions
// of its true elements.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace tenon::functors {

// `tensor`, integers of any dtype, as positions in i32 or i64. A number beyond i64 becomes 2^62 - 1, which is always
// out of range. All ops that take indices convert them here.
Tensor as_index(std::string_view op, std::string_view name, const Tensor& tensor);

// Like as_index, for ops that do not accept negative indices: the sign bit is cleared, so that a negative position is
// always out of range. The fault of the kernel shows the position as it was given (vm::fault_status).
Tensor as_index_from_start(std::string_view op, std::string_view name, const Tensor& tensor);

#pragma GCC visibility push(default)  // exported by libtenon.so, for gradients and the importer of models
// gather and scatter with positions in i32 or i64, which may be negative. `input` has a rank of at least 1.
Tensor gather_at(const Tensor& input, int32_t axis, const Tensor& index);
// `mode` is EP_GATHER_*, `how` EP_SCATTER_*.
Tensor scatter_at(std::string_view op, int32_t mode, int32_t how, const Tensor& input, int32_t axis,
                  const Tensor& index, const Tensor& src);
#pragma GCC visibility pop

struct IndexTensor {
  int32_t axis;   // the first axis that it indexes
  Tensor tensor;  // integers except u8, or bool for as many axes as it has
};

// A tensor and the index tensors for some of its axes.
struct Indexed {
  std::string_view op;  // the name in errors
  Tensor view;
  std::vector<IndexTensor> tensors;  // by ascending axis
  bool adjacent = true;              // true if no other axis lies between the index tensors
};

// The number of axes that `tensor` indexes.
int32_t axes_of(const Tensor& tensor);

// Adds `tensor` as the index of the view's axes from `axis` on, and returns the next axis. Throws for a mask whose
// shape differs from these axes, and for a floating tensor.
int32_t add_index(const Tensor& tensor, int32_t axis, Indexed* indexed);

// The elements at the positions. A mask is read if the number of its true elements is needed.
Tensor gathered(const Indexed& indexed);

// The view with `values`, which broadcast, stored at the positions, or added there.
Tensor written(const Indexed& indexed, const Tensor& values, bool accumulate);

}  // namespace tenon::functors
