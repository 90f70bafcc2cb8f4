// Element types in programs: compiler options that set a program's type, and the types that a device can compute.
#pragma once

#include <cstdint>
#include <string>

#include "providers/opencl/driver/describe.h"
#include "sdk/provider/implementation.h"
#include "sdk/provider/scalar_bits.h"

namespace tenon::provider::opencl {

// The compiler options that set EP_T and SRC_DTYPE for `dtype` (sdk/provider/opencl/prelude.cl).
std::string type_options(const PhysicalDevice& device, int32_t dtype);

// Why kernels cannot read and write elements of `dtype`.
Refusal why_not_stored(int32_t dtype);
// Why kernels of `device` cannot compute with `dtype`.
Refusal why_not_computed(const PhysicalDevice& device, int32_t dtype);

// Work-items per group, in every kernel.
inline constexpr uint64_t group_size = 256;
inline uint64_t groups_for(uint64_t items) { return (items + group_size - 1) / group_size; }

// The index of an operand's first element in its block.
inline uint64_t first_element(ep_buffer buffer, int32_t dtype) {
  return buffer.offset / static_cast<uint64_t>(dtype_size(dtype));
}

}  // namespace tenon::provider::opencl
