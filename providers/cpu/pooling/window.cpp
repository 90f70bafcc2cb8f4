// A pooling window, compiled once per dispatch target. Several vectors of channels stay in registers while the loop
// processes the taps. The last vectors may overlap the previous ones. Channels that do not fill a vector of the target
// use vectors of 16 bytes, and the last ones are computed one by one.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/pooling/window.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ep_api/ep_api.h"
#include "hwy/highway.h"
#include "providers/cpu/elementwise/narrow-inl.h"
#include "providers/cpu/pooling/window.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

enum class Step : uint8_t { maximum, average, magnitudes, norm };

// The type in which elements of type E are pooled.
template <class E>
using Number = std::conditional_t<is_narrow_float<E>, float, E>;
// The type in which maxima with positions are found, so that a position has as many bits as an element.
template <class E>
using Placed = std::conditional_t<!is_narrow_float<E> && sizeof(E) < 4, int32_t, Number<E>>;

template <class T, class E>
HWY_INLINE T one(E value) {
  if constexpr (is_narrow_float<E>) {
    return to_f32(value);
  } else {
    return value;
  }
}
template <class E, class T>
HWY_INLINE E stored(T value) {
  if constexpr (is_narrow_float<E>) {
    return from_f32<E>(value);
  } else {
    return static_cast<E>(value);
  }
}

template <class E, class D>
HWY_INLINE hn::Vec<D> load(D d, const E* from) {
  if constexpr (std::is_same_v<hn::TFromD<D>, E>) {
    return hn::LoadU(d, from);
  } else if constexpr (!is_narrow_float<E>) {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<E, D>(), from));
  } else {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    return load_narrow<D>(from);
#else
    HWY_ALIGN float wide[hn::MaxLanes(D())];
    for (size_t i = 0; i < hn::Lanes(d); ++i) wide[i] = to_f32(from[i]);
    return hn::Load(d, wide);
#endif
  }
}
template <class E, class D>
HWY_INLINE void store(D d, hn::Vec<D> values, E* to) {
  if constexpr (std::is_same_v<hn::TFromD<D>, E>) {
    hn::StoreU(values, d, to);
  } else if constexpr (!is_narrow_float<E>) {
    const hn::Rebind<E, D> narrow;
    hn::StoreU(hn::DemoteTo(narrow, values), narrow, to);
  } else {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    store_narrow<D>(values, to);
#else
    HWY_ALIGN float wide[hn::MaxLanes(D())];
    hn::Store(values, d, wide);
    for (size_t i = 0; i < hn::Lanes(d); ++i) to[i] = from_f32<E>(wide[i]);
#endif
  }
}

template <class T>
constexpr T least() {
  return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}

template <class D>
HWY_INLINE hn::Vec<D> greater_of(D, hn::Vec<D> x, hn::Vec<D> most) {
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
    return hn::IfThenElse(hn::Or(hn::Gt(x, most), hn::IsNaN(x)), x, most);
  } else {
    return hn::Max(x, most);
  }
}

// Pools kVectors vectors from channel c on.
template <Step step, int kVectors, class E, class D>
HWY_INLINE void pool(D d, const PoolWindow& window, int64_t c) {
  using T = hn::TFromD<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* const src = static_cast<const E*>(window.src) + c;
  auto* const dst = static_cast<E*>(window.dst) + c;
  hn::Vec<D> held[kVectors];
  for (auto& one : held) one = hn::Set(d, step == Step::maximum ? least<T>() : T{0});
  for (int64_t t = 0; t < window.taps; ++t) {
    const E* const from = src + window.offsets[t];
    for (int v = 0; v < kVectors; ++v) {
      const auto x = load<E>(d, from + v * lanes);
      if constexpr (step == Step::maximum) {
        held[v] = greater_of(d, x, held[v]);
      } else if constexpr (step == Step::norm) {
        held[v] = hn::MulAdd(x, x, held[v]);
      } else {
        held[v] = hn::Add(held[v], step == Step::magnitudes ? hn::Abs(x) : x);
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    if constexpr (step == Step::average) held[v] = hn::Div(held[v], hn::Set(d, static_cast<T>(window.divisor)));
    if constexpr (step == Step::norm) held[v] = hn::Sqrt(held[v]);
    store<E>(d, held[v], dst + v * lanes);
  }
}

// Like pool() for channel c alone.
template <Step step, class E>
void pool_one(const PoolWindow& window, int64_t c) {
  using T = Number<E>;
  const auto* const src = static_cast<const E*>(window.src) + c;
  T held = step == Step::maximum ? least<T>() : T{0};
  for (int64_t t = 0; t < window.taps; ++t) {
    const T x = one<T>(src[window.offsets[t]]);
    if constexpr (step == Step::maximum) {
      held = x > held || x != x ? x : held;
    } else if constexpr (step == Step::norm) {
      held += x * x;
    } else {
      held += step == Step::magnitudes ? std::abs(x) : x;
    }
  }
  if constexpr (step == Step::average) held /= static_cast<T>(window.divisor);
  if constexpr (step == Step::norm) held = std::sqrt(held);
  static_cast<E*>(window.dst)[c] = stored<E>(held);
}

// Pools channels from c on with vectors of D. Returns the first channel that is left: all are done if there is a vector
// of channels.
template <Step step, class E, class D>
HWY_INLINE int64_t pool_vectors(D d, const PoolWindow& window, int64_t c) {
  constexpr int kMany = 4;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (window.channels < lanes) return c;
  for (; c + kMany * lanes <= window.channels; c += kMany * lanes) pool<step, kMany, E>(d, window, c);
  for (; c < window.channels; c += lanes) pool<step, 1, E>(d, window, std::min(c, window.channels - lanes));
  return window.channels;
}

template <class T>
using Whole = hn::ScalableTag<T>;
template <class T>
using Small = hn::CappedTag<T, 16 / sizeof(T)>;

template <Step step, class E>
void pool_all(const PoolWindow& window) {
  using T = Number<E>;
  int64_t c = pool_vectors<step, E>(Whole<T>(), window, 0);
  c = pool_vectors<step, E>(Small<T>(), window, c);
  for (; c < window.channels; ++c) pool_one<step, E>(window, c);
}

// Starts with the first tap, and replaces the maximum by every greater element and by the first NaN.
template <class E, class D>
HWY_INLINE void find_greatest(D d, const PoolWindow& window, int64_t c) {
  using T = hn::TFromD<D>;
  const hn::RebindToSigned<D> numbers;
  using I = hn::TFromD<decltype(numbers)>;
  const auto* const src = static_cast<const E*>(window.src) + c;
  auto most = hn::Set(d, least<T>());
  auto where = hn::Set(numbers, I{-1});
  for (int64_t t = 0; t < window.taps; ++t) {
    const auto x = load<E>(d, src + window.offsets[t]);
    const auto here = hn::Set(numbers, static_cast<I>(window.place + window.places[t]));
    auto greater = hn::Gt(x, most);
    if constexpr (std::is_floating_point_v<T>) {
      greater = hn::AndNot(hn::IsNaN(most), hn::Or(greater, hn::IsNaN(x)));
    }
    most = t == 0 ? x : hn::IfThenElse(greater, x, most);
    where = t == 0 ? here : hn::IfThenElse(hn::RebindMask(numbers, greater), here, where);
  }
  store<E>(d, most, static_cast<E*>(window.dst) + c);
  HWY_ALIGN I found[hn::MaxLanes(D())];
  hn::Store(where, numbers, found);
  for (size_t i = 0; i < hn::Lanes(d); ++i)
    window.positions[c + static_cast<int64_t>(i)] = static_cast<int32_t>(found[i]);
}

template <class E>
void find_one(const PoolWindow& window, int64_t c) {
  using T = Number<E>;
  const auto* const src = static_cast<const E*>(window.src) + c;
  T most = least<T>();
  int64_t where = -1;
  for (int64_t t = 0; t < window.taps; ++t) {
    const T x = one<T>(src[window.offsets[t]]);
    if (t != 0 && (most != most || !(x > most || x != x))) continue;
    most = x;
    where = window.place + window.places[t];
  }
  static_cast<E*>(window.dst)[c] = stored<E>(most);
  window.positions[c] = static_cast<int32_t>(where);
}

template <class E, class D>
HWY_INLINE int64_t find_vectors(D d, const PoolWindow& window, int64_t c) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (window.channels < lanes) return c;
  for (; c < window.channels; c += lanes) find_greatest<E>(d, window, std::min(c, window.channels - lanes));
  return window.channels;
}

template <class E>
void find_all(const PoolWindow& window) {
  using T = Placed<E>;
  int64_t c = find_vectors<E>(Whole<T>(), window, 0);
  c = find_vectors<E>(Small<T>(), window, c);
  for (; c < window.channels; ++c) find_one<E>(window, c);
}

template <class E>
WindowKernel kernel_for() {
  using T = Number<E>;
  WindowKernel kernel;
  kernel.maximum = pool_all<Step::maximum, E>;
  kernel.maximum_with_positions = find_all<E>;
  if constexpr (std::is_floating_point_v<T>) {
    kernel.average = pool_all<Step::average, E>;
    kernel.magnitudes = pool_all<Step::magnitudes, E>;
    kernel.norm = pool_all<Step::norm, E>;
  }
  kernel.lanes = static_cast<int64_t>(hn::Lanes(Whole<T>()));
  kernel.fewest_lanes = static_cast<int64_t>(hn::Lanes(Small<T>()));
  return kernel;
}

WindowKernel kernel_of_target(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_f32: return kernel_for<float>();
    case EP_DTYPE_f64: return kernel_for<double>();
    case EP_DTYPE_f16: return kernel_for<F16Bits>();
    case EP_DTYPE_bf16: return kernel_for<Bf16Bits>();
    case EP_DTYPE_i8: return kernel_for<int8_t>();
    case EP_DTYPE_u8: return kernel_for<uint8_t>();
    case EP_DTYPE_i16: return kernel_for<int16_t>();
    case EP_DTYPE_u16: return kernel_for<uint16_t>();
    case EP_DTYPE_i32: return kernel_for<int32_t>();
    case EP_DTYPE_u32: return kernel_for<uint32_t>();
    case EP_DTYPE_i64: return kernel_for<int64_t>();
    case EP_DTYPE_u64: return kernel_for<uint64_t>();
    default: return {};
  }
}

}  // namespace
}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

WindowKernel window_kernel(SimdLevel level, int32_t dtype) {
  return TENON_CPU_DISPATCH(level, kernel_of_target)(dtype);
}

}  // namespace tenon::provider::cpu
#endif
