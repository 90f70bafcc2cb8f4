// Making tensors inside the library: with data, as views, and without data (recorded or probed). Internal.
#pragma once

#include <functional>
#include <string_view>

#include "core/tensor/tensor.h"

namespace tenon {

// The number of elements of a tensor of `dims`.
// Errors: invalid_argument (a negative dim, no dtype of that number, more than 2^63 - 1 bytes).
Result<int64_t> checked_elements(const Dims& dims, DType dtype);

// A record of a tensor, row-major and without storage; `elements` is what `dims` hold.
TensorImpl* make_impl(DeviceState* device, DType dtype, const Dims& dims, int64_t elements);

// A contiguous uninitialised tensor.
// Errors: invalid_argument (negative dim, overflow), out_of_device_memory.
Result<Tensor> make_tensor(DeviceState* device, DType dtype, const Dims& dims);
// The same with its elements in another dense order.
Result<Tensor> make_tensor(DeviceState* device, DType dtype, const Dims& dims, const Dims& strides);

// As make_tensor, with the shape of `shaped`, a contiguous tensor, on its device; `dtype` is of at least 8 bits and no
// larger than 8 bytes, so that nothing needs checking again.
Result<Tensor> make_tensor_like(const TensorImpl& shaped, DType dtype);

// A tensor over `base`'s storage; `offset` in elements of `dtype` from the storage's start.
Tensor make_view(const Tensor& base, DType dtype, const Dims& dims, const Dims& strides, int64_t offset);

// A tensor over `base`'s storage whose dtype, dims, strides and offset are for the caller to write, and then to settle.
Tensor begin_view(const TensorImpl& base);
// Works out what follows from dims and strides.
void settle_layout(TensorImpl* impl);

// Elements from the first to one past the last that a tensor of at least one element can reach in its storage.
int64_t span_elements(const Tensor& tensor);

// A tensor that has a shape and a device but no data.
Tensor make_meta(DeviceState* device, const TensorMeta& meta);
// Throws what is said where such a tensor is to be read; `what` opens the text: "copy_to_host: the tensor".
[[noreturn]] void refuse_recorded(std::string_view what, const Tensor& tensor);

// Tensor::borrow for `caller`, whose name opens the texts of its errors.
Tensor borrow_memory(std::string_view caller, void* data, const Dims& dims, const Dims& strides, DType dtype,
                     std::function<void()> deleter);

// A storage over `bytes` of host memory the caller owns, on the host device.
Result<Storage*> borrow_host_memory(DeviceState* host, void* data, uint64_t bytes, std::function<void()> deleter);

}  // namespace tenon
