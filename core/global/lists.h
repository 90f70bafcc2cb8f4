// Lists: elements that lie apart, as one list in which they travel. Internal.
#pragma once

#include <cstdint>

#include "core/global/layout.h"
#include "core/tensor/tensor.h"

namespace tenon::global {

// `data`, where `device` is.
Tensor where(const Tensor& data, Device device);
Tensor dense_on(const Tensor& tensor, Device device);
Tensor flat(const Tensor& tensor);
Tensor part_along(const Tensor& tensor, int64_t axis, Range range);
// On `device` one part behind the other.
Tensor packed(const TensorList& parts, Device device);
// What adds nothing to a sum: -0.0, since 0.0 makes 0.0 of -0.0.
Tensor nothing(const Dims& dims, DType dtype, Device device);

}  // namespace tenon::global
