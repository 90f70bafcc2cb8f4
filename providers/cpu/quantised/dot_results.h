// Converts the sums of a tile to results: element by element, or sixteen at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ep_api/ep_api.h"
#include "providers/cpu/quantised/dot_tile.h"
#include "providers/cpu/quantised/vnni.h"

namespace tenon::provider::cpu {

inline void store_plain(const DotResults& to, int32_t row, int32_t column, int32_t sum) {
  sum += to.added[column];
  const int64_t at = row * to.dst_row + column;
  if (to.result == DotResult::i32) return std::memcpy(to.dst + at * 4, &sum, 4), void();
  const float real = std::fma(static_cast<float>(sum), to.factor[column], to.bias[column]);
  if (to.result == DotResult::f32) return std::memcpy(to.dst + at * 4, &real, 4), void();
  const bool is_signed = to.result == DotResult::i8;
  const float low = static_cast<float>((is_signed ? -128 : 0) - to.zero_point);
  const float rounded = std::isnan(real) ? low : std::nearbyint(std::clamp(real, low, low + 255));
  to.dst[at] = static_cast<char>(static_cast<int32_t>(rounded) + to.zero_point);
}

#if defined(__x86_64__)
// Sixteen columns of DotResults in registers.
struct VectorResults {
  __m512i added, zero_point;
  __m512 factor, bias, low, high;
  __mmask16 mask;
  DotResult result;
  char* dst;
  int64_t dst_row;
};

TENON_VNNI_INLINE VectorResults results_from(const DotResults& to, int32_t column) {
  const int32_t left = to.columns - column;
  const float low = static_cast<float>((to.result == DotResult::i8 ? -128 : 0) - to.zero_point);
  const int64_t bytes = to.result == DotResult::i32 || to.result == DotResult::f32 ? 4 : 1;
  return {_mm512_loadu_si512(to.added + column),
          _mm512_set1_epi32(to.zero_point),
          _mm512_loadu_ps(to.factor + column),
          _mm512_loadu_ps(to.bias + column),
          _mm512_set1_ps(low),
          _mm512_set1_ps(low + 255),
          static_cast<__mmask16>(left >= 16  ? 0xffff
                                 : left <= 0 ? 0
                                             : (1 << left) - 1),
          to.result,
          to.dst + column * bytes,
          to.dst_row * bytes};
}

TENON_VNNI_INLINE void store_vector(const VectorResults& to, int32_t row, __m512i sum) {
  char* dst = to.dst + row * to.dst_row;
  sum = _mm512_add_epi32(sum, to.added);
  if (to.result == DotResult::i32) return _mm512_mask_storeu_epi32(dst, to.mask, sum);
  const __m512 real = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), to.factor, to.bias);
  if (to.result == DotResult::f32) return _mm512_mask_storeu_ps(dst, to.mask, real);
  // The maximum with NaN is the second operand, the least number.
  const __m512 bounded = _mm512_min_ps(to.high, _mm512_max_ps(real, to.low));
  _mm_mask_storeu_epi8(dst, to.mask,
                       _mm512_cvtepi32_epi8(_mm512_add_epi32(_mm512_cvtps_epi32(bounded), to.zero_point)));
}
#endif

}  // namespace tenon::provider::cpu
