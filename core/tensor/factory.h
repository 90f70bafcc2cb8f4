// Makes tensors inside the library: with data, as views, and without data (for recorders and probes). Internal.
#pragma once

#include <functional>
#include <string_view>

#include "core/tensor/tensor.h"

namespace tenon {

// The number of elements of a tensor of `dims`. Errors: invalid_argument (a negative dim, an unknown dtype, more than
// 2^63 - 1 bytes).
Result<int64_t> checked_elements(const Dims& dims, DType dtype);

// A TensorImpl, row-major and without storage. `elements` is the number of elements of `dims`.
TensorImpl* make_impl(DeviceState* device, DType dtype, const Dims& dims, int64_t elements);

// A contiguous uninitialised tensor.
// Errors: invalid_argument (negative dim, overflow), out_of_device_memory.
Result<Tensor> make_tensor(DeviceState* device, DType dtype, const Dims& dims);
// Like make_tensor above, with the elements in another dense order.
Result<Tensor> make_tensor(DeviceState* device, DType dtype, const Dims& dims, const Dims& strides);

// Like make_tensor, with the shape and on the device of `shaped`, a contiguous tensor. `dtype` has 1 to 8 bytes per
// element, so no check is repeated. Throws out_of_device_memory.
Tensor make_tensor_like(const TensorImpl& shaped, DType dtype);

// A tensor with the metadata `meta`, whose sizes have been checked. Throws out_of_device_memory.
Tensor make_tensor_of(DeviceState* device, const TensorMeta& meta);

// A tensor over `base`'s storage; `offset` in elements of `dtype` from the storage's start.
Tensor make_view(const Tensor& base, DType dtype, const Dims& dims, const Dims& strides, int64_t offset);

// A tensor over the storage of `base`. The caller writes its dtype, dims, strides and offset and then calls
// settle_layout.
Tensor begin_view(const TensorImpl& base);
// Computes the fields that depend on dims and strides.
void settle_layout(TensorImpl* impl);

// The number of storage elements from the first element of `tensor` to its last, both included. The tensor is not
// empty.
int64_t span_elements(const Tensor& tensor);

// A tensor that has a shape and a device but no data.
Tensor make_meta(DeviceState* device, const TensorMeta& meta);
// Throws the error for a read of a tensor without data. `what` is the beginning of its text: "copy_to_host: the
// tensor".
[[noreturn]] void refuse_recorded(std::string_view what, const Tensor& tensor);

// Tensor::borrow with `caller` as the name at the beginning of its errors.
Tensor borrow_memory(std::string_view caller, void* data, const Dims& dims, const Dims& strides, DType dtype,
                     std::function<void()> deleter);

// The number of bytes from the first element to the end of the last element that these strides reach. `caller` is the
// beginning of the errors: invalid_argument (strides that are negative, of another rank, or not row-major for a packed
// dtype; a size beyond int64).
int64_t bytes_reached(std::string_view caller, const Dims& dims, const Dims& strides, DType dtype, int64_t elements);
// Frees a handle of borrowed or imported memory. No provider may be called after the end of the program. The handle is
// then left to the system, in a place where leak checkers find it.
void free_imported(DeviceState* device, ep_memory* memory);

// A storage of the host device over `bytes` of memory that the application owns.
Result<Storage*> borrow_host_memory(DeviceState* host, void* data, uint64_t bytes, std::function<void()> deleter);

}  // namespace tenon
