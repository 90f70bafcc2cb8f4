#include "providers/cpu/simd/level.h"

#include "hwy/targets.h"

namespace tenon::provider::cpu {

SimdLevel best_simd_level() {
#if defined(__x86_64__)
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  if ((targets & HWY_AVX3) != 0) return SimdLevel::avx3;
  if ((targets & HWY_AVX2) != 0) return SimdLevel::avx2;
#endif
  return SimdLevel::baseline;
}

SimdLevel least_simd_level() {
#if HWY_STATIC_TARGET == HWY_AVX3
  return SimdLevel::avx3;
#elif HWY_STATIC_TARGET == HWY_AVX2
  return SimdLevel::avx2;
#else
  return SimdLevel::baseline;
#endif
}

std::string_view simd_level_name(SimdLevel level) {
  switch (level) {
    case SimdLevel::baseline: return "baseline";
    case SimdLevel::avx2: return "avx2";
    case SimdLevel::avx3: return "avx3";
  }
  return "baseline";
}

std::optional<SimdLevel> simd_level_from_name(std::string_view name) {
  for (SimdLevel level : {SimdLevel::baseline, SimdLevel::avx2, SimdLevel::avx3}) {
    if (simd_level_name(level) == name) return level;
  }
  return std::nullopt;
}

}  // namespace tenon::provider::cpu
