// The preamble of a file of avx512_vnni kernels. Only sources include it.
#pragma once

#include "ep_api/ep_api.h"
#include "providers/cpu/simd/level.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if !defined(__clang__)  // gcc 12 sees the undefined vectors of its own intrinsics (gcc.gnu.org/PR105593)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define TENON_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#define TENON_VNNI_INLINE TENON_VNNI __attribute__((always_inline)) inline
// Sums stay in registers only if gcc unrolls the loops over rows early. With a sanitizer, unrolled code takes a minute
// to compile, so there it is off.
#if EP_SANITIZER_OF_THIS_BUILD != EP_SANITIZER_NONE
#define TENON_UNROLL
#elif defined(__clang__)
#define TENON_UNROLL _Pragma("unroll")
#else
#define TENON_UNROLL _Pragma("GCC unroll 16")
#endif
#endif

namespace tenon::provider::cpu {

inline bool has_vnni([[maybe_unused]] SimdLevel level) {
#if defined(__x86_64__)
  return level == SimdLevel::avx3 && __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

}  // namespace tenon::provider::cpu
