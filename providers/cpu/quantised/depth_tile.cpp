#include "providers/cpu/quantised/depth_tile.h"

#include "providers/cpu/quantised/avx2_tiles.h"
#include "providers/cpu/quantised/dot_results.h"
#include "providers/cpu/quantised/vnni.h"

namespace tenon::provider::cpu {
namespace {

void run_plain(const DepthTile& tile) {
  const int32_t flip = tile.flips ? 0x80 : 0, lines = tile.quads * 4;
  for (int32_t pixel = 0; pixel < tile.pixels; ++pixel) {
    int32_t sum[kDotColumns] = {}, bytes[kDotColumns] = {};
    for (int32_t column = 0; column < tile.src_columns; ++column) {
      const int32_t tap = tile.taps[column * kDepthPixels + pixel];
      for (int32_t line = 0; tap >= 0 && line < lines; ++line) {
        const uint8_t* from = tile.src[column * lines + line] + tile.channel;
        const int8_t* weights = tile.weights + (tap * tile.quads + line / 4) * kDotColumns * 4;
        for (int32_t c = 0; c < tile.columns; ++c) {
          const int32_t byte = from[c] ^ flip;
          sum[c] += byte * weights[depth_place(c, line % 4)];
          bytes[c] += byte;
        }
      }
    }
    for (int32_t c = 0; c < tile.columns; ++c) {
      store_plain(tile, pixel, c, sum[c] - (tile.weight_zero == nullptr ? 0 : tile.weight_zero[c] * bytes[c]));
    }
  }
}

#if defined(__x86_64__)
TENON_VNNI_INLINE __m256i load_weights(const int8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// Sixteen channels of sums. Their halves are in the low or high lanes of four vectors.
template <int kHalf>
TENON_VNNI_INLINE __m512i joined(const __m256i sum[4]) {
  const __m256i low = _mm256_permute2x128_si256(sum[0], sum[1], kHalf * 0x11 + 0x20);
  const __m256i high = _mm256_permute2x128_si256(sum[2], sum[3], kHalf * 0x11 + 0x20);
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

TENON_VNNI_INLINE __m512i zeros_times(const DepthTile& tile, int32_t column, __m512i bytes) {
  return _mm512_mullo_epi32(_mm512_loadu_si512(tile.weight_zero + column), bytes);
}

// `kZeros`: the weights have zero points, so the sums of the bytes are computed too.
template <int kPixels, bool kZeros>
TENON_VNNI void run_pixels(const DepthTile& tile) {
  constexpr int kSums = kZeros ? kPixels : 1;
  __m256i sum[kPixels][4], bytes[kSums][4];
  TENON_UNROLL for (int p = 0; p < kPixels; ++p) {
    TENON_UNROLL for (int k = 0; k < 4; ++k) sum[p][k] = _mm256_setzero_si256();
  }
  TENON_UNROLL for (int p = 0; p < kSums; ++p) {
    TENON_UNROLL for (int k = 0; k < 4; ++k) bytes[p][k] = _mm256_setzero_si256();
  }
  const __mmask32 mask = tile.columns >= kDotColumns ? ~__mmask32{0} : (__mmask32{1} << tile.columns) - 1;
  const __m256i flip = _mm256_set1_epi8(tile.flips ? static_cast<char>(0x80) : 0), ones = _mm256_set1_epi8(1);
  const uint8_t* const* pixel = tile.src;
  const int64_t per_tap = int64_t{tile.quads} * kDotColumns * 4;
  for (int32_t column = 0; column < tile.src_columns; ++column) {
    const int32_t* taps = tile.taps + column * kDepthPixels;
    for (int32_t quad = 0; quad < tile.quads; ++quad, pixel += 4) {
      __m256i line[4];
      TENON_UNROLL for (int i = 0; i < 4; ++i) line[i] =
          _mm256_xor_si256(_mm256_maskz_loadu_epi8(mask, pixel[i] + tile.channel), flip);
      const __m256i low_01 = _mm256_unpacklo_epi8(line[0], line[1]), high_01 = _mm256_unpackhi_epi8(line[0], line[1]);
      const __m256i low_23 = _mm256_unpacklo_epi8(line[2], line[3]), high_23 = _mm256_unpackhi_epi8(line[2], line[3]);
      const __m256i four[4] = {_mm256_unpacklo_epi16(low_01, low_23), _mm256_unpackhi_epi16(low_01, low_23),
                               _mm256_unpacklo_epi16(high_01, high_23), _mm256_unpackhi_epi16(high_01, high_23)};
      const int8_t* of_quad = tile.weights + quad * (kDotColumns * 4);
      TENON_UNROLL for (int p = 0; p < kPixels; ++p) {
        if (taps[p] < 0) continue;
        const int8_t* weights = of_quad + taps[p] * per_tap;
        TENON_UNROLL for (int k = 0; k < 4; ++k) {
          sum[p][k] = _mm256_dpbusd_epi32(sum[p][k], four[k], load_weights(weights + k * 32));
          if constexpr (kZeros) bytes[p][k] = _mm256_dpbusd_epi32(bytes[p][k], four[k], ones);
        }
      }
    }
  }
  const VectorResults to[2] = {results_from(tile, 0), results_from(tile, 16)};
  TENON_UNROLL for (int p = 0; p < kPixels; ++p) {
    __m512i left = joined<0>(sum[p]), right = joined<1>(sum[p]);
    if constexpr (kZeros) {
      left = _mm512_sub_epi32(left, zeros_times(tile, 0, joined<0>(bytes[p])));
      right = _mm512_sub_epi32(right, zeros_times(tile, 16, joined<1>(bytes[p])));
    }
    store_vector(to[0], p, left);
    if (tile.columns > 16) store_vector(to[1], p, right);
  }
}

void run_vnni(const DepthTile& tile) {
  const bool many = tile.pixels == kDepthPixels;
  if (tile.weight_zero != nullptr) return many ? run_pixels<kDepthPixels, true>(tile) : run_pixels<1, true>(tile);
  many ? run_pixels<kDepthPixels, false>(tile) : run_pixels<1, false>(tile);
}
#endif

}  // namespace

DepthKernel depth_kernel([[maybe_unused]] SimdLevel level) {
#if defined(__x86_64__)
  if (has_vnni(level)) return run_vnni;
  if (level != SimdLevel::baseline) return avx2_depth_kernel(has_avx_vnni());
#endif
  return run_plain;
}

}  // namespace tenon::provider::cpu
