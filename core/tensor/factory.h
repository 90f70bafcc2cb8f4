// Making tensors inside the library: with data, as views, and without data (recorded or probed). Internal.
#pragma once

#include <functional>

#include "core/tensor/tensor.h"

namespace tenon {

// A contiguous uninitialised tensor.
// Errors: invalid_argument (negative dim, overflow), out_of_device_memory.
Result<Tensor> make_tensor(DeviceState* device, DType dtype, const Dims& dims);

// A tensor over `base`'s storage; `offset` in elements of `dtype` from the storage's start.
Tensor make_view(const Tensor& base, DType dtype, const Dims& dims, const Dims& strides, int64_t offset);

// A tensor that has a shape and a device but no data.
Tensor make_meta(DeviceState* device, const TensorMeta& meta);

// A storage over `bytes` of host memory the caller owns, on the host device.
Result<Storage*> borrow_host_memory(DeviceState* host, void* data, uint64_t bytes, std::function<void()> deleter);

}  // namespace tenon
