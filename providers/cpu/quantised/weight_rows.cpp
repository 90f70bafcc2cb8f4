#include "providers/cpu/quantised/weight_rows.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#if !defined(__clang__)  // gcc 12 sees the undefined vectors of its own intrinsics (gcc.gnu.org/PR105593)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#endif

namespace tenon::provider::cpu {
namespace {

// --- any processor ---

float number_at(const WeightPanel& panel, int64_t k, int32_t column) {
  const int64_t words = panel.bits == 4 ? column % 16 : column;
  const auto byte = static_cast<uint8_t>(panel.numbers[k / 4 * 16 * panel.bits + words * 4 + k % 4]);
  return static_cast<float>((panel.bits == 4 ? byte >> column / 16 * 4 & 15 : byte) + panel.offset);
}

void plain_reals(const WeightPanel& panel, int64_t begin, int64_t end, float* out) {
  for (int64_t k = begin; k < end; ++k, out += kPanelColumns) {
    const float* scale = panel.scale + k / panel.block * panel.scale_row;
    const float* zero = panel.zero == nullptr ? nullptr : panel.zero + k / panel.block * panel.zero_row;
    for (int32_t c = 0; c < kPanelColumns; ++c) {
      out[c] = (number_at(panel, k, c) - (zero == nullptr ? 0 : zero[c])) * scale[c];
    }
  }
}

void plain_many(const float* x, int64_t x_row, const float* w, int64_t depth, int32_t rows, float* dst, int64_t dst_row,
                int32_t columns) {
  constexpr int64_t part = 32;  // partial sums round less than one long sum
  for (int32_t r = 0; r < rows; ++r) {
    for (int64_t begin = 0; begin < depth; begin += part) {
      float sum[kPanelColumns] = {};
      for (int64_t k = begin; k < std::min(begin + part, depth); ++k) {
        const float left = x[r * x_row + k];
        for (int32_t c = 0; c < kPanelColumns; ++c) sum[c] += left * w[k * kPanelColumns + c];
      }
      for (int32_t c = 0; c < columns; ++c) dst[r * dst_row + c] += sum[c];
    }
  }
}

constexpr WeightKernels plain = {nullptr, plain_reals, plain_many};

// --- AVX-512 as in Skylake servers ---

#if defined(__x86_64__)
#define TENON_AVX3 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define TENON_AVX3_INLINE TENON_AVX3 __attribute__((always_inline)) inline
// Sums stay in registers only if gcc unrolls the loops over rows early.
#if defined(__clang__)
#define TENON_UNROLL _Pragma("unroll")
#else
#define TENON_UNROLL _Pragma("GCC unroll 16")
#endif

TENON_AVX3_INLINE __m512 table_of(int32_t offset) {
  const __m512i counted = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  return _mm512_cvtepi32_ps(_mm512_add_epi32(counted, _mm512_set1_epi32(offset)));
}

// The words of half a panel, for the four rows from k on.
template <int kBits>
TENON_AVX3_INLINE __m512i words_of(const char* numbers, int64_t k, int half) {
  return _mm512_loadu_si512(numbers + k / 4 * 16 * kBits + (kBits == 8 ? half * 64 : 0));
}

// The integers of row `j` of the words.
template <int kBits>
TENON_AVX3_INLINE __m512 numbers_of(__m512i words, int half, int j, __m512 table, __m512i offset) {
  const __m512i moved = _mm512_srli_epi32(words, static_cast<unsigned>(8 * j + (kBits == 4 ? 4 * half : 0)));
  if (kBits == 4) return _mm512_permutexvar_ps(moved, table);
  return _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_and_si512(moved, _mm512_set1_epi32(255)), offset));
}

TENON_AVX3_INLINE __mmask16 mask_of(int32_t columns) {
  return static_cast<__mmask16>(columns >= 16 ? 0xffff : columns <= 0 ? 0 : (1 << columns) - 1);
}

template <int kBits, int kRows>
TENON_AVX3 void few_rows(const WeightPanel& panel, const float* x, int64_t x_row, const float* sums, float* dst,
                         int64_t dst_row, const float* bias, int32_t columns) {
  const __m512 table = table_of(panel.offset);
  const __m512i offset = _mm512_set1_epi32(panel.offset);
  const int64_t blocks = (panel.depth + panel.block - 1) / panel.block;
  __m512 left[kRows], right[kRows];
  TENON_UNROLL for (int r = 0; r < kRows; ++r) left[r] = right[r] = _mm512_setzero_ps();
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = b * panel.block, end = std::min(begin + panel.block, panel.depth);
    __m512 part[2 * kRows], more[2 * kRows];  // for even and odd rows
    TENON_UNROLL for (int r = 0; r < 2 * kRows; ++r) part[r] = more[r] = _mm512_setzero_ps();
    for (int64_t k = begin; k < end; k += 4) {  // x is padded with zeros
      const __m512i words[2] = {words_of<kBits>(panel.numbers, k, 0), words_of<kBits>(panel.numbers, k, 1)};
      TENON_UNROLL for (int j = 0; j < 4; ++j) {
        const __m512 a = numbers_of<kBits>(words[0], 0, j, table, offset);
        const __m512 c = numbers_of<kBits>(words[1], 1, j, table, offset);
        TENON_UNROLL for (int r = 0; r < kRows; ++r) {
          const __m512 value = _mm512_set1_ps(x[r * x_row + k + j]);
          part[r + j % 2 * kRows] = _mm512_fmadd_ps(a, value, part[r + j % 2 * kRows]);
          more[r + j % 2 * kRows] = _mm512_fmadd_ps(c, value, more[r + j % 2 * kRows]);
        }
      }
    }
    const float* scale = panel.scale + b * panel.scale_row;
    const __m512 scales[2] = {_mm512_loadu_ps(scale), _mm512_loadu_ps(scale + 16)};
    __m512 zeros[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    if (panel.zero != nullptr) {
      zeros[0] = _mm512_loadu_ps(panel.zero + b * panel.zero_row);
      zeros[1] = _mm512_loadu_ps(panel.zero + b * panel.zero_row + 16);
    }
    TENON_UNROLL for (int r = 0; r < kRows; ++r) {
      const __m512 sum = _mm512_set1_ps(sums[r * blocks + b]);
      const __m512 a = _mm512_fnmadd_ps(zeros[0], sum, _mm512_add_ps(part[r], part[r + kRows]));
      const __m512 c = _mm512_fnmadd_ps(zeros[1], sum, _mm512_add_ps(more[r], more[r + kRows]));
      left[r] = _mm512_fmadd_ps(a, scales[0], left[r]);
      right[r] = _mm512_fmadd_ps(c, scales[1], right[r]);
    }
  }
  const __mmask16 first = mask_of(columns), second = mask_of(columns - 16);
  TENON_UNROLL for (int r = 0; r < kRows; ++r) {
    const __m512 a = _mm512_add_ps(left[r], _mm512_loadu_ps(bias));
    const __m512 c = _mm512_add_ps(right[r], _mm512_loadu_ps(bias + 16));
    _mm512_mask_storeu_ps(dst + r * dst_row, first, a);
    _mm512_mask_storeu_ps(dst + r * dst_row + 16, second, c);
  }
}

template <int kBits>
void few_of(const WeightPanel& panel, const float* x, int64_t x_row, const float* sums, int32_t rows, float* dst,
            int64_t dst_row, const float* bias, int32_t columns) {
  switch (rows) {
    case 1: return few_rows<kBits, 1>(panel, x, x_row, sums, dst, dst_row, bias, columns);
    case 2: return few_rows<kBits, 2>(panel, x, x_row, sums, dst, dst_row, bias, columns);
    case 3: return few_rows<kBits, 3>(panel, x, x_row, sums, dst, dst_row, bias, columns);
    default: return few_rows<kBits, 4>(panel, x, x_row, sums, dst, dst_row, bias, columns);
  }
}

void few(const WeightPanel& panel, const float* x, int64_t x_row, const float* sums, int32_t rows, float* dst,
         int64_t dst_row, const float* bias, int32_t columns) {
  panel.bits == 4 ? few_of<4>(panel, x, x_row, sums, rows, dst, dst_row, bias, columns)
                  : few_of<8>(panel, x, x_row, sums, rows, dst, dst_row, bias, columns);
}

template <int kBits>
TENON_AVX3 void reals_of(const WeightPanel& panel, int64_t begin, int64_t end, float* out) {
  const __m512 table = table_of(panel.offset);
  const __m512i offset = _mm512_set1_epi32(panel.offset);
  for (int32_t half = 0; half < 2; ++half) {
    float* to = out + half * 16;
    for (int64_t k = begin; k < end; ++k, to += kPanelColumns) {
      const int64_t b = k / panel.block;
      const __m512 scale = _mm512_loadu_ps(panel.scale + b * panel.scale_row + half * 16);
      const __m512 zero =
          panel.zero == nullptr ? _mm512_setzero_ps() : _mm512_loadu_ps(panel.zero + b * panel.zero_row + half * 16);
      const __m512i words = words_of<kBits>(panel.numbers, k, half);
      const __m512i moved = _mm512_srl_epi32(words, _mm_cvtsi32_si128(static_cast<int>(k % 4 * 8)));
      const __m512 value = numbers_of<kBits>(moved, half, 0, table, offset);
      _mm512_storeu_ps(to, _mm512_mul_ps(_mm512_sub_ps(value, zero), scale));
    }
  }
}

void reals(const WeightPanel& panel, int64_t begin, int64_t end, float* out) {
  panel.bits == 4 ? reals_of<4>(panel, begin, end, out) : reals_of<8>(panel, begin, end, out);
}

template <int kRows>
TENON_AVX3 void many_rows(const float* x, int64_t x_row, const float* w, int64_t depth, float* dst, int64_t dst_row,
                          int32_t columns) {
  const __mmask16 first = mask_of(columns), second = mask_of(columns - 16);
  __m512 left[kRows], right[kRows];
  TENON_UNROLL for (int r = 0; r < kRows; ++r) {
    left[r] = _mm512_maskz_loadu_ps(first, dst + r * dst_row);
    right[r] = _mm512_maskz_loadu_ps(second, dst + r * dst_row + 16);
  }
  for (int64_t k = 0; k < depth; ++k, w += kPanelColumns) {
    const __m512 a = _mm512_loadu_ps(w), c = _mm512_loadu_ps(w + 16);
    TENON_UNROLL for (int r = 0; r < kRows; ++r) {
      const __m512 value = _mm512_set1_ps(x[r * x_row + k]);
      left[r] = _mm512_fmadd_ps(value, a, left[r]);
      right[r] = _mm512_fmadd_ps(value, c, right[r]);
    }
  }
  TENON_UNROLL for (int r = 0; r < kRows; ++r) {
    _mm512_mask_storeu_ps(dst + r * dst_row, first, left[r]);
    _mm512_mask_storeu_ps(dst + r * dst_row + 16, second, right[r]);
  }
}

void many(const float* x, int64_t x_row, const float* w, int64_t depth, int32_t rows, float* dst, int64_t dst_row,
          int32_t columns) {
  for (; rows >= 12; rows -= 12, x += 12 * x_row, dst += 12 * dst_row) {
    many_rows<12>(x, x_row, w, depth, dst, dst_row, columns);
  }
  for (; rows >= 4; rows -= 4, x += 4 * x_row, dst += 4 * dst_row) {
    many_rows<4>(x, x_row, w, depth, dst, dst_row, columns);
  }
  for (; rows > 0; --rows, x += x_row, dst += dst_row) many_rows<1>(x, x_row, w, depth, dst, dst_row, columns);
}

constexpr WeightKernels avx3 = {few, reals, many};
#endif

}  // namespace

const WeightKernels& weight_kernels([[maybe_unused]] SimdLevel level) {
#if defined(__x86_64__)
  if (level == SimdLevel::avx3) return avx3;
#endif
  return plain;
}

}  // namespace tenon::provider::cpu
