// Checks SPIR-V from a helper, and changes it to compute as the contract requires.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tenon::provider::vulkan {

// The words of `bytes`; empty if they are not a SPIR-V module of complete instructions.
std::vector<uint32_t> spirv_words(const std::string& bytes);

// Adds the decoration NoContraction to every float operation that a driver might fuse with another.
std::vector<uint32_t> without_contraction(std::span<const uint32_t> module);

}  // namespace tenon::provider::vulkan
