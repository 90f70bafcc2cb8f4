#include "providers/cpu/quantised/dot_tile.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "providers/cpu/quantised/vnni.h"

namespace tenon::provider::cpu {
namespace {

uint32_t partial_group(const uint8_t* from, int64_t count) {
  uint32_t bytes = 0;
  std::memcpy(&bytes, from, static_cast<size_t>(count));
  return bytes;
}

// --- any processor ---

void store_plain(const DotTile& tile, int32_t row, int32_t column, int32_t sum) {
  const int64_t at = row * tile.dst_row + column;
  if (tile.result == DotResult::i32) return std::memcpy(tile.dst + at * 4, &sum, 4), void();
  const float real = std::fma(static_cast<float>(sum), tile.factor[column], tile.bias[column]);
  if (tile.result == DotResult::f32) return std::memcpy(tile.dst + at * 4, &real, 4), void();
  const bool is_signed = tile.result == DotResult::i8;
  const float low = static_cast<float>((is_signed ? -128 : 0) - tile.zero_point);
  const float rounded = std::isnan(real) ? 0.0f : std::nearbyint(std::clamp(real, low, low + 255));
  tile.dst[at] = static_cast<char>(static_cast<int32_t>(rounded) + tile.zero_point);
}

void run_plain(const DotTile& tile) {
  const uint32_t mask = tile.flips ? 0x80808080u : 0;
  const int64_t groups = (tile.depth + 3) / 4;
  for (int32_t row = 0; row < tile.rows; ++row) {
    int32_t sum[kDotColumns] = {};
    const int8_t* weights = tile.weights;
    for (int64_t tap = 0; tap < tile.taps; ++tap) {
      const uint8_t* from = tile.src[tap * tile.rows + row];
      for (int64_t group = 0; group < groups; ++group, weights += kDotColumns * 4) {
        const int64_t left = std::min<int64_t>(tile.depth - group * 4, 4);
        const uint32_t four = partial_group(from + group * 4, left) ^ mask;
        int32_t a[4];
        for (int i = 0; i < 4; ++i) a[i] = static_cast<int32_t>(four >> (8 * i) & 255);
        for (int32_t c = 0; c < kDotColumns; ++c) {
          const int8_t* w = weights + c * 4;
          sum[c] += a[0] * w[0] + a[1] * w[1] + a[2] * w[2] + a[3] * w[3];
        }
      }
    }
    for (int32_t c = 0; c < tile.columns; ++c) {
      const int32_t zero = tile.weight_zero == nullptr ? 0 : tile.weight_zero[c] * tile.row_sums[row];
      store_plain(tile, row, c, sum[c] + tile.added[c] - zero);
    }
  }
}

// --- avx512_vnni ---

#if defined(__x86_64__)
inline uint32_t whole_group(const uint8_t* from) {
  uint32_t bytes;
  std::memcpy(&bytes, from, 4);
  return bytes;
}

TENON_VNNI_INLINE void store_vector(const DotTile& tile, int32_t row, int32_t column, __m512i sum) {
  const int32_t left = tile.columns - column;
  if (left <= 0) return;
  const auto mask = static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1);
  const int64_t at = row * tile.dst_row + column;
  sum = _mm512_add_epi32(sum, _mm512_loadu_si512(tile.added + column));
  if (tile.weight_zero != nullptr) {
    const __m512i zero = _mm512_loadu_si512(tile.weight_zero + column);
    sum = _mm512_sub_epi32(sum, _mm512_mullo_epi32(zero, _mm512_set1_epi32(tile.row_sums[row])));
  }
  if (tile.result == DotResult::i32) return _mm512_mask_storeu_epi32(tile.dst + at * 4, mask, sum);
  const __m512 real = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_loadu_ps(tile.factor + column),
                                      _mm512_loadu_ps(tile.bias + column));
  if (tile.result == DotResult::f32) return _mm512_mask_storeu_ps(tile.dst + at * 4, mask, real);
  const float low = static_cast<float>((tile.result == DotResult::i8 ? -128 : 0) - tile.zero_point);
  const __mmask16 ordered = _mm512_cmp_ps_mask(real, real, _CMP_ORD_Q);
  const __m512 bounded =
      _mm512_min_ps(_mm512_max_ps(_mm512_maskz_mov_ps(ordered, real), _mm512_set1_ps(low)), _mm512_set1_ps(low + 255));
  const __m512i moved = _mm512_add_epi32(_mm512_cvtps_epi32(bounded), _mm512_set1_epi32(tile.zero_point));
  const __m128i bytes = _mm512_cvtepi32_epi8(moved);
  if (left >= 16) return _mm_storeu_si128(reinterpret_cast<__m128i*>(tile.dst + at), bytes);
  _mm_mask_storeu_epi8(tile.dst + at, mask, bytes);
}

// One group of four channels. `bytes(r)` are those of row r.
#define TENON_ADD_GROUP(bytes)                                                                        \
  {                                                                                                   \
    const __m512i left = _mm512_loadu_si512(weights), right = _mm512_loadu_si512(weights + 64);       \
    TENON_UNROLL for (int r = 0; r < kRows; ++r) {                                                    \
      const __m512i four = _mm512_xor_si512(_mm512_set1_epi32(static_cast<int32_t>(bytes(r))), flip); \
      sum[r] = _mm512_dpbusd_epi32(sum[r], four, left);                                               \
      more[r] = _mm512_dpbusd_epi32(more[r], four, right);                                            \
    }                                                                                                 \
    weights += kDotColumns * 4;                                                                       \
  }

template <int kRows, bool kFlips>
TENON_VNNI void run_rows(const DotTile& tile) {
  __m512i sum[kRows], more[kRows];
  TENON_UNROLL for (int r = 0; r < kRows; ++r) sum[r] = more[r] = _mm512_setzero_si512();
  const __m512i flip = kFlips ? _mm512_set1_epi8(static_cast<char>(0x80)) : _mm512_setzero_si512();
  const int8_t* weights = tile.weights;
  const int64_t whole = tile.reads_on ? (tile.depth + 3) / 4 : tile.depth / 4;
  const int64_t rest = tile.depth - whole * 4;
  const uint8_t* const* rows = tile.src;
  for (int64_t tap = 0; tap < tile.taps; ++tap, rows += kRows) {
    for (int64_t group = 0; group < whole; ++group) {
#define TENON_WHOLE(r) whole_group(rows[r] + group * 4)
      TENON_ADD_GROUP(TENON_WHOLE)
    }
    if (rest <= 0) continue;
#define TENON_PART(r) partial_group(rows[r] + whole * 4, rest)
    TENON_ADD_GROUP(TENON_PART)
  }
  TENON_UNROLL for (int r = 0; r < kRows; ++r) {
    store_vector(tile, r, 0, sum[r]);
    store_vector(tile, r, 16, more[r]);
  }
}

template <bool kFlips>
void run_vnni_tile(const DotTile& tile) {
  switch (tile.rows) {
    case 1: return run_rows<1, kFlips>(tile);
    case 2: return run_rows<2, kFlips>(tile);
    case 3: return run_rows<3, kFlips>(tile);
    case 4: return run_rows<4, kFlips>(tile);
    case 5: return run_rows<5, kFlips>(tile);
    case 6: return run_rows<6, kFlips>(tile);
    case 7: return run_rows<7, kFlips>(tile);
    case 8: return run_rows<8, kFlips>(tile);
    case 9: return run_rows<9, kFlips>(tile);
    case 10: return run_rows<10, kFlips>(tile);
    case 11: return run_rows<11, kFlips>(tile);
    case 12: return run_rows<12, kFlips>(tile);
    case 13: return run_rows<13, kFlips>(tile);
    default: return run_rows<14, kFlips>(tile);
  }
}

void run_vnni(const DotTile& tile) { tile.flips ? run_vnni_tile<true>(tile) : run_vnni_tile<false>(tile); }
#endif

}  // namespace

DotKernel dot_kernel([[maybe_unused]] SimdLevel level) {
#if defined(__x86_64__)
  if (has_vnni(level)) return run_vnni;
#endif
  return run_plain;
}

int32_t sum_bytes(const uint8_t* bytes, int64_t count, bool flips) {
  int32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += bytes[i] ^ (flips ? 0x80 : 0);
  return sum;
}

}  // namespace tenon::provider::cpu
