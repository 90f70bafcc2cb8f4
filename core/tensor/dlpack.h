// DLPack: tensors in and out of other libraries without a copy, where both sides can reach the memory.
#pragma once

#include "core/tensor/export.h"
#include "core/tensor/tensor.h"

struct DLManagedTensor;

namespace tenon {

// A managed tensor over the same memory, for its consumer to delete. Pending writes are waited for first.
// Errors: unsupported when the device's memory has no address that others understand, or the dtype has no DLPack name.
TENON_API DLManagedTensor* to_dlpack(const Tensor& tensor);

// A tensor on the host device over `managed`, whose deleter runs once nothing uses it any more. On an error `managed`
// stays the caller's. Errors: invalid_argument (null, rank above 8, negative strides), unsupported (not CPU memory,
// dtype, data that is not aligned to its element).
TENON_API Tensor from_dlpack(DLManagedTensor* managed);

}  // namespace tenon
