// Strided: expresses a tensor of any strides as views of a row-major tensor that holds its storage. Internal to
// core/compile.
#pragma once

#include "core/tensor/tensor.h"

namespace tenon::compilation {

// True if a chain of views of `root` gives the same elements as `tensor`. `root` is contiguous and covers the storage
// of `tensor`.
bool is_view_of(const Tensor& root, const Tensor& tensor);

// Applies the views that lead from `root` to `tensor` to `base`, which has the elements of `root`. Calls ops.
Tensor view_as(const Tensor& base, const Tensor& root, const Tensor& tensor);

}  // namespace tenon::compilation
