// Strided: a tensor of any strides as views of a row-major one that holds its storage. Internal to core/compile.
#pragma once

#include "core/tensor/tensor.h"

namespace tenon::lazy {

// Whether some chain of views of `root`, which is contiguous, sees what `tensor` does, which is over its storage.
bool is_view_of(const Tensor& root, const Tensor& tensor);

// The view of `base` that sees what `tensor` sees of `root`; `base` has the elements of `root`. Calls ops.
Tensor view_as(const Tensor& base, const Tensor& root, const Tensor& tensor);

}  // namespace tenon::lazy
