// Unread tensors: their elements lie elsewhere, such as in a file, until somebody needs them. For importers.
//
// A weight that a program packs (core/interpreter/constant.h) is needed once, so an unread weight never takes memory
// beside what is packed of it. Whoever needs the elements as they are reads them, and then they stay.
#pragma once

#include <functional>

#include "core/device/export.h"
#include "core/tensor/tensor.h"

namespace tenon {

// A row-major tensor whose elements `read` writes to `out`. On a device that the host does not reach, or that is not
// synchronous, they are read at once. Any thread may call `read`, any number of times; it calls nothing of Tenon.
// Errors: those of `read` and of the allocation; from a tensor that is read later they come where it is needed first.
TENON_API Tensor unread_tensor(const Dims& dims, DType dtype, Device device, std::function<Status(void* out)> read);

// True if the elements of `tensor` were not read yet.
TENON_API bool is_unread(const Tensor& tensor);

}  // namespace tenon
