// The states of a scan, and how one more element changes a state. If a scan has kernels (scan_kernel.h), its state type
// returns them; other scans are loops over next().
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "providers/cpu/order/scan_kernel.h"
#include "providers/cpu/primitive.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cpu {

// The least and the greatest integer of a dtype, as bits.
struct Ends {
  uint64_t least = 0, greatest = 0;

  explicit Ends(int32_t dtype) {
    const int32_t bits = dtype == EP_DTYPE_bool ? 1 : 8 * dtype_size(dtype);
    const uint64_t all = ~UINT64_C(0) >> (64 - bits);
    const bool is_signed = dtype_class(dtype) == DTypeClass::INT;
    greatest = is_signed ? all >> 1 : all;
    least = is_signed ? ~greatest : 0;
  }
};

template <class T, class Wide>
struct Sum {
  using Element = T;
  using State = Wide;
  static constexpr bool has_positions = false;
  static constexpr bool is_quick = true;  // true: processing several runs at once pays off
  static State start(const Ends&) { return 0; }
  static State next(State sum, T x, int64_t) { return sum + static_cast<Wide>(x); }
  static State join(State a, State b) { return a + b; }
  static bool joins(State) { return true; }
  static T value(State sum) { return static_cast<T>(sum); }
  static int64_t position(State) { return 0; }
  static auto line(const ScanKernels& kernels) {
    if constexpr (std::is_same_v<T, float>) {
      return kernels.sum_f32;
    } else if constexpr (std::is_same_v<T, double>) {
      return kernels.sum_f64;
    } else {
      return kernels.sum_u64;
    }
  }
  static auto lanes(const ScanKernels& kernels) {
    if constexpr (std::is_same_v<T, float>) return kernels.sum_lanes_f32;
  }
};

template <class T, class Wide>
struct Product {
  using Element = T;
  using State = Wide;
  static constexpr bool has_positions = false;
  static constexpr bool is_quick = !std::is_floating_point_v<T>;
  static State start(const Ends&) { return 1; }
  static State next(State product, T x, int64_t) { return product * static_cast<Wide>(x); }
  static State join(State a, State b) { return a * b; }
  // A product of chunks can overflow where the left-to-right product does not, for example after a 0.
  static bool joins(State product) {
    if constexpr (std::is_floating_point_v<Wide>) return std::isnormal(product);
    return true;
  }
  static T value(State product) { return static_cast<T>(product); }
  static int64_t position(State) { return 0; }
  static auto line(const ScanKernels& kernels) {
    if constexpr (std::is_same_v<T, float>) return kernels.product_f32;
  }
  static auto lanes(const ScanKernels& kernels) {
    if constexpr (std::is_same_v<T, float>) return kernels.product_lanes_f32;
  }
};

// Returns the greatest or least value of the type; an infinity for floats.
template <class T>
T end_of(bool greatest, const Ends& ends) {
  if constexpr (std::is_floating_point_v<T>) {
    const T inf = std::numeric_limits<T>::infinity();
    return greatest ? inf : -inf;
  } else {
    return static_cast<T>(greatest ? ends.greatest : ends.least);
  }
}

template <class T, bool greatest>
struct Extreme {
  using Element = T;
  using State = T;
  static constexpr bool has_positions = false;
  static constexpr bool is_quick = true;
  static State start(const Ends& ends) { return end_of<T>(!greatest, ends); }
  static State next(State x, T y, int64_t) { return greatest ? scalar::ep_max(x, y) : scalar::ep_min(x, y); }
  static State join(State x, State y) { return next(x, y, 0); }
  static bool joins(State) { return true; }
  static T value(State x) { return x; }
  static int64_t position(State) { return 0; }
  static void line(const ScanKernels&) {}
  static void lanes(const ScanKernels&) {}
};

template <class T, bool greatest>
struct ExtremeAt {
  struct AnyValueAt {
    T value;
    int64_t position;
  };
  using Element = T;
  using State = std::conditional_t<std::is_same_v<T, float>, ValueAt, AnyValueAt>;
  static constexpr bool has_positions = true;
  static constexpr bool is_quick = false;
  static State start(const Ends& ends) { return {end_of<T>(!greatest, ends), -1}; }
  // Takes value and position separately: copying a struct would wait for both of its stores.
  static void advance(T y, int64_t at, T* value, int64_t* position) {
    const bool replaces =
        *position < 0 || scalar::ep_isnan(y) || (!scalar::ep_isnan(*value) && (greatest ? y >= *value : y <= *value));
    *value = replaces ? y : *value;
    *position = replaces ? at : *position;
  }
  static State next(State state, T y, int64_t position) {
    advance(y, position, &state.value, &state.position);
    return state;
  }
  static State join(State a, State b) { return b.position < 0 ? a : next(a, b.value, b.position); }
  static bool joins(State) { return true; }
  static T value(State state) { return state.value; }
  static int64_t position(State state) { return state.position; }
  static auto line(const ScanKernels& kernels) {
    if constexpr (std::is_same_v<T, float>) return greatest ? kernels.greatest_f32 : kernels.least_f32;
  }
  static auto lanes(const ScanKernels& kernels) {
    if constexpr (std::is_same_v<T, float>) return greatest ? kernels.greatest_lanes_f32 : kernels.least_lanes_f32;
  }
};

template <class T>
struct LogSumExp {
  using Element = T;
  using State = ExponentialSum;
  static constexpr bool has_positions = false;
  static constexpr bool is_quick = false;
  static State start(const Ends&) { return {-std::numeric_limits<double>::infinity(), 0}; }
  static State next(State state, T x, int64_t) { return joined(state, {static_cast<double>(x), 1}); }
  static State join(State a, State b) { return joined(a, b); }
  static bool joins(State) { return true; }
  static T value(State state) { return static_cast<T>(value_of(state)); }
  static int64_t position(State) { return 0; }
  static auto line(const ScanKernels& kernels) {
    if constexpr (std::is_same_v<T, float>) return kernels.log_sum_exp_f32;
  }
  static void lanes(const ScanKernels&) {}
};

// True if the kind has a kernel for lines, or for lanes.
template <class Op>
constexpr bool has_line = !std::is_void_v<decltype(Op::line(std::declval<const ScanKernels&>()))>;
template <class Op>
constexpr bool has_lanes = !std::is_void_v<decltype(Op::lanes(std::declval<const ScanKernels&>()))>;

// The states of adjacent lines.
template <class Op>
class LaneStates {
 public:
  static constexpr int64_t most = 256;
  using T = typename Op::Element;

  LaneStates(const ScanKernels& kernels, const Ends& ends, bool exclusive)
      : kernels_(kernels), start_(Op::start(ends)), exclusive_(exclusive) {}
  void restart(int64_t n) {
    n_ = n;
    if constexpr (apart) {
      std::fill_n(values_, n, start_.value);
      std::fill_n(positions_, n, -1);
    } else {
      std::fill_n(states_, n, start_);
    }
  }
  // Adds one element to each line; all elements have position `at`.
  void step(const T* x, T* y, int64_t* places, int64_t at) {
    if constexpr (apart) {
      Op::lanes(kernels_)(x, y, places, n_, static_cast<int32_t>(at), values_, positions_);
    } else if constexpr (has_lanes<Op>) {
      Op::lanes(kernels_)(x, y, n_, states_, exclusive_);
    } else {
      for (int64_t l = 0; l < n_; ++l) {
        const typename Op::State before = states_[l];
        states_[l] = Op::next(before, x[l], at);
        y[l] = Op::value(exclusive_ ? before : states_[l]);
        if constexpr (Op::has_positions) places[l] = Op::position(states_[l]);
      }
    }
  }

 private:
  static constexpr bool apart = has_lanes<Op> && Op::has_positions;  // keeps values and positions in separate arrays

  const ScanKernels& kernels_;
  typename Op::State start_;
  bool exclusive_;
  int64_t n_ = 0;
  typename Op::State states_[apart ? 1 : most];
  float values_[apart ? most : 1];
  int32_t positions_[apart ? most : 1];
};

}  // namespace tenon::provider::cpu
