#include "providers/cpu/quantised/weight_digits.h"

#include <algorithm>
#include <bit>

#include "providers/cpu/quantised/vnni.h"

namespace tenon::provider::cpu {
namespace {

#if defined(__x86_64__)
// Sign-extends the lowest byte of each integer.
TENON_VNNI_INLINE __m512i lowest(__m512i integers) { return _mm512_srai_epi32(_mm512_slli_epi32(integers, 24), 24); }

TENON_VNNI bool split(const float* x, int64_t groups, int32_t offset, DigitGroup* out) {
  constexpr float greatest = 127 * 65536 + 127 * 256 + 127;
  for (int64_t g = 0; g < groups; ++g, ++out, x += kDigitGroup) {
    const __m512 first = _mm512_loadu_ps(x), second = _mm512_loadu_ps(x + 16);
    const __m512 bound = _mm512_set1_ps(0x1p100f);
    const __m512 a = _mm512_abs_ps(first), b = _mm512_abs_ps(second);
    if ((_mm512_cmp_ps_mask(a, bound, _CMP_NLE_UQ) | _mm512_cmp_ps_mask(b, bound, _CMP_NLE_UQ)) != 0) return false;
    const float most = _mm512_reduce_max_ps(_mm512_max_ps(a, b));
    if (most != 0 && most < 0x1p-80f) return false;
    float scale = 0;
    if (most != 0) {  // a power of two, so that only the conversion rounds
      scale = std::bit_cast<float>((276u << 23) - (std::bit_cast<uint32_t>(most) & 0x7f800000u));
      if (most * scale > greatest) scale /= 2;
    }
    out->unit[0] = most == 0 ? 0 : 1 / scale;
    out->unit[1] = out->unit[0] / 16;
    __m512i left = _mm512_cvtps_epi32(_mm512_mul_ps(first, _mm512_set1_ps(scale)));
    __m512i right = _mm512_cvtps_epi32(_mm512_mul_ps(second, _mm512_set1_ps(scale)));
    for (int digit = 0; digit < 3; ++digit) {
      const __m512i low = lowest(left), high = lowest(right);
      auto* const to = reinterpret_cast<__m128i*>(out->digits[digit]);
      _mm_storeu_si128(to, _mm512_cvtepi32_epi8(low));
      _mm_storeu_si128(to + 1, _mm512_cvtepi32_epi8(high));
      out->starts[0][digit] = offset * _mm512_reduce_add_epi32(_mm512_add_epi32(low, high));
      out->starts[1][digit] = 17 * out->starts[0][digit];
      left = _mm512_srai_epi32(_mm512_sub_epi32(left, low), 8);
      right = _mm512_srai_epi32(_mm512_sub_epi32(right, high), 8);
    }
  }
  return true;
}

// Prevents gcc 12 from reading the value from memory again for every product.
TENON_VNNI_INLINE __m512i read_once(const char* at) {
  __m512i words = _mm512_loadu_si512(at);
  asm("" : "+v"(words));
  return words;
}

TENON_VNNI_INLINE __m512i four_of(const DigitGroup& group, int digit, int index) {
  int32_t four;
  __builtin_memcpy(&four, group.digits[digit] + index * 4, 4);
  return _mm512_set1_epi32(four);
}

// Computes kVectors vectors of 16 columns: half a panel, from `half` on; one panel; or two panels. Several vectors
// share the reads of x; otherwise one row would be bound by these reads. Two panels are two streams of memory, which
// use its bandwidth better. In a 4-bit panel, both halves share bytes: the sums of the second half are computed from
// whole bytes, so they are 16 times its own sums plus those of the first half. This saves two thirds of the
// instructions that unpack bytes.
template <int kBits, int kRows, int kVectors>
TENON_VNNI void vectors_of(const WeightPanel& panel, int32_t half, const DigitGroup* x, int64_t x_row,
                           const float* sums, float* dst, int64_t dst_row, const float* bias, int32_t columns) {
  constexpr int fours = 8;  // groups of four rows per group of digits
  constexpr int sides = kRows * kVectors;
  constexpr bool shares = kBits == 4 && kVectors > 1;
  const int64_t blocks = (panel.depth + panel.block - 1) / panel.block;
  const __m512i mask = _mm512_set1_epi8(15);
  const auto shift = static_cast<unsigned>(4 * half);
  const char* const numbers = panel.numbers + (kBits == 8 ? half * 64 : 0);
  __m512 total[sides];
  TENON_UNROLL for (int i = 0; i < sides; ++i) total[i] = _mm512_loadu_ps(bias + (half + i % kVectors) * 16);
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = b * panel.block / kDigitGroup;
    const int64_t end = std::min((b + 1) * panel.block, panel.depth) / kDigitGroup;
    const float* const scale = panel.scale + b * panel.scale_row + half * 16;
    // The rows of scales are pages apart, so the hardware does not prefetch them in time.
    TENON_UNROLL for (int v = 0; v < kVectors; ++v)
        _mm_prefetch(reinterpret_cast<const char*>(scale + 8 * panel.scale_row + v * 16), _MM_HINT_T0);
    __m512 part[sides];
    TENON_UNROLL for (int i = 0; i < sides; ++i) part[i] = _mm512_setzero_ps();
    for (int64_t g = begin; g < end; ++g) {
      __m512i sum[3 * sides];
      TENON_UNROLL for (int i = 0; i < sides; ++i) {
        TENON_UNROLL for (int d = 0; d < 3; ++d) sum[3 * i + d] =
            _mm512_set1_epi32(x[i / kVectors * x_row + g].starts[shares ? i % 2 : 0][d]);
      }
      TENON_UNROLL for (int f = 0; f < fours; ++f) {
        const char* const four_rows = numbers + (g * fours + f) * 16 * kBits;
        __m512i words[kVectors];
        TENON_UNROLL for (int v = 0; v < kVectors; ++v) {
          const char* const at = four_rows + v / 2 * panel.bytes;
          if (kBits == 8) {
            words[v] = read_once(at + v % 2 * 64);
          } else if (shares) {
            words[v] = v % 2 == 0 ? read_once(at) : words[v - v % 2];
          } else {
            words[v] = _mm512_and_si512(_mm512_srli_epi32(_mm512_loadu_si512(at), shift), mask);
          }
        }
        TENON_UNROLL for (int v = 0; shares && v < kVectors; v += 2) words[v] = _mm512_and_si512(words[v], mask);
        TENON_UNROLL for (int r = 0; r < kRows; ++r) {
          TENON_UNROLL for (int d = 0; d < 3; ++d) {
            const __m512i four = four_of(x[r * x_row + g], d, f);
            TENON_UNROLL for (int v = 0; v < kVectors; ++v) {
              __m512i& to = sum[3 * (r * kVectors + v) + d];
              to = _mm512_dpbusd_epi32(to, words[v], four);
            }
          }
        }
      }
      __m512i low[sides], high[sides];
      TENON_UNROLL for (int i = 0; i < sides; ++i) {  // each sum is below 2^21
        low[i] = sum[3 * i];
        high[i] = _mm512_add_epi32(_mm512_slli_epi32(sum[3 * i + 2], 8), sum[3 * i + 1]);
        const bool is_second = shares && i % 2 == 1;
        const __m512i own_low = is_second ? _mm512_sub_epi32(low[i], low[i - is_second]) : low[i];
        const __m512i own_high = is_second ? _mm512_sub_epi32(high[i], high[i - is_second]) : high[i];
        const __m512 value =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(own_high), _mm512_set1_ps(256), _mm512_cvtepi32_ps(own_low));
        part[i] = _mm512_fmadd_ps(value, _mm512_set1_ps(x[i / kVectors * x_row + g].unit[is_second]), part[i]);
      }
    }
    TENON_UNROLL for (int i = 0; i < sides; ++i) {
      if (panel.zero != nullptr) {
        const __m512 zero = _mm512_loadu_ps(panel.zero + b * panel.zero_row + (half + i % kVectors) * 16);
        part[i] = _mm512_fnmadd_ps(zero, _mm512_set1_ps(sums[i / kVectors * blocks + b]), part[i]);
      }
      total[i] = _mm512_fmadd_ps(part[i], _mm512_loadu_ps(scale + i % kVectors * 16), total[i]);
    }
  }
  TENON_UNROLL for (int i = 0; i < sides; ++i) {
    const int32_t column = (half + i % kVectors) * 16, left = columns - column;
    if (left <= 0) continue;
    const auto stored = static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1);
    _mm512_mask_storeu_ps(dst + i / kVectors * dst_row + column, stored, total[i]);
  }
}

template <int kBits, int kRows>
void few_rows(const WeightPanel& panel, const DigitGroup* x, int64_t x_row, const float* sums, float* dst,
              int64_t dst_row, const float* bias, int32_t columns) {
  if (kRows == 1 && columns > kPanelColumns)
    return vectors_of<kBits, 1, 4>(panel, 0, x, x_row, sums, dst, dst_row, bias, columns);
  if (kRows <= 2) return vectors_of<kBits, kRows, 2>(panel, 0, x, x_row, sums, dst, dst_row, bias, columns);
  for (int32_t half = 0; half < 2; ++half)
    vectors_of<kBits, kRows, 1>(panel, half, x, x_row, sums, dst, dst_row, bias, columns);
}

template <int kBits>
void few_of(const WeightPanel& panel, const DigitGroup* x, int64_t x_row, const float* sums, int32_t rows, float* dst,
            int64_t dst_row, const float* bias, int32_t columns) {
  switch (rows) {
    case 1: return few_rows<kBits, 1>(panel, x, x_row, sums, dst, dst_row, bias, columns);
    case 2: return few_rows<kBits, 2>(panel, x, x_row, sums, dst, dst_row, bias, columns);
    case 3: return few_rows<kBits, 3>(panel, x, x_row, sums, dst, dst_row, bias, columns);
    default: return few_rows<kBits, 4>(panel, x, x_row, sums, dst, dst_row, bias, columns);
  }
}

void few(const WeightPanel& panel, const DigitGroup* x, int64_t x_row, const float* sums, int32_t rows, float* dst,
         int64_t dst_row, const float* bias, int32_t columns) {
  panel.bits == 4 ? few_of<4>(panel, x, x_row, sums, rows, dst, dst_row, bias, columns)
                  : few_of<8>(panel, x, x_row, sums, rows, dst, dst_row, bias, columns);
}
#endif

}  // namespace

DigitKernels digit_kernels([[maybe_unused]] SimdLevel level) {
#if defined(__x86_64__)
  if (has_vnni(level)) return {split, few};
#endif
  return {};
}

}  // namespace tenon::provider::cpu
