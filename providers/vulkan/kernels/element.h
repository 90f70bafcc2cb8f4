// Element types as the shaders see them: which module computes a type, how a launch scalar is handed over.
#pragma once

#include <cstdint>
#include <string>

#include "providers/vulkan/driver/describe.h"
#include "sdk/provider/implementation.h"

namespace tenon::provider::vulkan {

// The class of modules that compute `dtype`: "f32", "i32", "u32", "i64" or "u64"; NULL where there is none.
const char* class_of_dtype(int32_t dtype);

// Bits at which integers of `dtype` wrap; 1 for bool.
uint32_t width_of(int32_t dtype);

// Why elements of `dtype` cannot be read and written by kernels of a device with `features`.
Refusal why_not_stored(const Features& features, int32_t dtype);
// As that, and be computed with.
Refusal why_not_computed(const Features& features, int32_t dtype);

// "map2_f32", of the variant for the device.
std::string module_name(const std::string& shader, const std::string& variant, const Features& features);

// A scalar in the type the class of `dtype` computes in, rounded to `dtype` first.
uint64_t scalar_bits(const ep_scalar& scalar, int32_t dtype);
// The same as an element in memory.
uint64_t element_bits(const ep_scalar& scalar, int32_t dtype);

}  // namespace tenon::provider::vulkan
