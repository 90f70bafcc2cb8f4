// Element types in shaders: the module that computes each type.
#pragma once

#include <cstdint>
#include <string>

#include "providers/vulkan/driver/describe.h"
#include "sdk/provider/implementation.h"
#include "sdk/provider/scalar_bits.h"

namespace tenon::provider::vulkan {

// The class of the modules that compute `dtype`: "f32", "i32", "u32", "i64" or "u64". NULL if no module computes it.
const char* class_of_dtype(int32_t dtype);

// Why kernels on a device with `features` cannot read and write elements of `dtype`.
Refusal why_not_stored(const Features& features, int32_t dtype);
// Why kernels on a device with `features` cannot compute with `dtype`.
Refusal why_not_computed(const Features& features, int32_t dtype);

// The name of a module, such as "map2_f32", in the version (narrow or words) for a device with `features`.
std::string module_name(const std::string& shader, const std::string& variant, const Features& features);

}  // namespace tenon::provider::vulkan
