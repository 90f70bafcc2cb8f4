// What the eager interpreter needs of itself: copies of elements on one device. Internal.
#pragma once

#include "core/ops/op_call.h"

namespace tenon {

// dst[...] = cast(src[...]), same dims, any strides, on one device. Throws.
void copy_elements(Tensor& dst, const Tensor& src);
// A row-major copy of `tensor` on its device. Throws.
Tensor dense_on_device(const Tensor& tensor);

}  // namespace tenon
