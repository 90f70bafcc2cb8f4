// What the eager interpreter needs of itself. Internal.
#pragma once

#include "core/tensor/tensor.h"

namespace tenon {

// dst[...] = cast(src[...]), same dims, any strides, on one device. Throws.
void copy_elements(Tensor& dst, const Tensor& src);

}  // namespace tenon
