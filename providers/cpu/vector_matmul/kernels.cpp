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

template <class T, class E>
HWY_INLINE V<T> load(const E* from) {
  const D<T> d;
  if constexpr (sizeof(E) == sizeof(T)) {
    return hn::LoadU(d, from);
  } else if constexpr (std::is_same_v<E, F16Bits>) {
    return load_narrow(from);
  } else {
    const hn::RebindToUnsigned<D<T>> wide;
    const hn::Rebind<uint16_t, D<T>> half;
    const auto bits = hn::LoadU(half, reinterpret_cast<const uint16_t*>(from));
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
  }
}
template <class T, class E>
HWY_INLINE T one(E value) {
  if constexpr (sizeof(E) == sizeof(T)) {
    return value;
  } else {
    return to_f32(value);
  }
}

// Multiplies `count` rows with x at a time, so that x is read once for all of them.
template <int count, class T, class E>
HWY_INLINE void dot_rows(T* y, int64_t step, const E* a, int64_t row, const T* x, int64_t k) {
  const D<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  double totals[count] = {};
  for (int64_t begin = 0; begin < k; begin += longest_sum) {
    const int64_t end = std::min(k, begin + longest_sum);
    V<T> sums[count];
    V<T> others[count];
    for (int r = 0; r < count; ++r) sums[r] = others[r] = hn::Zero(d);
    int64_t p = begin;
    for (; p + 2 * lanes <= end; p += 2 * lanes) {
      const V<T> x_0 = hn::LoadU(d, x + p);
      const V<T> x_1 = hn::LoadU(d, x + p + lanes);
      for (int r = 0; r < count; ++r) {
        sums[r] = hn::MulAdd(load<T>(a + r * row + p), x_0, sums[r]);
        others[r] = hn::MulAdd(load<T>(a + r * row + p + lanes), x_1, others[r]);
      }
    }
    for (int r = 0; r < count; ++r) {
      T rest{0};
      for (int64_t q = p; q < end; ++q) rest += one<T>(a[r * row + q]) * x[q];
      totals[r] +=
          static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(sums[r], others[r])))) + static_cast<double>(rest);
    }
  }
  for (int r = 0; r < count; ++r) y[r * step] = static_cast<T>(totals[r]);
}

template <class T, class E>
void rows(T* y, int64_t step, const E* a, int64_t row, const T* x, int64_t m, int64_t k) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) dot_rows<4>(y + i * step, step, a + i * row, row, x, k);
  for (; i < m; ++i) dot_rows<1>(y + i * step, step, a + i * row, row, x, k);
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
      sum = hn::MulAdd(factors[r], load<T>(b + r * row + j), sum);
    }
    hn::StoreU(sum, d, sums + j);
  }
  for (; j < n; ++j) {
    for (int r = 0; r < count; ++r) sums[j] += x[r] * one<T>(b[r * row + j]);
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
      for (int64_t j = 0; j < wide; ++j) y[first + j] = begin == 0 ? sums[j] : y[first + j] + sums[j];
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
VectorKernels<float, Bf16Bits> kernels_bf16() { return {rows<float, Bf16Bits>, columns<float, Bf16Bits>, panel}; }
VectorKernels<float, F16Bits> kernels_f16() {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return {rows<float, F16Bits>, columns<float, F16Bits>};
#else
  return {};
#endif
}

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

}  // namespace tenon::provider::cpu
#endif
