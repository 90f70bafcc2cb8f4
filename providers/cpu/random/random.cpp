// The formulas are above ep_random_attributes in ep_api.h. This file is compiled without contraction of products and
// sums, so that every device gives the same bits.
#include "providers/cpu/random/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// Inlines helpers into each kernel, because kernels are compiled for several instruction sets.
#define TENON_INLINE [[gnu::always_inline]] inline

constexpr int64_t blocks_at_once = 256;
constexpr int64_t words_at_once = 4 * blocks_at_once;

// Word i of all blocks is one array, so that loops over blocks vectorise.
struct Blocks {
  alignas(64) uint32_t words[4][blocks_at_once];
};

constexpr int64_t few_blocks = 8;  // used when few numbers are enough

// Computes blocks offset, offset + 1, ... (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers:
// as easy as 1, 2, 3 (SC11), section 3.3).
template <int64_t kCount>
TENON_INLINE void philox(uint64_t seed, uint64_t offset, Blocks* blocks) {
  auto& x = blocks->words;
  for (int64_t i = 0; i < kCount; ++i) {
    const uint64_t counter = offset + static_cast<uint64_t>(i);
    x[0][i] = static_cast<uint32_t>(counter);
    x[1][i] = static_cast<uint32_t>(counter >> 32);
    x[2][i] = x[3][i] = 0;
  }
  auto low = static_cast<uint32_t>(seed);
  auto high = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int64_t i = 0; i < kCount; ++i) {
      const uint64_t a = uint64_t{0xD2511F53} * x[0][i];
      const uint64_t b = uint64_t{0xCD9E8D57} * x[2][i];
      x[0][i] = static_cast<uint32_t>(b >> 32) ^ x[1][i] ^ low;
      x[1][i] = static_cast<uint32_t>(b);
      x[2][i] = static_cast<uint32_t>(a >> 32) ^ x[3][i] ^ high;
      x[3][i] = static_cast<uint32_t>(a);
    }
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
}

// Uniform numbers use the upper `bits` bits of a word.
template <int64_t kCount>
TENON_INLINE void uniform(const Blocks& blocks, int32_t bits, float* values) {
  const auto unit = std::bit_cast<float>((127U - static_cast<uint32_t>(bits)) << 23);  // 2^-bits
  for (int64_t i = 0; i < kCount; ++i) {
    for (int64_t w = 0; w < 4; ++w) {
      values[4 * i + w] = static_cast<float>(static_cast<int32_t>(blocks.words[w][i] >> (32 - bits))) * unit;
    }
  }
}

template <int64_t kCount>
TENON_INLINE void uniform_f64(const Blocks& blocks, double* values) {
  for (int64_t i = 0; i < kCount; ++i) {
    for (int64_t pair = 0; pair < 2; ++pair) {
      const uint64_t word = uint64_t{blocks.words[2 * pair][i]} << 32 | blocks.words[2 * pair + 1][i];
      values[2 * i + pair] = static_cast<double>(word >> 11) * 0x1p-53;
    }
  }
}

// sqrt(-2 log((w / 256 + 1) * 2^-24)).
TENON_INLINE float radius(uint32_t w) {
  const auto k = static_cast<float>(static_cast<int32_t>((w >> 8) + 1));
  const auto bits = std::bit_cast<uint32_t>(k);
  const auto upper = static_cast<int32_t>(bits >> 22 & 1);  // 1 if the significand is at least 1.5
  const int32_t e = static_cast<int32_t>(bits >> 23) - 127 + upper - 24;
  const auto m = std::bit_cast<float>((bits & 0x7fffff) | static_cast<uint32_t>(127 - upper) << 23);
  const float s = (m - 1) / (m + 1);
  const float q = s * s;
  const float series = 1 + q * (1 / 3.F + q * (1 / 5.F + q * (1 / 7.F + q * (1 / 9.F))));
  return std::sqrt(-2 * (static_cast<float>(e) * 0.693147182F + (2 * s) * series));
}

TENON_INLINE float with_sign(float x, uint32_t sign) { return std::bit_cast<float>(std::bit_cast<uint32_t>(x) ^ sign); }

template <int64_t kCount>
TENON_INLINE void normal(const Blocks& blocks, float* values) {
  for (int64_t i = 0; i < kCount; ++i) {
    for (int64_t pair = 0; pair < 2; ++pair) {
      const float r = radius(blocks.words[2 * pair][i]);
      const uint32_t v = blocks.words[2 * pair + 1][i];
      const float a = (static_cast<float>(static_cast<int32_t>(v >> 8 & 0x3fffff)) * 0x1p-22F - 0.5F) * 1.57079637F;
      const float b = a * a;
      const float sine = a * (1 + b * (-1 / 6.F + b * (1 / 120.F + b * (-1 / 5040.F + b * (1 / 362880.F)))));
      const float cosine = 1 + b * (-1 / 2.F + b * (1 / 24.F + b * (-1 / 720.F + b * (1 / 40320.F))));
      // Rotates by quarter turns: {c, s}, {-s, c}, {-c, -s}, {s, -c}.
      const uint32_t turn = v >> 30;
      const bool odd = (turn & 1) != 0;
      const float first = odd ? sine : cosine;
      const float second = odd ? cosine : sine;
      values[4 * i + 2 * pair] = with_sign(first, (turn ^ turn >> 1) << 31) * r;
      values[4 * i + 2 * pair + 1] = with_sign(second, turn >> 1 << 31) * r;
    }
  }
}

// Turns the words of the blocks into elements of one word each, or of two words with the first one in the upper half.
template <int64_t kCount>
TENON_INLINE void words_of(const Blocks& blocks, uint32_t* values) {
  for (int64_t i = 0; i < kCount; ++i) {
    for (int64_t w = 0; w < 4; ++w) values[4 * i + w] = blocks.words[w][i];
  }
}
template <int64_t kCount>
TENON_INLINE void long_words_of(const Blocks& blocks, uint64_t* values) {
  for (int64_t i = 0; i < kCount; ++i) {
    for (int64_t pair = 0; pair < 2; ++pair) {
      values[2 * i + pair] = uint64_t{blocks.words[2 * pair][i]} << 32 | blocks.words[2 * pair + 1][i];
    }
  }
}

// Computes `count` blocks starting at `offset`; count is few_blocks or blocks_at_once.
using Philox = void (*)(int64_t count, uint64_t seed, uint64_t offset, Blocks* blocks);
TENON_INLINE void philox_some(int64_t count, uint64_t seed, uint64_t offset, Blocks* blocks) {
  count == few_blocks ? philox<few_blocks>(seed, offset, blocks) : philox<blocks_at_once>(seed, offset, blocks);
}
void philox_baseline(int64_t count, uint64_t seed, uint64_t offset, Blocks* blocks) {
  philox_some(count, seed, offset, blocks);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] void philox_avx2(int64_t count, uint64_t seed, uint64_t offset, Blocks* blocks) {
  philox_some(count, seed, offset, blocks);
}

#define TENON_AVX3 gnu::target("avx512f,avx512bw,avx512vl,avx512dq")

// Eight blocks. Each word is the lower half of 64 bits; the upper halves are undefined.
struct EightBlocks {
  __m512i x0, x1, x2, x3;
};
[[TENON_AVX3, gnu::always_inline]] inline EightBlocks eight_blocks(uint64_t counter) {
  const __m512i counters =
      _mm512_add_epi64(_mm512_set1_epi64(static_cast<int64_t>(counter)), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
  return {counters, _mm512_maskz_srli_epi64(0xff, counters, 32), _mm512_setzero_si512(), _mm512_setzero_si512()};
}
[[TENON_AVX3, gnu::always_inline]] inline void philox_round(EightBlocks* x, __m512i low, __m512i high) {
  constexpr __mmask8 all = 0xff;  // gcc 12 warns about the functions without a mask
  constexpr int xor_of_three = 0x96;
  const __m512i a = _mm512_maskz_mul_epu32(all, x->x0, _mm512_set1_epi64(0xD2511F53));
  const __m512i b = _mm512_maskz_mul_epu32(all, x->x2, _mm512_set1_epi64(0xCD9E8D57));
  x->x0 = _mm512_ternarylogic_epi64(_mm512_maskz_srli_epi64(all, b, 32), x->x1, low, xor_of_three);
  x->x1 = b;
  x->x2 = _mm512_ternarylogic_epi64(_mm512_maskz_srli_epi64(all, a, 32), x->x3, high, xor_of_three);
  x->x3 = a;
}
[[TENON_AVX3, gnu::always_inline]] inline void put_words(const EightBlocks& x, Blocks* blocks, int64_t at) {
  const __m512i words[4] = {x.x0, x.x1, x.x2, x.x3};
  for (int w = 0; w < 4; ++w) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(blocks->words[w] + at), _mm512_maskz_cvtepi64_epi32(0xff, words[w]));
  }
}

// Like philox(), but 16 blocks stay in registers for all rounds.
[[TENON_AVX3]] void philox_avx3(int64_t count, uint64_t seed, uint64_t offset, Blocks* blocks) {
  for (int64_t i = 0; i < count; i += 16) {
    EightBlocks x = eight_blocks(offset + static_cast<uint64_t>(i));
    EightBlocks y = eight_blocks(offset + static_cast<uint64_t>(i + 8));
    auto low = static_cast<uint32_t>(seed);
    auto high = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      philox_round(&x, _mm512_set1_epi64(low), _mm512_set1_epi64(high));
      philox_round(&y, _mm512_set1_epi64(low), _mm512_set1_epi64(high));
      low += 0x9E3779B9;
      high += 0xBB67AE85;
    }
    put_words(x, blocks, i);
    put_words(y, blocks, i + 8);
  }
}
#endif
Philox philox_of(SimdLevel level) {
#if defined(__x86_64__)
  if (level == SimdLevel::avx3) return philox_avx3;
  if (level == SimdLevel::avx2) return philox_avx2;
#endif
  static_cast<void>(level);
  return philox_baseline;
}

enum class Kind : uint8_t { WORDS, LONG_WORDS, UNIFORM, UNIFORM_F64, NORMAL };

// Computes the numbers of kCount blocks. `bits` is the number of bits of a uniform number.
template <int64_t kCount>
TENON_INLINE void draw(Kind kind, int32_t bits, const Blocks& blocks, void* values) {
  switch (kind) {
    case Kind::WORDS: return words_of<kCount>(blocks, static_cast<uint32_t*>(values));
    case Kind::LONG_WORDS: return long_words_of<kCount>(blocks, static_cast<uint64_t*>(values));
    case Kind::UNIFORM: return uniform<kCount>(blocks, bits, static_cast<float*>(values));
    case Kind::UNIFORM_F64: return uniform_f64<kCount>(blocks, static_cast<double*>(values));
    default: return normal<kCount>(blocks, static_cast<float*>(values));
  }
}

// Processes few_blocks blocks if `few`, else blocks_at_once.
using Draw = void (*)(bool few, Kind kind, int32_t bits, const Blocks& blocks, void* values);
TENON_INLINE void draw_some(bool few, Kind kind, int32_t bits, const Blocks& blocks, void* values) {
  few ? draw<few_blocks>(kind, bits, blocks, values) : draw<blocks_at_once>(kind, bits, blocks, values);
}
void draw_baseline(bool few, Kind kind, int32_t bits, const Blocks& blocks, void* values) {
  draw_some(few, kind, bits, blocks, values);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] void draw_avx2(bool few, Kind kind, int32_t bits, const Blocks& blocks, void* values) {
  draw_some(few, kind, bits, blocks, values);
}
[[TENON_AVX3]] void draw_avx3(bool few, Kind kind, int32_t bits, const Blocks& blocks, void* values) {
  draw_some(few, kind, bits, blocks, values);
}
#endif
Draw draw_of(SimdLevel level) {
#if defined(__x86_64__)
  if (level == SimdLevel::avx3) return draw_avx3;
  if (level == SimdLevel::avx2) return draw_avx2;
#endif
  static_cast<void>(level);
  return draw_baseline;
}

class RandomPrimitive final : public ep_primitive {
 public:
  RandomPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        philox_(philox_of(on.simd)),
        draw_(draw_of(on.simd)),
        dtype_(desc.operands[0].dtype),
        src_(find_operand(desc, EP_ROLE_SRC)),
        kind_(kind_of(desc.attributes.random.distribution, dtype_)),
        format_(dtype_, on.simd) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    uint64_t start[2] = {};
    if (src_ >= 0) {
      const auto* const pair = reinterpret_cast<const uint64_t*>(address_of(launch.operands[src_]));
      start[0] = pair[0];
      start[1] = pair[shape_of(desc_.operands[src_], launch.shapes, static_cast<uint32_t>(src_)).strides[0]];
    } else if (launch.scalar_count < 2) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT,
                       "random has no launch scalars 0 and 1, seed and offset.");
    } else {
      for (int i = 0; i < 2; ++i) start[i] = launch.scalars[i].value.u64;
    }
    const Axes dst = axes_of(shape_of(desc_.operands[0], launch.shapes, 0), ~0U, true);
    const int64_t count = dst.count();
    const int64_t at_once = dtype_size(dtype_) == 8 ? words_at_once / 2 : words_at_once;
    const int64_t pieces = (count + at_once - 1) / at_once;
    char* const to = address_of(launch.operands[0]);
    parallel(device->threads, count * (kind_ == Kind::NORMAL ? 4 : 2), [&](int32_t part, int32_t parts) {
      for (int64_t piece = pieces * part / parts; piece < pieces * (part + 1) / parts; ++piece) {
        const int64_t first = piece * at_once;
        run(start[0], start[1] + static_cast<uint64_t>(piece * blocks_at_once), dst, first,
            std::min(at_once, count - first), to);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  static Kind kind_of(int32_t distribution, int32_t dtype) {
    const bool wide = dtype_size(dtype) == 8;
    if (distribution == EP_RANDOM_BITS) return wide ? Kind::LONG_WORDS : Kind::WORDS;
    if (distribution == EP_RANDOM_NORMAL) return Kind::NORMAL;
    return wide ? Kind::UNIFORM_F64 : Kind::UNIFORM;
  }

  void run(uint64_t seed, uint64_t offset, const Axes& dst, int64_t first, int64_t n, char* to) const {
    alignas(64) char values[words_at_once * sizeof(float)];
    const int64_t words = dtype_size(dtype_) == 8 ? 2 * n : n;
    const int32_t bits = dtype_ == EP_DTYPE_f32 ? 24 : dtype_ == EP_DTYPE_f16 ? 11 : 8;
    const bool few = words <= 4 * few_blocks;
    Blocks blocks;
    philox_(few ? few_blocks : blocks_at_once, seed, offset, &blocks);
    draw_(few, kind_, bits, blocks, values);
    if (kind_ == Kind::WORDS) return put(reinterpret_cast<const uint32_t*>(values), dst, first, n, to);
    if (kind_ == Kind::LONG_WORDS) return put(reinterpret_cast<const uint64_t*>(values), dst, first, n, to);
    if (dst.contiguous()) return format_.write(to + first * format_.size, 1, values, 1, n);
    for (int64_t i = 0; i < n; ++i) {
      format_.write(to + dst.offset(first + i) * format_.size, 1, values + i * format_.compute_size, 1, 1);
    }
  }

  template <class T>
  static void put(const T* values, const Axes& dst, int64_t first, int64_t n, char* to) {
    T* const elements = reinterpret_cast<T*>(to);
    if (dst.contiguous()) {
      std::copy_n(values, n, elements + first);
    } else {
      for (int64_t i = 0; i < n; ++i) elements[dst.offset(first + i)] = values[i];
    }
  }

  ep_primitive_desc desc_;
  Philox philox_;
  Draw draw_;
  int32_t dtype_;
  int32_t src_;
  Kind kind_;
  RowFormat format_;  // the format of the random numbers
};

}  // namespace

Refusal Random::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const int32_t dtype = desc.operands[0].dtype;
  const int32_t distribution = desc.attributes.random.distribution;
  if (desc.operands[0].role != EP_ROLE_DST) return Refusal::because("it has no DST");
  const bool bits = distribution == EP_RANDOM_BITS;
  if (!bits && distribution != EP_RANDOM_UNIFORM && distribution != EP_RANDOM_NORMAL)
    return Refusal::because("distribution %d", distribution);
  const bool real = dtype == EP_DTYPE_f32 || dtype == EP_DTYPE_f16 || dtype == EP_DTYPE_bf16;
  const bool words = !is_floating(dtype) && dtype != EP_DTYPE_bool && dtype_size(dtype) >= 4;
  if (bits && !words) return Refusal::because("bits of %s", dtype_name(dtype));
  if (!bits && !real && (dtype != EP_DTYPE_f64 || distribution == EP_RANDOM_NORMAL))
    return Refusal::because("numbers of %s", dtype_name(dtype));
  if (desc.operand_count > 1 && desc.operands[1].dtype != EP_DTYPE_i64)
    return Refusal::because("seed and offset of %s", dtype_name(desc.operands[1].dtype));
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Random::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<RandomPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
