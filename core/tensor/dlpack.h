// DLPack: exchanges tensors with other libraries without a copy, if both sides can reach the memory.
#pragma once

#include "core/device/export.h"
#include "core/tensor/tensor.h"

struct DLManagedTensor;

namespace tenon {

// A managed tensor over the memory of `tensor`, which it keeps alive until its consumer deletes it, on any thread.
// Waits for pending writes first. Errors: unsupported if the device's memory has no address that others understand, or
// the dtype (i4, u4) has no DLPack name; invalid_argument for a value of a program being recorded; the error of the op
// that failed to compute the tensor.
TENON_API DLManagedTensor* to_dlpack(const Tensor& tensor);

// A tensor on the host device over `managed`, whose deleter runs once nothing uses `managed` any more. On an error
// `managed` stays the caller's: its deleter was not called. Errors: invalid_argument (null, ranks outside 0 to 8,
// negative dims or strides, no data though it has elements, a size beyond int64), unsupported (memory that is not the
// CPU's, a dtype or lanes that Tenon lacks, data that is not aligned to its element).
TENON_API Tensor from_dlpack(DLManagedTensor* managed);

}  // namespace tenon
