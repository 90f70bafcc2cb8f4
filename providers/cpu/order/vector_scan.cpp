// The kernels of scan, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/order/vector_scan.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "hwy/contrib/math/math-inl.h"
#include "providers/cpu/order/scan_kernel.h"
#include "providers/cpu/simd/prelude-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

template <class T>
using D = hn::ScalableTag<T>;
template <class T>
using V = hn::Vec<D<T>>;

template <class T>
HWY_INLINE int64_t lane_count() {
  return static_cast<int64_t>(hn::Lanes(D<T>()));
}

// Converts elements to states and back.
template <class T, class State>
HWY_INLINE V<State> load(const T* x) {
  const D<State> d;
  if constexpr (sizeof(T) == sizeof(State)) {
    return hn::LoadU(d, x);
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D<State>>(), x));
  }
}
template <class T, class State>
HWY_INLINE void store(V<State> values, T* y) {
  if constexpr (sizeof(T) == sizeof(State)) {
    hn::StoreU(values, D<State>(), y);
  } else {
    const hn::Rebind<T, D<State>> d;
    hn::StoreU(hn::DemoteTo(d, values), d, y);
  }
}

// Lane i of the result is lane i - step. The first lanes are undefined.
template <class T>
HWY_INLINE V<T> moved_up(V<T> values, size_t step) {
  const D<T> d;
  const hn::RebindToSigned<D<T>> di;
  using I = hn::TFromD<decltype(di)>;
  const auto from = hn::And(hn::Iota(di, -static_cast<I>(step)), hn::Set(di, static_cast<I>(hn::Lanes(d) - 1)));
  return hn::TableLookupLanes(values, hn::IndicesFromVec(d, from));
}
// Like the function above, with `first` in the first lane.
template <class T>
HWY_INLINE V<T> moved_up_after(V<T> values, V<T> first) {
  return hn::IfThenElse(hn::FirstN(D<T>(), 1), first, moved_up<T>(values, 1));
}
template <class T>
HWY_INLINE V<T> last_of(V<T> values) {
  const D<T> d;
  const hn::RebindToSigned<D<T>> di;
  const auto last = hn::Set(di, static_cast<hn::TFromD<decltype(di)>>(hn::Lanes(d) - 1));
  return hn::TableLookupLanes(values, hn::IndicesFromVec(d, last));
}

// Combines every lane with all lanes before it.
template <class T, size_t step = 1, class Combine>
HWY_INLINE V<T> combined(V<T> values, Combine combine) {
  const D<T> d;
  if constexpr (step < hn::MaxLanes(D<T>())) {
    const V<T> next = hn::IfThenElse(hn::FirstN(d, step), values, combine(moved_up<T>(values, step), values));
    return combined<T, 2 * step>(next, combine);
  } else {
    return values;
  }
}

struct Plus {
  template <class T>
  static T none() {
    return 0;
  }
  template <class X>
  HWY_INLINE X operator()(X a, X b) const {
    return hn::Add(a, b);
  }
};
struct Times {
  template <class T>
  static T none() {
    return 1;
  }
  template <class X>
  HWY_INLINE X operator()(X a, X b) const {
    return hn::Mul(a, b);
  }
};

// Combines `state` with all n elements, in an order that suits vectors.
template <class T, class State, class Combine>
HWY_INLINE void combine_all(const T* x, int64_t n, State* state) {
  const D<State> d;
  const Combine combine;
  const int64_t lanes = lane_count<State>();
  const V<State> none = hn::Set(d, Combine::template none<State>());
  V<State> sums[4] = {none, none, none, none};
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    for (int64_t j = 0; j < 4; ++j) sums[j] = combine(sums[j], load<T, State>(x + i + j * lanes));
  }
  for (; i + lanes <= n; i += lanes) sums[0] = combine(sums[0], load<T, State>(x + i));
  V<State> all =
      combine(hn::Set(d, *state),
              last_of<State>(combined<State>(combine(combine(sums[0], sums[1]), combine(sums[2], sums[3])),  //
                                             combine)));
  for (; i < n; ++i) all = combine(all, hn::Set(d, static_cast<State>(x[i])));
  *state = hn::GetLane(all);
}

template <class T, class State, class Combine, bool exclusive>
HWY_INLINE void scan_line_as(const T* x, T* y, int64_t n, State* state) {
  const D<State> d;
  const Combine combine;
  const V<State> none = hn::Set(d, Combine::template none<State>());
  const int64_t lanes = lane_count<State>();
  V<State> before = hn::Set(d, *state);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V<State> here = combined<State>(load<T, State>(x + i), combine);
    if constexpr (exclusive) store<T, State>(combine(before, moved_up_after<State>(here, none)), y + i);
    if constexpr (!exclusive) store<T, State>(combine(before, here), y + i);
    before = combine(before, last_of<State>(here));
  }
  V<State> one = before;
  for (; i < n; ++i) {
    const V<State> next = combine(one, hn::Set(d, static_cast<State>(x[i])));
    y[i] = static_cast<T>(hn::GetLane(exclusive ? one : next));
    one = next;
  }
  *state = hn::GetLane(one);
}

template <class T, class State, class Combine>
void scan_line(const T* x, T* y, int64_t n, State* state, bool exclusive) {
  if (y == nullptr) return combine_all<T, State, Combine>(x, n, state);
  if (exclusive) return scan_line_as<T, State, Combine, true>(x, y, n, state);
  scan_line_as<T, State, Combine, false>(x, y, n, state);
}

template <class T, class State, class Combine>
void scan_lanes(const T* x, T* y, int64_t n, State* states, bool exclusive) {
  const D<State> d;
  const Combine combine;
  const int64_t lanes = lane_count<State>();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V<State> before = hn::LoadU(d, states + i);
    const V<State> after = combine(before, load<T, State>(x + i));
    hn::StoreU(after, d, states + i);
    store<T, State>(exclusive ? before : after, y + i);
  }
  for (; i < n; ++i) {
    const State before = states[i];
    states[i] = hn::GetLane(combine(hn::Set(d, before), hn::Set(d, static_cast<State>(x[i]))));
    y[i] = static_cast<T>(exclusive ? before : states[i]);
  }
}

// --- extremes with their positions: the last of equal ones; NaN stays until the next NaN replaces it ---

// True if y replaces x.
template <bool greatest, class X>
HWY_INLINE auto reaches(X y, X x) {
  return greatest ? hn::Ge(y, x) : hn::Le(y, x);
}
template <bool greatest, class X>
HWY_INLINE X extreme(X x, X y) {
  return greatest ? ep_max(x, y) : ep_min(x, y);
}

// Stores the positions of a vector: first + i * step for a lane value i >= 0, else `last`.
HWY_INLINE void store_positions(V<int32_t> lane, int64_t first, int64_t step, int64_t last, int64_t* to) {
  const D<int64_t> d;
  const hn::Half<D<int32_t>> half;
  const auto write = [&](auto part, int64_t* at) HWY_ATTR {
    const V<int64_t> number = hn::PromoteTo(d, part);
    const V<int64_t> away = step > 0 ? number : hn::Neg(number);
    hn::StoreU(hn::IfThenElse(hn::Lt(number, hn::Zero(d)), hn::Set(d, last), hn::Add(hn::Set(d, first), away)), d, at);
  };
#if HWY_TARGET == HWY_SCALAR
  static_cast<void>(half);
  write(lane, to);
#else
  write(hn::LowerHalf(half, lane), to);
  write(hn::UpperHalf(half, lane), to + hn::Lanes(half));
#endif
}

template <bool greatest, bool writes>
HWY_INLINE void scan_extremes_as(const float* x, float* y, int64_t* places, int64_t n, int64_t first, int64_t step,
                                 ValueAt* state) {
  const D<float> d;
  const D<int32_t> di;
  const D<int64_t> dp;
  const int64_t lanes = lane_count<float>();
  float value = state->value;
  int64_t position = state->position;
  const auto one = [&](int64_t i) {
    const bool takes =
        position < 0 || std::isnan(x[i]) || (!std::isnan(value) && (greatest ? x[i] >= value : x[i] <= value));
    value = takes ? x[i] : value;
    position = takes ? first + i * step : position;
    if constexpr (writes) y[i] = value, places[i] = position;
  };
  int64_t i = 0;
  if (n > 0) one(i++);
  for (; i + lanes <= n; i += lanes) {
    const V<float> here = hn::LoadU(d, x + i);
    const V<float> before = hn::Set(d, value);
    const auto is_nan = hn::IsNaN(here);
    if (hn::AllFalse(d, hn::Or(is_nan, reaches<greatest>(here, before)))) {
      if constexpr (writes) {
        hn::StoreU(before, d, y + i);
        const V<int64_t> at = hn::Set(dp, position);
        for (int64_t j = 0; j < lanes; j += lane_count<int64_t>()) hn::StoreU(at, dp, places + i + j);
      }
      continue;
    }
    // The common case: each element replaces the one before it, as in an ordered line.
    if (hn::AllTrue(d, reaches<greatest>(here, moved_up_after<float>(here, before)))) {
      if constexpr (writes) {
        hn::StoreU(here, d, y + i);
        store_positions(hn::Iota(di, 0), first + i * step, step, 0, places + i);
      }
      value = hn::GetLane(last_of<float>(here));
      position = first + (i + lanes - 1) * step;
      continue;
    }
    const V<float> so_far = extreme<greatest>(
        before, combined<float>(here, [](auto a, auto b) HWY_ATTR { return extreme<greatest>(a, b); }));
    const auto takes = hn::Or(is_nan, reaches<greatest>(here, so_far));
    const V<int32_t> nowhere = hn::Set(di, -1);
    const V<int32_t> lane = combined<int32_t>(hn::IfThenElse(hn::RebindMask(di, takes), hn::Iota(di, 0), nowhere),
                                              [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
    if constexpr (writes) {
      hn::StoreU(so_far, d, y + i);
      store_positions(lane, first + i * step, step, position, places + i);
    }
    value = hn::GetLane(last_of<float>(so_far));
    const int32_t last = hn::GetLane(last_of<int32_t>(lane));
    if (last >= 0) position = first + (i + last) * step;
  }
  for (; i < n; ++i) one(i);
  *state = {value, position};
}

template <bool greatest>
void scan_extremes(const float* x, float* y, int64_t* places, int64_t n, int64_t first, int64_t step, ValueAt* state) {
  if (y == nullptr) return scan_extremes_as<greatest, false>(x, y, places, n, first, step, state);
  scan_extremes_as<greatest, true>(x, y, places, n, first, step, state);
}

template <bool greatest>
void scan_extreme_lanes(const float* x, float* y, int64_t* places, int64_t n, int32_t at, float* values,
                        int32_t* positions) {
  const D<float> d;
  const D<int32_t> di;
  const int64_t lanes = lane_count<float>();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V<float> here = hn::LoadU(d, x + i);
    const V<float> before = hn::LoadU(d, values + i);
    const auto takes = hn::Or(hn::IsNaN(here), reaches<greatest>(here, before));
    const V<float> value = hn::IfThenElse(takes, here, before);
    const V<int32_t> position =
        hn::IfThenElse(hn::RebindMask(di, takes), hn::Set(di, at), hn::LoadU(di, positions + i));
    hn::StoreU(value, d, values + i);
    hn::StoreU(value, d, y + i);
    hn::StoreU(position, di, positions + i);
    store_positions(position, 0, 1, 0, places + i);
  }
  for (; i < n; ++i) {
    const bool takes = std::isnan(x[i]) || (greatest ? x[i] >= values[i] : x[i] <= values[i]);
    y[i] = values[i] = takes ? x[i] : values[i];
    places[i] = positions[i] = takes ? at : positions[i];
  }
}

// --- log of a sum of exp ---

constexpr int64_t exp_block = 256;  // elements that share a maximum
constexpr double exp_reach = 600;   // exp of a smaller distance is a normal double

// Sums exp of the distances to the maximum of a block, if none of them underflows.
void scan_exponentials(const float* x, float* y, int64_t n, ExponentialSum* state, bool exclusive) {
  const D<double> d;
  const int64_t lanes = lane_count<double>();
  HWY_ALIGN double sums[exp_block + hn::MaxLanes(D<double>())];
  for (int64_t begin = 0; begin < n; begin += exp_block) {
    const int64_t count = std::min(exp_block, n - begin);
    const float* const from = x + begin;
    float most = from[0];
    bool is_number = true;
    for (int64_t i = 0; i < count; ++i) {
      most = from[i] > most ? from[i] : most;
      is_number &= from[i] == from[i];
    }
    const double top = std::max(state->most, static_cast<double>(most));
    const double least = std::max(state->most, static_cast<double>(from[0]));
    if (!is_number || !(top - least < exp_reach) || !std::isfinite(top) || (exclusive && state->sum == 0)) {
      for (int64_t i = 0; i < count; ++i) {
        const ExponentialSum before = *state;
        *state = joined(*state, {static_cast<double>(from[i]), 1});
        if (y != nullptr) y[begin + i] = static_cast<float>(value_of(exclusive ? before : *state));
      }
      continue;
    }
    const V<double> offset = hn::Set(d, top);
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      hn::Store(hn::Exp(d, hn::Sub(load<float, double>(from + i), offset)), d, sums + i);
    }
    for (; i < count; ++i) sums[i] = std::exp(static_cast<double>(from[i]) - top);
    double sum = state->sum == 0 ? 0 : state->sum * std::exp(state->most - top);
    scan_line<double, double, Plus>(sums, y == nullptr ? nullptr : sums, count, &sum, exclusive);
    *state = {top, sum};
    if (y == nullptr) continue;
    for (i = 0; i + lanes <= count; i += lanes) {
      store<float, double>(hn::Add(offset, hn::Log(d, hn::Load(d, sums + i))), y + begin + i);
    }
    for (; i < count; ++i) y[begin + i] = static_cast<float>(top + std::log(sums[i]));
  }
}

constexpr ScanKernels kernels{
    scan_line<float, double, Plus>,
    scan_line<double, double, Plus>,
    scan_line<uint64_t, uint64_t, Plus>,
    scan_line<float, double, Times>,
    scan_exponentials,
    scan_lanes<float, double, Plus>,
    scan_lanes<float, double, Times>,
    scan_extremes<true>,
    scan_extremes<false>,
    scan_extreme_lanes<true>,
    scan_extreme_lanes<false>,
};

}  // namespace

const ScanKernels* scan_kernels_of() { return &kernels; }

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

const ScanKernels& scan_kernels(SimdLevel level) { return *TENON_CPU_DISPATCH(level, scan_kernels_of)(); }

ExponentialSum joined(ExponentialSum a, ExponentialSum b) {
  if (std::isnan(a.most) || b.sum == 0) return a;
  if (std::isnan(b.most) || a.sum == 0) return b;
  if (a.most < b.most) std::swap(a, b);
  if (std::isinf(a.most)) return a;
  return {a.most, a.sum + b.sum * std::exp(b.most - a.most)};
}

double value_of(const ExponentialSum& state) {
  return state.sum == 0 || std::isinf(state.most) ? state.most : state.most + std::log(state.sum);
}

}  // namespace tenon::provider::cpu
#endif
