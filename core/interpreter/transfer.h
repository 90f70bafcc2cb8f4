// Copies tensors between devices, and between a strided view and dense memory. Internal.
//
// The VM copies raw bytes. A strided tensor is copied as the span of storage that it covers, so a device without a
// single primitive can be read and written in any layout.
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace tenon {

// `tensor` on `target`, with the same dims. A strided tensor keeps its strides, and the bytes between its elements are
// copied too. But if its span is large and consists mostly of such bytes, and its device can copy natively, it arrives
// row-major. Adds the bytes moved to `bytes_moved`, which may be null.
Tensor transfer(const Tensor& tensor, DeviceState* target, uint64_t* bytes_moved = nullptr);

// A row-major copy of `tensor` on the host device.
Tensor dense_copy(const Tensor& tensor);

// Overwrites the elements of `view` (any device, any strides) with the elements of `source`, a tensor of the same dims
// and dtype on the host device. Returns the bytes moved between devices.
uint64_t store_into_view(const Tensor& view, const Tensor& source);

}  // namespace tenon
