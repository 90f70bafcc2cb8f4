// TENON_CPU_DISPATCH chooses one of the copies of a function that foreach_target.h compiled, one per dispatch target.
//
//   #if HWY_ONCE
//   const UnaryTable& unary_table(SimdLevel level) { return *TENON_CPU_DISPATCH(level, unary_table_of)(); }
//   #endif
//
// There are three targets: the baseline of the compiler's flags, AVX2, and AVX3 (AVX-512 as in Skylake servers). Other
// processors than x86-64 have only the baseline. CMakeLists.txt disables all other targets to limit the compile time,
// and one more if TENON_CPU_TARGETS is native.
#pragma once

#include "hwy/detect_targets.h"
#include "providers/cpu/simd/level.h"

#if defined(__x86_64__)
#if HWY_TARGETS & HWY_AVX2
#define TENON_CPU_AVX2(function) N_AVX2::function
#else
#define TENON_CPU_AVX2(function) TENON_CPU_BASELINE_NAMESPACE::function
#endif
#if HWY_TARGETS & HWY_AVX3
#define TENON_CPU_AVX3(function) N_AVX3::function
#else
#define TENON_CPU_AVX3(function) TENON_CPU_AVX2(function)
#endif
#define TENON_CPU_DISPATCH(level, function)                 \
  ((level) == SimdLevel::avx3   ? &TENON_CPU_AVX3(function) \
   : (level) == SimdLevel::avx2 ? &TENON_CPU_AVX2(function) \
                                : &TENON_CPU_BASELINE_NAMESPACE::function)
#if HWY_STATIC_TARGET == HWY_AVX3
#define TENON_CPU_BASELINE_NAMESPACE N_AVX3
#elif HWY_STATIC_TARGET == HWY_AVX2
#define TENON_CPU_BASELINE_NAMESPACE N_AVX2
#elif HWY_STATIC_TARGET == HWY_EMU128
#define TENON_CPU_BASELINE_NAMESPACE N_EMU128
#else
#define TENON_CPU_BASELINE_NAMESPACE N_SCALAR
#endif
#else
#define TENON_CPU_DISPATCH(level, function) (static_cast<void>(level), &HWY_NAMESPACE::function)
#endif
