// The kernels of a matrix-vector product, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/vector_matmul/kernels.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <type_traits>

#include "hwy/highway.h"
#include "providers/cpu/elementwise/narrow-inl.h"
#include "providers/cpu/vector_matmul/kernel.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t longest_sum = 4096;  // products summed in T before the sum is added to the total
constexpr int64_t widest = 2048;       // columns whose sums fit in the L1 cache

template <class T>
using D = hn::ScalableTag<T>;
template <class T>
using V = hn::Vec<D<T>>;

template <class T>
HWY_INLINE V<T> multiply_add(V<T> x, V<T> y, V<T> sum) {
  if constexpr (std::is_floating_point_v<T>) {
    return hn::MulAdd(x, y, sum);
  } else {
    return hn::Add(sum, hn::Mul(x, y));
  }
}

template <class T, class E>
HWY_INLINE V<T> load(const E* from) {
  const D<T> d;
  if constexpr (sizeof(E) == sizeof(T)) {
    return hn::LoadU(d, from);
  } else if constexpr (!is_narrow_float<E>) {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<E, D<T>>(), from));
  } else if constexpr (std::is_same_v<E, F16Bits>) {
    return load_narrow(from);
  } else {
    const hn::RebindToUnsigned<D<T>> wide;
    const hn::Rebind<uint16_t, D<T>> half;
    const auto bits = hn::LoadU(half, reinterpret_cast<const uint16_t*>(from));
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
  }
}
// sum + x * value, where integers wrap.
template <class T, class E>
HWY_INLINE T add_one(T sum, E value, T x) {
  if constexpr (is_narrow_float<E>) {
    return sum + to_f32(value) * x;
  } else if constexpr (std::is_floating_point_v<T>) {
    return sum + value * x;
  } else {
    return static_cast<T>(sum + uint64_t{1} * value * x);
  }
}

// Loads 2 x Lanes elements. Those of bf16 come apart: the even ones, and the odd ones, in the order of `arrange`.
template <class T, class E>
HWY_INLINE void load_two(const E* from, V<T>& x, V<T>& y) {
  const D<T> d;
  if constexpr (std::is_same_v<E, Bf16Bits> && HWY_TARGET != HWY_SCALAR) {
    const hn::RebindToUnsigned<D<T>> words;
    const auto both = hn::LoadU(words, reinterpret_cast<const uint32_t*>(from));
    x = hn::BitCast(d, hn::ShiftLeft<16>(both));
    y = hn::BitCast(d, hn::And(both, hn::Set(words, 0xffff0000U)));
  } else {
    x = load<T>(from);
    y = load<T>(from + hn::Lanes(d));
  }
}

// Puts the even elements of each 2 x Lanes before the odd ones; the last elements stay as they are.
void arrange(float* to, const float* from, int64_t n) {
  const D<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  if (HWY_TARGET != HWY_SCALAR) {
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      for (int64_t j = 0; j < lanes; ++j) {
        to[i + j] = from[i + 2 * j];
        to[i + lanes + j] = from[i + 2 * j + 1];
      }
    }
  }
  std::copy(from + i, from + n, to + i);
}

#if HWY_TARGET != HWY_SCALAR
// The sums of the blocks of 16 bytes of v.
template <class DV, class VV>
HWY_INLINE auto sum_of_blocks(DV, VV v) {
  if constexpr (hn::MaxLanes(DV()) * sizeof(hn::TFromD<DV>) > 16) {
    const hn::Half<DV> half;
    return sum_of_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else {
    return v;
  }
}

// Per block: the sums of the elements of type U of x and y, in turns.
template <class T, class U>
HWY_INLINE V<T> sums_in_turns(V<T> x, V<T> y) {
  const D<T> d;
  const hn::Repartition<U, D<T>> units;
  const auto a = hn::BitCast(units, x), b = hn::BitCast(units, y);
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(units, a, b)), hn::BitCast(d, hn::InterleaveUpper(units, a, b)));
}
#endif

// The sums of the lanes of four vectors.
template <class T>
HWY_INLINE void sum_lanes_of_four(const V<T> (&v)[4], T* to) {
#if HWY_TARGET == HWY_SCALAR
  for (int r = 0; r < 4; ++r) to[r] = hn::GetLane(v[r]);
#else
  const D<T> d;
  const hn::CappedTag<T, 16 / sizeof(T)> block;
  if constexpr (sizeof(T) == 8) {
    hn::StoreU(sum_of_blocks(d, sums_in_turns<T, T>(v[0], v[1])), block, to);
    hn::StoreU(sum_of_blocks(d, sums_in_turns<T, T>(v[2], v[3])), block, to + 2);
  } else if constexpr (sizeof(T) == 4) {
    const V<T> first = sums_in_turns<T, T>(v[0], v[1]), second = sums_in_turns<T, T>(v[2], v[3]);
    hn::StoreU(sum_of_blocks(d, sums_in_turns<T, uint64_t>(first, second)), block, to);
  } else {
    const V<T> first = sums_in_turns<T, T>(v[0], v[1]), second = sums_in_turns<T, T>(v[2], v[3]);
    HWY_ALIGN T twice[8];
    hn::StoreU(sum_of_blocks(d, sums_in_turns<T, uint32_t>(first, second)), block, twice);
    for (int r = 0; r < 4; ++r) to[r] = static_cast<T>(twice[r] + twice[4 + r]);
  }
#endif
}

// Multiplies `count` rows, four or one, with x at a time, so that x is read once for all of them. `readable` elements
// from `a` on are readable. `x_rest` holds the elements of x that do not fill two vectors, and zeros after them.
template <int count, class T, class E, class X>
HWY_INLINE void dot_rows(T* y, int64_t step, const E* a, int64_t row, int64_t readable, const X* x, const T* x_rest,
                         int64_t k) {
  const D<T> d;
  constexpr auto most_lanes = static_cast<int64_t>(hn::MaxLanes(D<T>()));
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  using Total = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  Total totals[count] = {};
  T pieces[count];
  for (int64_t begin = 0; begin < k; begin += longest_sum) {
    const int64_t end = std::min(k, begin + longest_sum);
    V<T> sums[count];
    V<T> others[count];
    for (int r = 0; r < count; ++r) sums[r] = others[r] = hn::Zero(d);
    int64_t p = begin;
    for (; p + 2 * lanes <= end; p += 2 * lanes) {
      V<T> x_0, x_1;
      if constexpr (std::is_same_v<X, T>) {
        x_0 = hn::LoadU(d, x + p);
        x_1 = hn::LoadU(d, x + p + lanes);
      } else {
        load_two<T>(x + p, x_0, x_1);
      }
      for (int r = 0; r < count; ++r) {
        V<T> a_0, a_1;
        if constexpr (count == 4) __builtin_prefetch(a + (r + 4) * row + p);
        load_two<T>(a + r * row + p, a_0, a_1);
        sums[r] = multiply_add<T>(a_0, x_0, sums[r]);
        others[r] = multiply_add<T>(a_1, x_1, others[r]);
      }
    }
    if (p < end) {
      const int64_t rest = end - p;
      const bool two = rest > lanes;
      const V<T> x_0 = hn::LoadU(d, x_rest), x_1 = hn::LoadU(d, x_rest + lanes);
      const auto mask_0 = hn::FirstN(d, static_cast<size_t>(std::min(rest, lanes)));
      const auto mask_1 = hn::FirstN(d, static_cast<size_t>(two ? rest - lanes : 0));
      E copy[2 * most_lanes];
      for (int r = 0; r < count; ++r) {
        const E* from = a + r * row + p;
        if (r * row + p + 2 * lanes > readable) {
          std::copy(from, from + rest, copy);
          std::fill(copy + rest, copy + 2 * lanes, E{});
          from = copy;
        }
        sums[r] = multiply_add<T>(hn::IfThenElseZero(mask_0, load<T>(from)), x_0, sums[r]);
        if (two) others[r] = multiply_add<T>(hn::IfThenElseZero(mask_1, load<T>(from + lanes)), x_1, others[r]);
      }
    }
    for (int r = 0; r < count; ++r) sums[r] = hn::Add(sums[r], others[r]);
    if constexpr (count == 4) {
      sum_lanes_of_four<T>(sums, pieces);
    } else {
      pieces[0] = hn::GetLane(hn::SumOfLanes(d, sums[0]));
    }
    for (int r = 0; r < count; ++r) totals[r] = static_cast<Total>(totals[r] + static_cast<Total>(pieces[r]));
  }
  for (int r = 0; r < count; ++r) y[r * step] = static_cast<T>(totals[r]);
}

// Copies the elements of x that do not fill two vectors, and zeros after them.
template <class T, class X>
HWY_INLINE void copy_rest(T* to, const X* x, int64_t k) {
  const auto both = 2 * static_cast<int64_t>(hn::Lanes(D<T>()));
  const int64_t rest = k % both;
  for (int64_t i = 0; i < both; ++i) to[i] = i < rest ? add_one(T{0}, x[k - rest + i], T{1}) : T{0};
}

// Multiplies as many rows of at most `kVectors` vectors as can be read with whole vectors, and returns their number, a
// multiple of four.
template <int kVectors, class T, class E>
HWY_INLINE int64_t short_rows(T* y, int64_t step, const E* a, int64_t row, int64_t readable, const T* x_rest, int64_t m,
                              int64_t k) {
  const D<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V<T> factors[kVectors];
  hn::Mask<D<T>> masks[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    factors[v] = hn::LoadU(d, x_rest + v * lanes);
    masks[v] = hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(k - v * lanes, 0, lanes)));
  }
  int64_t i = 0;
  for (; i + 4 <= m && (i + 3) * row + kVectors * lanes <= readable; i += 4) {
    V<T> sums[4];
    for (int r = 0; r < 4; ++r) {
      const E* const from = a + (i + r) * row;
      sums[r] = hn::Mul(hn::IfThenElseZero(masks[0], load<T>(from)), factors[0]);
      for (int v = 1; v < kVectors; ++v) {
        const V<T> next = hn::IfThenElseZero(masks[v], load<T>(from + v * lanes));
        sums[r] = multiply_add<T>(next, factors[v], sums[r]);
      }
    }
    T four[4];
    sum_lanes_of_four<T>(sums, step == 1 ? y + i : four);
    if (step == 1) continue;
    for (int r = 0; r < 4; ++r) y[(i + r) * step] = four[r];
  }
  return i;
}

template <class T, class E>
void rows(T* y, int64_t step, const E* a, int64_t row, const T* x, int64_t m, int64_t k) {
  constexpr auto most_lanes = static_cast<int64_t>(hn::MaxLanes(D<T>()));
  HWY_ALIGN T rest[2 * most_lanes];
  copy_rest(rest, x, k);
  const int64_t readable = (m - 1) * row + k;
  int64_t i = 0;
  if (most_lanes > 1 && k <= most_lanes) {
    i = short_rows<1>(y, step, a, row, readable, rest, m, k);
  } else if (most_lanes > 1 && k < 2 * most_lanes) {
    i = short_rows<2>(y, step, a, row, readable, rest, m, k);
  }
  for (; i + 4 <= m; i += 4) dot_rows<4>(y + i * step, step, a + i * row, row, readable - i * row, x, rest, k);
  for (; i < m; ++i) dot_rows<1>(y + i * step, step, a + i * row, row, readable - i * row, x, rest, k);
}

template <class T, class E>
void pair(T* y, const E* a, const E* x, int64_t k) {
  HWY_ALIGN T rest[2 * hn::MaxLanes(D<T>())];
  copy_rest(rest, x, k);
  dot_rows<1>(y, 1, a, 0, k, x, rest, k);
}

// sums[j] += x[0] b[j] + x[1] b[row + j] + ... over `count` rows. Eight rows are as many streams as the hardware
// prefetches.
template <int count, class T, class E>
HWY_INLINE void add_rows(T* HWY_RESTRICT sums, const E* HWY_RESTRICT b, int64_t row, const T* x, int64_t n) {
  const D<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V<T> factors[count];
  for (int r = 0; r < count; ++r) factors[r] = hn::Set(d, x[r]);
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    V<T> sum = hn::LoadU(d, sums + j);
    for (int r = 0; r < count; ++r) {
      sum = multiply_add<T>(factors[r], load<T>(b + r * row + j), sum);
    }
    hn::StoreU(sum, d, sums + j);
  }
  for (; j < n; ++j) {
    for (int r = 0; r < count; ++r) sums[j] = add_one(sums[j], b[r * row + j], x[r]);
  }
}

template <class T, class E>
void columns(T* y, const E* b, int64_t row, const T* x, int64_t n, int64_t k) {
  HWY_ALIGN T sums[widest];
  for (int64_t first = 0; first < n; first += widest) {
    const int64_t wide = std::min(widest, n - first);
    for (int64_t begin = 0; begin < k; begin += longest_sum / 8) {
      const int64_t end = std::min(k, begin + longest_sum / 8);
      std::fill_n(sums, wide, T{0});
      int64_t p = begin;
      for (; p + 8 <= end; p += 8) add_rows<8>(sums, b + p * row + first, row, x + p, wide);
      for (; p < end; ++p) add_rows<1>(sums, b + p * row + first, row, x + p, wide);
      for (int64_t j = 0; j < wide; ++j) {
        y[first + j] = begin == 0 ? sums[j] : static_cast<T>(y[first + j] + sums[j]);
      }
    }
  }
}

// Processes kGroups times 32 columns of a panel. Their sums, for even and odd rows, stay in registers.
template <int kGroups>
HWY_INLINE void add_panel(float* HWY_RESTRICT y, const Bf16Bits* HWY_RESTRICT panel, const float* x, int64_t k) {
  const D<float> d;
  const hn::RebindToUnsigned<D<float>> words;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(d)), kHalves = 16 / kLanes, kVectors = kGroups * kHalves;
  const auto high = hn::Set(words, 0xffff0000u);
  for (int64_t begin = 0; begin < k; begin += longest_sum / 8) {
    const int64_t end = std::min(k, begin + longest_sum / 8);
    V<float> low_sums[2][kVectors], high_sums[2][kVectors];
    for (int r = 0; r < 2; ++r) {
      for (int v = 0; v < kVectors; ++v) low_sums[r][v] = high_sums[r][v] = hn::Zero(d);
    }
    const auto add_row = [&](int64_t p, int r) HWY_ATTR {
      const V<float> factor = hn::Set(d, x[p]);
      for (int v = 0; v < kVectors; ++v) {
        const Bf16Bits* const at = panel + p * kWordColumns + v * 2 * kLanes;
        const auto both = hn::LoadU(words, reinterpret_cast<const uint32_t*>(at));
        low_sums[r][v] = hn::MulAdd(factor, hn::BitCast(d, hn::ShiftLeft<16>(both)), low_sums[r][v]);
        high_sums[r][v] = hn::MulAdd(factor, hn::BitCast(d, hn::And(both, high)), high_sums[r][v]);
      }
    };
    int64_t p = begin;
    for (; p + 2 <= end; p += 2) {
      add_row(p, 0);
      add_row(p + 1, 1);
    }
    if (p < end) add_row(p, 0);
    for (int v = 0; v < kVectors; ++v) {
      float* const to = y + v / kHalves * 32 + v % kHalves * kLanes;
      const V<float> low_sum = hn::Add(low_sums[0][v], low_sums[1][v]);
      const V<float> high_sum = hn::Add(high_sums[0][v], high_sums[1][v]);
      hn::StoreU(begin == 0 ? low_sum : hn::Add(hn::LoadU(d, to), low_sum), d, to);
      hn::StoreU(begin == 0 ? high_sum : hn::Add(hn::LoadU(d, to + 16), high_sum), d, to + 16);
    }
  }
}

void panel(float* y, const Bf16Bits* panel, const float* x, int64_t k) {
  constexpr int kGroups = hn::MaxLanes(D<float>()) == 16 ? 2 : 1;  // with fewer lanes, registers hold fewer sums
  for (int64_t first = 0; first < kWordColumns; first += kGroups * 32)
    add_panel<kGroups>(y + first, panel + first, x, k);
}

}  // namespace

VectorKernels<float> kernels_f32() { return {rows<float, float>, columns<float, float>}; }
VectorKernels<double> kernels_f64() { return {rows<double, double>, columns<double, double>}; }
VectorKernels<float, Bf16Bits> kernels_bf16() {
  return {rows<float, Bf16Bits>, columns<float, Bf16Bits>, pair<float, Bf16Bits>, panel, arrange};
}
VectorKernels<float, F16Bits> kernels_f16() {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return {rows<float, F16Bits>, columns<float, F16Bits>, pair<float, F16Bits>};
#else
  return {};
#endif
}
VectorKernels<uint16_t, uint8_t> kernels_u8() {
  return {rows<uint16_t, uint8_t>, columns<uint16_t, uint8_t>, pair<uint16_t, uint8_t>};
}
VectorKernels<uint16_t> kernels_u16() { return {rows<uint16_t, uint16_t>, columns<uint16_t, uint16_t>}; }
VectorKernels<uint32_t> kernels_u32() { return {rows<uint32_t, uint32_t>, columns<uint32_t, uint32_t>}; }
VectorKernels<uint64_t> kernels_u64() { return {rows<uint64_t, uint64_t>, columns<uint64_t, uint64_t>}; }

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

template <>
VectorKernels<float> vector_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, kernels_f32)();
}
template <>
VectorKernels<double> vector_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, kernels_f64)();
}
template <>
VectorKernels<float, Bf16Bits> vector_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, kernels_bf16)();
}
template <>
VectorKernels<float, F16Bits> vector_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, kernels_f16)();
}
template <>
VectorKernels<uint16_t, uint8_t> vector_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, kernels_u8)();
}
template <>
VectorKernels<uint16_t> vector_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, kernels_u16)();
}
template <>
VectorKernels<uint32_t> vector_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, kernels_u32)();
}
template <>
VectorKernels<uint64_t> vector_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, kernels_u64)();
}

}  // namespace tenon::provider::cpu
#endif
