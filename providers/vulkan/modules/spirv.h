// SPIR-V as a helper made it: checked, and made to compute as the contract says.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tenon::provider::vulkan {

// The words of `bytes`. Empty: they are no module of SPIR-V whose instructions end where it ends.
std::vector<uint32_t> spirv_words(const std::string& bytes);

// `module` with the decoration NoContraction on every operation on floats that a driver might fuse with another.
std::vector<uint32_t> without_contraction(std::span<const uint32_t> module);

}  // namespace tenon::provider::vulkan
