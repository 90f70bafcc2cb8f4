// specialize: leaves out of a SPIR-V module what its specialization constants rule out, before a driver sees it. The
// rows of scalar_ops.def are cases of a switch over one constant; drivers translate and inline them all before they
// fold the constant (lavapipe, unary rows: 120 ms a pipeline, 12 without the dead cases).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon::provider::vulkan {

// The words of `module` with every OpSwitch whose selector is a specialization constant replaced by a branch to the
// case of its value (values[i] for SpecId i, else the default in the module), and without blocks and functions that
// nothing reaches any more, their decorations and all names. The constants themselves stay. SPIR-V 1.5, section 3.42
// (instructions), as glslang writes it: no OpPhi joins the cases of a switch.
std::vector<uint32_t> specialize(std::span<const uint32_t> module, std::span<const uint32_t> values);

// What a module asks of the device's f32 (SPIR-V 1.5, float controls): without the first a driver may compile as if
// there were no NaN, no infinity and no -0, without the second sums and products may be rounded toward zero.
struct FloatModes {
  bool keep_nan = false;
  bool round_even = false;
};
// `module` with the capabilities and execution modes for `modes`; as it was if it computes nothing in floats.
std::vector<uint32_t> ask_of_floats(std::vector<uint32_t> module, const FloatModes& modes);

}  // namespace tenon::provider::vulkan
