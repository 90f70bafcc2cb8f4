// Unread tensors: their elements stay elsewhere, such as in a file, until they are needed. For importers.
//
// A weight that a program packs (core/interpreter/constant.h) is needed once, so only its packed form takes memory.
// Code that needs the plain elements reads them, and then they stay in memory.
#pragma once

#include <functional>

#include "core/device/export.h"
#include "core/tensor/tensor.h"

namespace tenon {

// A row-major tensor whose elements `read` writes to `out`. If the host cannot reach the device's memory, or the device
// is asynchronous, they are read at once. Any thread may call `read`, any number of times; `read` must not call Tenon.
// Errors: those of `read` and of the allocation. If the elements are read later, the errors appear where they are first
// needed.
TENON_API Tensor unread_tensor(const Dims& dims, DType dtype, Device device, std::function<Status(void* out)> read);

// True if the elements of `tensor` have not been read yet.
TENON_API bool is_unread(const Tensor& tensor);

}  // namespace tenon
