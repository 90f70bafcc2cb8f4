// A function of the eager interpreter that other files of this room call. Internal.
#pragma once

#include "core/tensor/tensor.h"

namespace tenon {

// dst[...] = cast(src[...]), same dims, any strides, on one device. Throws.
void copy_elements(Tensor& dst, const Tensor& src);

}  // namespace tenon
