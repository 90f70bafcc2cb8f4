#include "providers/cpu/quantised/dot_tile.h"

#include <algorithm>
#include <cstring>

#include "providers/cpu/quantised/avx2_tiles.h"
#include "providers/cpu/quantised/dot_results.h"
#include "providers/cpu/quantised/vnni.h"

namespace tenon::provider::cpu {
namespace {

uint32_t partial_group(const uint8_t* from, int64_t count) {
  uint32_t bytes = 0;
  std::memcpy(&bytes, from, static_cast<size_t>(count));
  return bytes;
}

// --- any processor ---

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
      store_plain(tile, row, c, sum[c] - zero);
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

// Subtracts the contribution of the weights' zero points from `sum`.
TENON_VNNI_INLINE __m512i without_zeros(const DotTile& tile, int32_t row, int32_t column, __m512i sum) {
  const __m512i zero = _mm512_loadu_si512(tile.weight_zero + column);
  return _mm512_sub_epi32(sum, _mm512_mullo_epi32(zero, _mm512_set1_epi32(tile.row_sums[row])));
}

// Adds one group of four channels. `bytes(r)` returns those of row r.
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
  if (tile.weight_zero != nullptr) {
    TENON_UNROLL for (int r = 0; r < kRows; ++r) {
      sum[r] = without_zeros(tile, r, 0, sum[r]);
      more[r] = without_zeros(tile, r, 16, more[r]);
    }
  }
  const VectorResults left = results_from(tile, 0);
  TENON_UNROLL for (int r = 0; r < kRows; ++r) store_vector(left, r, sum[r]);
  if (tile.columns <= 16) return;
  const VectorResults right = results_from(tile, 16);
  TENON_UNROLL for (int r = 0; r < kRows; ++r) store_vector(right, r, more[r]);
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
  if (level != SimdLevel::baseline) return avx2_dot_kernel(has_avx_vnni());
#endif
  return run_plain;
}

int32_t sum_bytes(const uint8_t* bytes, int64_t count, bool flips) {
  int32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += bytes[i] ^ (flips ? 0x80 : 0);
  return sum;
}

}  // namespace tenon::provider::cpu
