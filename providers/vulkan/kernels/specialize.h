// specialize: removes from a SPIR-V module the code that the values of its specialization constants rule out. The
// scalar functions are cases of a switch over one constant. Drivers translate and inline every case before they fold
// the constant: lavapipe takes 120 ms for a pipeline of a unary function with all cases, and 12 ms with one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon::provider::vulkan {

// Replaces every OpSwitch over a specialization constant by a branch to the case of its value: values[i] for SpecId i,
// or the default in the module. Removes the blocks and functions that become unreachable, their decorations, and all
// names. Keeps the constants. Follows SPIR-V 1.5, section 3.42 (instructions). Expects modules as glslang writes them:
// no OpPhi joins the cases of a switch.
std::vector<uint32_t> specialize(std::span<const uint32_t> module, std::span<const uint32_t> values);

// Execution modes that a module requires for f32 (SPIR-V 1.5, float controls). Without the first, a driver may assume
// that NaN, infinity and -0 do not occur. Without the second, sums and products may be rounded toward zero. Without the
// third, denormals may become 0.
struct FloatModes {
  bool keep_nan = false;
  bool round_even = false;
  bool keep_denormals = false;
};
// Returns `module` with the capabilities and execution modes for `modes`. A module without float arithmetic is returned
// unchanged.
std::vector<uint32_t> ask_of_floats(std::vector<uint32_t> module, const FloatModes& modes);

}  // namespace tenon::provider::vulkan
