// Lists: packs elements that are not contiguous into one list, to send them. Internal.
#pragma once

#include <cstdint>

#include "core/global/layout.h"
#include "core/tensor/tensor.h"

namespace tenon::global {

// `data` copied to `device`, if it is not there.
Tensor where(const Tensor& data, Device device);
Tensor dense_on(const Tensor& tensor, Device device);
Tensor flat(const Tensor& tensor);
Tensor part_along(const Tensor& tensor, int64_t axis, Range range);
// The parts one after another on `device`.
Tensor packed(const TensorList& parts, Device device);
// A tensor of -0.0, which adds nothing to a sum (0.0 would turn -0.0 into 0.0).
Tensor nothing(const Dims& dims, DType dtype, Device device);

}  // namespace tenon::global
