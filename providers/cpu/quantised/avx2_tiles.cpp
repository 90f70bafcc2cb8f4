// AVX2 multiplies bytes only with saturation, so the bytes are widened to 16 bits, whose products are exact. AVX-VNNI
// multiplies bytes exactly.
#include "providers/cpu/quantised/avx2_tiles.h"

#include <algorithm>
#include <cstring>

#include "providers/cpu/quantised/vnni.h"

#if defined(__x86_64__)
#include <cpuid.h>

#define TENON_AVX2 __attribute__((target("avx2,fma")))
#define TENON_AVX2_INLINE TENON_AVX2 __attribute__((always_inline)) inline
#define TENON_AVX_VNNI __attribute__((target("avx2,fma,avxvnni")))
#define TENON_AVX_VNNI_INLINE TENON_AVX_VNNI __attribute__((always_inline)) inline

namespace tenon::provider::cpu {
namespace {

// Corrects, scales and stores the sums of eight columns from `column` on.
TENON_AVX2_INLINE void store_eight(const DotResults& to, int32_t row, int32_t column, __m256i sum) {
  const int32_t count = std::min(to.columns - column, 8);
  if (count <= 0) return;
  const bool wide = to.result == DotResult::i32 || to.result == DotResult::f32;
  char* const dst = to.dst + (row * to.dst_row + column) * (wide ? 4 : 1);
  sum = _mm256_add_epi32(sum, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(to.added + column)));
  alignas(32) char out[32];
  if (to.result == DotResult::i32) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(out), sum);
  } else {
    const __m256 real = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(to.factor + column),
                                        _mm256_loadu_ps(to.bias + column));
    if (to.result == DotResult::f32) {
      _mm256_store_ps(reinterpret_cast<float*>(out), real);
    } else {
      const float low = static_cast<float>((to.result == DotResult::i8 ? -128 : 0) - to.zero_point);
      // The maximum with NaN is the second operand, the least number.
      const __m256 bounded = _mm256_min_ps(_mm256_set1_ps(low + 255), _mm256_max_ps(real, _mm256_set1_ps(low)));
      const __m256i whole = _mm256_add_epi32(_mm256_cvtps_epi32(bounded), _mm256_set1_epi32(to.zero_point));
      const __m256i first = _mm256_set_epi64x(0, 0x0c080400, 0, 0x0c080400);  // the low byte of each element
      const __m256i bytes = _mm256_shuffle_epi8(whole, first);
      const int32_t halves[2] = {_mm256_extract_epi32(bytes, 0), _mm256_extract_epi32(bytes, 4)};
      std::memcpy(out, halves, 8);
    }
  }
  std::memcpy(dst, out, static_cast<size_t>(count) * (wide ? 4 : 1));
}

TENON_AVX2_INLINE __m256i minus_zeros(const int32_t* zeros, __m256i sum, __m256i bytes) {
  return _mm256_sub_epi32(sum, _mm256_mullo_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(zeros)), bytes));
}

TENON_AVX2_INLINE __m256i load_bytes(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

TENON_AVX2_INLINE __m128i load_half(const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); }

// The four bytes of a group, of which `count` are present; the others are 0.
TENON_AVX2_INLINE int32_t group_of(const uint8_t* from, int64_t count) {
  uint32_t bytes = 0;
  if (count >= 4) {
    std::memcpy(&bytes, from, 4);
  } else {
    std::memcpy(&bytes, from, static_cast<size_t>(count));
  }
  return static_cast<int32_t>(bytes);
}

// The sums of 4 columns and 2 pairs each, in the order of the columns.
TENON_AVX2_INLINE __m256i joined_pairs(__m256i low, __m256i high) {
  return _mm256_permute4x64_epi64(_mm256_hadd_epi32(low, high), 0xd8);
}

TENON_AVX2_INLINE void store_dots(const DotTile& tile, int32_t row, int32_t column, __m256i sum) {
  if (tile.weight_zero != nullptr) {
    sum = minus_zeros(tile.weight_zero + column, sum, _mm256_set1_epi32(tile.row_sums[row]));
  }
  store_eight(tile, row, column, sum);
}

// Rows [first, first + kRows) of the tile and 16 columns from `column` on.
template <int kRows>
TENON_AVX2 void widened_rows(const DotTile& tile, int32_t first, int32_t column) {
  __m256i sum[kRows][4];
  TENON_UNROLL for (int r = 0; r < kRows; ++r) {
    TENON_UNROLL for (int v = 0; v < 4; ++v) sum[r][v] = _mm256_setzero_si256();
  }
  const int32_t flip = tile.flips ? static_cast<int32_t>(0x80808080U) : 0;
  const int8_t* weights = tile.weights + column * 4;
  const uint8_t* const* rows = tile.src + first;
  for (int64_t tap = 0; tap < tile.taps; ++tap, rows += tile.rows) {
    for (int64_t at = 0; at < tile.depth; at += 4, weights += kDotColumns * 4) {
      const int64_t left = tile.reads_on ? 4 : tile.depth - at;
      __m256i four[kRows];
      TENON_UNROLL for (int r = 0; r < kRows; ++r) {
        four[r] = _mm256_cvtepu8_epi16(_mm_set1_epi32(group_of(rows[r] + at, left) ^ flip));
      }
      TENON_UNROLL for (int v = 0; v < 4; ++v) {
        const __m256i factors = _mm256_cvtepi8_epi16(load_half(weights + v * 16));
        TENON_UNROLL for (int r = 0; r < kRows; ++r) {
          sum[r][v] = _mm256_add_epi32(sum[r][v], _mm256_madd_epi16(four[r], factors));
        }
      }
    }
  }
  TENON_UNROLL for (int r = 0; r < kRows; ++r) {
    store_dots(tile, first + r, column, joined_pairs(sum[r][0], sum[r][1]));
    store_dots(tile, first + r, column + 8, joined_pairs(sum[r][2], sum[r][3]));
  }
}

// Like widened_rows, for 32 columns, on AVX-VNNI.
template <int kRows>
TENON_AVX_VNNI void dotted_rows(const DotTile& tile, int32_t first) {
  __m256i sum[kRows][4];
  TENON_UNROLL for (int r = 0; r < kRows; ++r) {
    TENON_UNROLL for (int v = 0; v < 4; ++v) sum[r][v] = _mm256_setzero_si256();
  }
  const int32_t flip = tile.flips ? static_cast<int32_t>(0x80808080U) : 0;
  const int8_t* weights = tile.weights;
  const uint8_t* const* rows = tile.src + first;
  for (int64_t tap = 0; tap < tile.taps; ++tap, rows += tile.rows) {
    for (int64_t at = 0; at < tile.depth; at += 4, weights += kDotColumns * 4) {
      const int64_t left = tile.reads_on ? 4 : tile.depth - at;
      __m256i four[kRows];
      TENON_UNROLL for (int r = 0; r < kRows; ++r) { four[r] = _mm256_set1_epi32(group_of(rows[r] + at, left) ^ flip); }
      TENON_UNROLL for (int v = 0; v < 4; ++v) {
        const __m256i factors = load_bytes(weights + v * 32);
        TENON_UNROLL for (int r = 0; r < kRows; ++r) {
          sum[r][v] = _mm256_dpbusd_avx_epi32(sum[r][v], four[r], factors);
        }
      }
    }
  }
  TENON_UNROLL for (int r = 0; r < kRows; ++r) {
    TENON_UNROLL for (int v = 0; v < 4; ++v) store_dots(tile, first + r, v * 8, sum[r][v]);
  }
}

void run_widened(const DotTile& tile) {
  for (int32_t column = 0; column < tile.columns; column += 16) {
    int32_t row = 0;
    for (; row + 3 <= tile.rows; row += 3) widened_rows<3>(tile, row, column);
    if (row + 2 == tile.rows) widened_rows<2>(tile, row, column);
    if (row + 1 == tile.rows) widened_rows<1>(tile, row, column);
  }
}

void run_dotted(const DotTile& tile) {
  int32_t row = 0;
  for (; row + 3 <= tile.rows; row += 3) dotted_rows<3>(tile, row);
  if (row + 2 == tile.rows) dotted_rows<2>(tile, row);
  if (row + 1 == tile.rows) dotted_rows<1>(tile, row);
}

// --- depthwise ---

// Reads the bytes of `count` channels; the others are 0.
TENON_AVX2_INLINE __m256i channels_of(const uint8_t* from, int32_t count) {
  if (count >= kDotColumns) return load_bytes(from);
  alignas(32) uint8_t bytes[kDotColumns] = {};
  std::memcpy(bytes, from, static_cast<size_t>(count));
  return load_bytes(bytes);
}

// Four lines of 32 channels as groups, ordered by `depth_place`.
TENON_AVX2_INLINE void read_groups(const DepthTile& tile, const uint8_t* const* lines, __m256i four[4]) {
  const __m256i flip = _mm256_set1_epi8(tile.flips ? static_cast<char>(0x80) : 0);
  __m256i line[4];
  TENON_UNROLL for (int i = 0; i < 4; ++i) {
    line[i] = _mm256_xor_si256(channels_of(lines[i] + tile.channel, tile.columns), flip);
  }
  const __m256i low_01 = _mm256_unpacklo_epi8(line[0], line[1]), high_01 = _mm256_unpackhi_epi8(line[0], line[1]);
  const __m256i low_23 = _mm256_unpacklo_epi8(line[2], line[3]), high_23 = _mm256_unpackhi_epi8(line[2], line[3]);
  four[0] = _mm256_unpacklo_epi16(low_01, low_23);
  four[1] = _mm256_unpackhi_epi16(low_01, low_23);
  four[2] = _mm256_unpacklo_epi16(high_01, high_23);
  four[3] = _mm256_unpackhi_epi16(high_01, high_23);
}

// `sum` and `bytes` have the order of `depth_place`: vector k has channels 4k to 4k + 3 and 16 + 4k to 19 + 4k.
TENON_AVX2_INLINE void store_depth(const DepthTile& tile, int32_t pixel, const __m256i sum[4], const __m256i bytes[4]) {
  TENON_UNROLL for (int half = 0; half < 2; ++half) {
    TENON_UNROLL for (int k = 0; k < 4; k += 2) {
      const int32_t column = half * 16 + k * 4;
      const auto of_half = [half](__m256i low, __m256i high) TENON_AVX2 {
        return half == 0 ? _mm256_permute2x128_si256(low, high, 0x20) : _mm256_permute2x128_si256(low, high, 0x31);
      };
      __m256i eight = of_half(sum[k], sum[k + 1]);
      if (tile.weight_zero != nullptr) {
        eight = minus_zeros(tile.weight_zero + column, eight, of_half(bytes[k], bytes[k + 1]));
      }
      store_eight(tile, pixel, column, eight);
    }
  }
}

// Multiplies the groups of one vector, exactly.
TENON_AVX2_INLINE __m256i multiply_groups(__m256i bytes, __m256i weights) {
  const __m256i low = _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm256_castsi256_si128(bytes)),
                                        _mm256_cvtepi8_epi16(_mm256_castsi256_si128(weights)));
  const __m256i high = _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm256_extracti128_si256(bytes, 1)),
                                         _mm256_cvtepi8_epi16(_mm256_extracti128_si256(weights, 1)));
  return joined_pairs(low, high);
}

// The products of a pixel, where `multiply_add(sum, bytes, weights)` adds those of one vector.
#define TENON_DEPTH_KERNEL(name, TARGET, multiply_add)                                                  \
  template <bool kZeros>                                                                                \
  TARGET void name##_pixel(const DepthTile& tile, int32_t pixel) {                                      \
    __m256i sum[4], bytes[4];                                                                           \
    TENON_UNROLL for (int k = 0; k < 4; ++k) sum[k] = bytes[k] = _mm256_setzero_si256();                \
    const uint8_t* const* lines = tile.src;                                                             \
    const __m256i ones = _mm256_set1_epi8(1);                                                           \
    for (int32_t column = 0; column < tile.src_columns; ++column, lines += int64_t{tile.quads} * 4) {   \
      const int32_t tap = tile.taps[column * kDepthPixels + pixel];                                     \
      if (tap < 0) continue;                                                                            \
      for (int32_t quad = 0; quad < tile.quads; ++quad) {                                               \
        __m256i four[4];                                                                                \
        read_groups(tile, lines + quad * 4, four);                                                      \
        const int8_t* weights = tile.weights + (int64_t{tap} * tile.quads + quad) * kDotColumns * 4;    \
        TENON_UNROLL for (int k = 0; k < 4; ++k) {                                                      \
          sum[k] = multiply_add(sum[k], four[k], load_bytes(weights + k * 32));                         \
          if constexpr (kZeros) bytes[k] = multiply_add(bytes[k], four[k], ones);                       \
        }                                                                                               \
      }                                                                                                 \
    }                                                                                                   \
    store_depth(tile, pixel, sum, bytes);                                                               \
  }                                                                                                     \
  void name(const DepthTile& tile) {                                                                    \
    for (int32_t pixel = 0; pixel < tile.pixels; ++pixel) {                                             \
      tile.weight_zero == nullptr ? name##_pixel<false>(tile, pixel) : name##_pixel<true>(tile, pixel); \
    }                                                                                                   \
  }

TENON_AVX2_INLINE __m256i widened_add(__m256i sum, __m256i bytes, __m256i weights) {
  return _mm256_add_epi32(sum, multiply_groups(bytes, weights));
}
TENON_AVX_VNNI_INLINE __m256i dotted_add(__m256i sum, __m256i bytes, __m256i weights) {
  return _mm256_dpbusd_avx_epi32(sum, bytes, weights);
}
TENON_DEPTH_KERNEL(depth_widened, TENON_AVX2, widened_add)
TENON_DEPTH_KERNEL(depth_dotted, TENON_AVX_VNNI, dotted_add)

}  // namespace

bool has_avx_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}

DotKernel avx2_dot_kernel(bool multiplies_bytes) { return multiplies_bytes ? run_dotted : run_widened; }
DepthKernel avx2_depth_kernel(bool multiplies_bytes) { return multiplies_bytes ? depth_dotted : depth_widened; }

}  // namespace tenon::provider::cpu
#endif
