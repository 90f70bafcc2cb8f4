// DLPack: exchanges tensors with other libraries without a copy, if both sides can reach the memory.
#pragma once

#include "core/device/export.h"
#include "core/tensor/tensor.h"

struct DLManagedTensor;

namespace tenon {

// A managed tensor over the memory of `tensor`. It keeps that memory alive until its consumer deletes it, on any
// thread. Waits for pending writes first. Errors: unsupported if other libraries cannot address the device's memory, or
// if the dtype (i4, u4) has no DLPack name; invalid_argument for a value of a program being recorded; the error of the
// op that failed to compute the tensor.
TENON_API DLManagedTensor* to_dlpack(const Tensor& tensor);

// A tensor on the host device over `managed`, whose deleter runs when the memory is no longer used. On an error the
// caller keeps `managed`: its deleter is not called. Errors: invalid_argument (null, a rank outside 0 to 8, negative
// dims or strides, elements but no data, a size beyond int64), unsupported (memory of another device than the CPU, a
// dtype or lane count that Tenon lacks, data that is not aligned to its element).
TENON_API Tensor from_dlpack(DLManagedTensor* managed);

}  // namespace tenon
