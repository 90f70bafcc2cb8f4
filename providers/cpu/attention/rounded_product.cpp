#include "providers/cpu/attention/rounded_product.h"

#include <algorithm>
#include <utility>

#include "providers/cpu/quantised/vnni.h"

namespace tenon::provider::cpu {

#if defined(__x86_64__)
namespace {

#define TENON_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

constexpr int64_t lanes = 16;

// The sums, the vectors of b and one value of a fill the registers.
constexpr int most_rows(int vectors) { return vectors == 3 ? 8 : 12; }

template <int kRows, int kVectors>
TENON_BF16 void run_tile(const PairProduct& x, int64_t first) {
  const Bf16Pair* a = x.a + first * x.a_row;
  const Bf16Pair* b = x.b;
  float* const c = x.c + first * x.c_row;
  __m512 sum[kRows][kVectors];
  TENON_UNROLL for (int v = 0; v < kVectors; ++v) {
    const __m512 bias = x.bias == nullptr ? _mm512_setzero_ps() : _mm512_loadu_ps(x.bias + v * lanes);
    TENON_UNROLL for (int r = 0; r < kRows; ++r) {
      sum[r][v] = x.adds ? _mm512_loadu_ps(c + r * x.c_row + v * lanes) : bias;
    }
  }
  for (int64_t p = 0; p < x.depth; ++p, a += x.a_step, b += x.b_row) {
    __m512bh right[kVectors];
    TENON_UNROLL for (int v = 0; v < kVectors; ++v) {
      right[v] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + v * lanes));
    }
    TENON_UNROLL for (int r = 0; r < kRows; ++r) {
      const auto left = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int32_t>(a[r * x.a_row])));
      TENON_UNROLL for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm512_dpbf16_ps(sum[r][v], left, right[v]);
    }
  }
  TENON_UNROLL for (int r = 0; r < kRows; ++r) {
    TENON_UNROLL for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(c + r * x.c_row + v * lanes, sum[r][v]);
  }
}

using RunTile = void (*)(const PairProduct& product, int64_t first);

template <int kVectors, int... kRows>
RunTile tile_of(int64_t rows, std::integer_sequence<int, kRows...>) {
  constexpr RunTile all[] = {run_tile<kRows + 1, kVectors>...};
  return all[rows - 1];
}

template <int kVectors>
void run_rows(const PairProduct& x) {
  constexpr int most = most_rows(kVectors);
  for (int64_t first = 0; first < x.m; first += most) {
    const int64_t rows = std::min<int64_t>(most, x.m - first);
    tile_of<kVectors>(rows, std::make_integer_sequence<int, most>())(x, first);
  }
}

// Bit i of the mask is set for i < n.
inline __mmask16 first_lanes(int64_t n) { return static_cast<__mmask16>((1U << std::min<int64_t>(n, lanes)) - 1); }

// The bf16 of 16 values, each in the low half of a lane.
TENON_BF16 inline __m512i rounded(__m512 values) {
  return _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(values)));
}

}  // namespace

void run(const PairProduct& product) {
  if (product.n == 3 * lanes) return run_rows<3>(product);
  if (product.n == 2 * lanes) return run_rows<2>(product);
  run_rows<1>(product);
}

TENON_BF16 void round_row(Bf16Pair* to, const float* from, int64_t n) {
  for (int64_t i = 0; i < n; i += lanes, to += lanes / 2) {
    const __m512 values = _mm512_maskz_loadu_ps(first_lanes(n - i), from + i);
    const auto pairs = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(values));
    _mm256_mask_storeu_epi32(to, static_cast<__mmask8>(first_lanes(pairs_of(n - i)) & 0xff), pairs);
  }
}

TENON_BF16 void round_rows(Bf16Pair* to, int64_t to_row, const float* from, int64_t from_row, int64_t rows,
                           int64_t columns) {
  for (int64_t row = 0; row < rows; row += 2, to += to_row, from += 2 * from_row) {
    for (int64_t j = 0; j < columns; j += lanes) {
      const __mmask16 some = first_lanes(columns - j);
      __m512i pairs = rounded(_mm512_maskz_loadu_ps(some, from + j));
      if (row + 1 < rows) {
        const __m512i second = rounded(_mm512_maskz_loadu_ps(some, from + from_row + j));
        pairs = _mm512_or_si512(pairs, _mm512_slli_epi32(second, 16));
      }
      _mm512_mask_storeu_epi32(to + j, some, pairs);
    }
  }
}
#else
// No other processor has the instructions.
void run(const PairProduct&) {}
void round_row(Bf16Pair*, const float*, int64_t) {}
void round_rows(Bf16Pair*, int64_t, const float*, int64_t, int64_t, int64_t) {}
#endif

}  // namespace tenon::provider::cpu
