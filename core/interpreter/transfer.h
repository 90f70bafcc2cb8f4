// Moving tensors between devices, and between a strided view and dense memory. Internal.
//
// Raw bytes move by the VM's copies; what is strided moves as the span of storage it covers, so that a device without a
// single primitive can still be read and written in any layout.
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace tenon {

// `tensor` on `target`, with the same dims. A strided tensor keeps its strides and brings the bytes between its
// elements along, unless these are most of many and its device can copy it natively: then it arrives row-major. Returns
// the bytes moved through `bytes_moved` (may be null).
Tensor transfer(const Tensor& tensor, DeviceState* target, uint64_t* bytes_moved = nullptr);

// A row-major copy of `tensor` on the host device.
Tensor dense_copy(const Tensor& tensor);

// Overwrites the elements of `view` (any device, any strides) with those of `source`, a tensor of the same dims and
// dtype on the host device. Returns the bytes moved between devices.
uint64_t store_into_view(const Tensor& view, const Tensor& source);

}  // namespace tenon
