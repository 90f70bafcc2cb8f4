// SimdLevel: the instruction set that the loops of a device use.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon::provider::cpu {

enum class SimdLevel : uint8_t { baseline, avx2, avx3 };

// The best level that this processor has and this build contains; baseline on every processor other than x86-64.
SimdLevel best_simd_level();

// The least level that this build contains: above baseline if the compiler's flags allow more instructions.
SimdLevel least_simd_level();

// "baseline", "avx2", "avx3"
std::string_view simd_level_name(SimdLevel level);
std::optional<SimdLevel> simd_level_from_name(std::string_view name);

}  // namespace tenon::provider::cpu
