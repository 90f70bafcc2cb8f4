// Launch scalars as the kernels take them.
#pragma once

#include "ep_api/ep_api.h"

namespace tenon::provider::cuda {

// The classes that kernels compute in, named by the widest dtype of each: f32 (f16, bf16), f64, i64, u64, bool.
// 0 for dtypes that no kernel computes with.
int32_t class_of(int32_t dtype);
// "f32": what the kernels of a class end with.
const char* class_name(int32_t dtype_class);

// `scalar` rounded to `dtype`, as bits of the class of `dtype`.
uint64_t class_bits(const ep_scalar& scalar, int32_t dtype);
// `scalar` as bits of `dtype_class`, rounded once.
uint64_t parameter_bits(const ep_scalar& scalar, int32_t dtype_class);
// `scalar` as an element of `dtype`.
uint64_t element_bits(const ep_scalar& scalar, int32_t dtype);

// The least value of an integer dtype; 0 for those without sign.
int64_t least_value(int32_t dtype);

}  // namespace tenon::provider::cuda
