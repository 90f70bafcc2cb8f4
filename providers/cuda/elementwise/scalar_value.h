// Converts launch scalars to the form that kernels take.
#pragma once

#include "ep_api/ep_api.h"

namespace tenon::provider::cuda {

// The class in which kernels compute `dtype`. A class is named after its widest dtype: f32 (f16, bf16), f64, i64, u64
// or bool. 0 if no kernel computes with `dtype`.
int32_t class_of(int32_t dtype);
// The name of a class, such as "f32". Kernel names end with it.
const char* class_name(int32_t dtype_class);

// `scalar` rounded to `dtype`, as bits of the class of `dtype`.
uint64_t class_bits(const ep_scalar& scalar, int32_t dtype);
// `scalar` as bits of `dtype_class`, rounded once.
uint64_t parameter_bits(const ep_scalar& scalar, int32_t dtype_class);
// `scalar` as an element of `dtype`.
uint64_t element_bits(const ep_scalar& scalar, int32_t dtype);

}  // namespace tenon::provider::cuda
