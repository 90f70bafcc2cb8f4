// DLPack: tensors in and out of other libraries without a copy, where both sides can reach the memory.
#pragma once

#include "core/device/export.h"
#include "core/tensor/tensor.h"

struct DLManagedTensor;

namespace tenon {

// A managed tensor over the same memory, for its consumer to delete, on any thread; until then it keeps the memory
// alive. Pending writes are waited for first. Errors: unsupported when the device's memory has no address that others
// understand, or the dtype (i4, u4) has no DLPack name; invalid_argument for a value of a program being recorded; the
// error of the op that failed to compute the tensor.
TENON_API DLManagedTensor* to_dlpack(const Tensor& tensor);

// A tensor on the host device over `managed`, whose deleter runs once nothing uses it any more. On an error `managed`
// stays the caller's: its deleter was not called. Errors: invalid_argument (null, ranks outside 0 to 8, negative dims
// or strides, no data for what is not empty, a size beyond int64), unsupported (not CPU memory, dtype, lanes, data that
// is not aligned to its element).
TENON_API Tensor from_dlpack(DLManagedTensor* managed);

}  // namespace tenon
