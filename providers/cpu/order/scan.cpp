// scan, in one of two ways. Where other elements lie side by side, they are lanes: a block of states is combined with
// one row after the other. Else a line is read in pieces; of a long line every chunk is first combined alone, so that
// several threads can go on from there. Chunks have one length, whatever the number of threads.
#include <algorithm>
#include <cmath>
#include <limits>

#include "providers/cpu/order/lines.h"
#include "providers/cpu/order/order.h"
#include "providers/cpu/threads/lease.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t piece = 512;             // elements that are converted at a time
constexpr int64_t chunk_length = 1 << 15;  // of a long line
constexpr int64_t lanes_at_once = 256;

// --- states: what is known of the elements so far ---

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
  static constexpr bool is_quick = true;  // several runs at once pay
  static State start(const Ends&) { return 0; }
  static State next(State sum, T x, int64_t) { return sum + static_cast<Wide>(x); }
  static State join(State a, State b) { return a + b; }
  static T value(State sum) { return static_cast<T>(sum); }
  static int64_t position(State) { return 0; }
};

template <class T, class Wide>
struct Product {
  using Element = T;
  using State = Wide;
  static constexpr bool has_positions = false;
  static constexpr bool is_quick = true;
  static State start(const Ends&) { return 1; }
  static State next(State product, T x, int64_t) { return product * static_cast<Wide>(x); }
  static State join(State a, State b) { return a * b; }
  static T value(State product) { return static_cast<T>(product); }
  static int64_t position(State) { return 0; }
};

// One of them, or an infinity.
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
  static T value(State x) { return x; }
  static int64_t position(State) { return 0; }
};

template <class T, bool greatest>
struct ExtremeAt {
  struct State {
    T value;
    int64_t position;
  };
  using Element = T;
  static constexpr bool has_positions = true;
  static constexpr bool is_quick = false;
  static State start(const Ends& ends) { return {end_of<T>(!greatest, ends), -1}; }
  // Value and position apart: a state that is copied whole waits for both of its stores.
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
  static T value(State state) { return state.value; }
  static int64_t position(State state) { return state.position; }
};

// The greatest element, and the sum of exp of the distances to it.
template <class T>
struct LogSumExp {
  struct State {
    double most;
    double sum;
  };
  using Element = T;
  static constexpr bool has_positions = false;
  static constexpr bool is_quick = false;
  static State start(const Ends&) { return {-std::numeric_limits<double>::infinity(), 0}; }
  static State next(State state, T x, int64_t) { return join(state, {static_cast<double>(x), 1}); }
  static State join(State a, State b) {
    if (std::isnan(a.most) || b.sum == 0) return a;
    if (std::isnan(b.most) || a.sum == 0) return b;
    if (a.most < b.most) std::swap(a, b);
    if (std::isinf(a.most)) return a;
    return {a.most, a.sum + b.sum * std::exp(b.most - a.most)};
  }
  static T value(State state) {
    if (state.sum == 0 || std::isinf(state.most)) return static_cast<T>(state.most);
    return static_cast<T>(state.most + std::log(state.sum));
  }
  static int64_t position(State) { return 0; }
};

// --- the primitive ---

class ScanPrimitive final : public ep_primitive {
 public:
  ScanPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        at_(desc.attributes.scan),
        src_(find_operand(desc, EP_ROLE_SRC)),
        positions_(find_operand(desc, EP_ROLE_DST_INDICES)),
        format_(desc.operands[0].dtype),
        ends_(desc.operands[0].dtype),
        threads_(on.threads) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    switch (format_.compute) {
      case EP_DTYPE_f32: run_floating<float>(launch); break;
      case EP_DTYPE_f64: run_floating<double>(launch); break;
      case EP_DTYPE_u64: run_integer<uint64_t>(launch); break;
      default: run_integer<int64_t>(launch);
    }
    return EP_STATUS_OK;
  }

 private:
  template <class T>
  void run_floating(const ep_launch& launch) const {
    switch (at_.op) {
      case EP_SCAN_SUM: return run<Sum<T, double>>(launch);
      case EP_SCAN_PROD: return run<Product<T, double>>(launch);
      case EP_SCAN_LOG_SUM_EXP: return run<LogSumExp<T>>(launch);
      default: run_extreme<T>(launch);
    }
  }
  template <class T>
  void run_integer(const ep_launch& launch) const {
    switch (at_.op) {
      case EP_SCAN_SUM: return run<Sum<T, uint64_t>>(launch);
      case EP_SCAN_PROD: return run<Product<T, uint64_t>>(launch);
      default: run_extreme<T>(launch);
    }
  }
  template <class T>
  void run_extreme(const ep_launch& launch) const {
    const bool greatest = at_.op == EP_SCAN_MAX;
    if (positions_ >= 0) return greatest ? run<ExtremeAt<T, true>>(launch) : run<ExtremeAt<T, false>>(launch);
    return greatest ? run<Extreme<T, true>>(launch) : run<Extreme<T, false>>(launch);
  }

  template <class Op>
  void run(const ep_launch& launch) const {
    const Lines src(desc_, launch, src_, at_.axis);
    const Lines dst(desc_, launch, 0, at_.axis);
    const Lines positions(desc_, launch, positions_, at_.axis);
    const int32_t lane = src.outer.rank - 1;
    const bool lanes = lane >= 0 && src.stride != 1 && src.outer.strides[lane] == 1 && src.outer.dims[lane] >= 8;
    if (lanes) return by_lanes<Op>(src, dst, positions);
    const int64_t count = src.outer.count();
    const int64_t cost = src.length * (Op::is_quick ? 1 : 4);
    if (count < threads_ && src.length >= 2 * chunk_length) {
      for (int64_t line = 0; line < count; ++line) long_line<Op>(src, dst, positions, line, cost);
      return;
    }
    parallel(threads_, count * cost, [&](int32_t part, int32_t parts) {
      for (int64_t line = count * part / parts; line < count * (part + 1) / parts; ++line) {
        typename Op::State state = Op::start(ends_);
        stretch<Op, true>(src, dst, positions, line, 0, src.length, &state);
      }
    });
  }

  // A line whose chunks several threads combine.
  template <class Op>
  void long_line(const Lines& src, const Lines& dst, const Lines& positions, int64_t line, int64_t cost) const {
    constexpr int64_t most = 256;
    typename Op::State states[most];
    int64_t chunk = chunk_length;
    while ((src.length + chunk - 1) / chunk > most) chunk *= 2;
    const int64_t chunks = (src.length + chunk - 1) / chunk;
    const auto for_chunks = [&](const auto& body) {
      parallel(threads_, cost, [&](int32_t part, int32_t parts) {
        for (int64_t c = chunks * part / parts; c < chunks * (part + 1) / parts; ++c) {
          body(c, c * chunk, std::min(src.length, (c + 1) * chunk));
        }
      });
    };
    for_chunks([&](int64_t c, int64_t begin, int64_t end) {
      states[c] = Op::start(ends_);
      if (c + 1 < chunks) stretch<Op, false>(src, dst, positions, line, begin, end, &states[c]);
    });
    typename Op::State state = Op::start(ends_);
    for (int64_t c = 0; c < chunks; ++c) {
      const typename Op::State here = states[c];
      states[c] = state;
      state = Op::join(state, here);
    }
    for_chunks([&](int64_t c, int64_t begin, int64_t end) {
      typename Op::State from = states[c];
      stretch<Op, true>(src, dst, positions, line, begin, end, &from);
    });
  }

  // Steps `begin` to `end` of a line, which go backwards if the scan does. Writes only if `writes`.
  template <class Op, bool writes>
  void stretch(const Lines& src, const Lines& dst, const Lines& positions, int64_t line, int64_t begin, int64_t end,
               typename Op::State* state) const {
    using T = typename Op::Element;
    alignas(64) T given[piece];
    alignas(64) T made[piece];
    int64_t places[Op::has_positions ? piece : 1];
    const char* const from = src.line(line);
    char* const to = dst.line(line);
    for (int64_t at = begin; at < end; at += piece) {
      const int64_t n = std::min(piece, end - at);
      const int64_t low = at_.reverse != 0 ? src.length - at - n : at;
      const T* x = given;
      if (format_.same && src.stride == 1 && at_.reverse == 0) {
        x = reinterpret_cast<const T*>(from) + low;
      } else {
        format_.read(given, 1, from + low * src.stride * format_.size, src.stride, n);
        if (at_.reverse != 0) std::reverse(given, given + n);
      }
      const bool in_place = writes && format_.same && dst.stride == 1 && at_.reverse == 0;
      T* const y = in_place ? reinterpret_cast<T*>(to) + low : made;
      combine<Op, writes>(x, y, places, n, low, state);
      if constexpr (!writes) continue;
      if (at_.reverse != 0) std::reverse(made, made + n);
      if (!in_place) format_.write(to + low * dst.stride * format_.size, dst.stride, made, 1, n);
      if constexpr (Op::has_positions) {
        if (at_.reverse != 0) std::reverse(places, places + n);
        auto* const line_positions = reinterpret_cast<int64_t*>(positions.line(line)) + low * positions.stride;
        for (int64_t i = 0; i < n; ++i) line_positions[i * positions.stride] = places[i];
      }
    }
  }

  // n elements, the first of which met stands at `low` of the line, or, backwards, the last. `x` may be `y`.
  template <class Op, bool writes>
  void combine(const typename Op::Element* x, typename Op::Element* y, int64_t* places, int64_t n, int64_t low,
               typename Op::State* carry) const {
    using State = typename Op::State;
    State state = *carry;
    if constexpr (Op::is_quick) {
      // Four runs at once, since the next state of one run waits for the last.
      const int64_t quarter = n / 4;
      State runs[4] = {state, Op::start(ends_), Op::start(ends_), Op::start(ends_)};
      State all = Op::start(ends_);
      if constexpr (writes) {
        for (int64_t i = 0; i < quarter; ++i) {
          for (int64_t r = 1; r < 4; ++r) runs[r] = Op::next(runs[r], x[(r - 1) * quarter + i], 0);
        }
        for (int64_t r = 1; r < 4; ++r) runs[r] = Op::join(runs[r - 1], runs[r]);
        if (at_.exclusive != 0) {
          exclusive_runs<Op>(x, y, quarter, runs);
        } else {
          for (int64_t i = 0; i < quarter; ++i) {
            for (int64_t r = 0; r < 4; ++r) {
              runs[r] = Op::next(runs[r], x[r * quarter + i], 0);
              y[r * quarter + i] = Op::value(runs[r]);
            }
          }
        }
        all = runs[3];
      } else {
        for (int64_t i = 0; i < quarter; ++i) {
          for (int64_t r = 0; r < 4; ++r) runs[r] = Op::next(runs[r], x[r * quarter + i], 0);
        }
        all = Op::join(Op::join(runs[0], runs[1]), Op::join(runs[2], runs[3]));
      }
      state = all;
      for (int64_t i = 4 * quarter; i < n; ++i) step<Op, writes>(x[i], y + i, places, i, 0, &state);
    } else if constexpr (Op::has_positions) {
      auto value = state.value;
      int64_t place = state.position;
      for (int64_t i = 0; i < n; ++i) {
        Op::advance(x[i], at_.reverse != 0 ? low + n - 1 - i : low + i, &value, &place);
        if constexpr (!writes) continue;
        y[i] = value;
        places[i] = place;
      }
      state = {value, place};
    } else {
      for (int64_t i = 0; i < n; ++i) {
        step<Op, writes>(x[i], y + i, places, i, at_.reverse != 0 ? low + n - 1 - i : low + i, &state);
      }
    }
    *carry = state;
  }

  template <class Op>
  static void exclusive_runs(const typename Op::Element* x, typename Op::Element* y, int64_t quarter,
                             typename Op::State* runs) {
    for (int64_t i = 0; i < quarter; ++i) {
      for (int64_t r = 0; r < 4; ++r) {
        const typename Op::State before = runs[r];
        runs[r] = Op::next(before, x[r * quarter + i], 0);
        y[r * quarter + i] = Op::value(before);
      }
    }
  }

  template <class Op, bool writes>
  void step(typename Op::Element x, typename Op::Element* y, int64_t* places, int64_t i, int64_t position,
            typename Op::State* state) const {
    const typename Op::State before = *state;
    *state = Op::next(before, x, position);
    if constexpr (writes) {
      *y = Op::value(at_.exclusive != 0 ? before : *state);
      if constexpr (Op::has_positions) places[i] = Op::position(*state);
    }
  }

  // Blocks of lanes along the last of the other axes.
  template <class Op>
  void by_lanes(const Lines& src, const Lines& dst, const Lines& positions) const {
    using T = typename Op::Element;
    const int32_t lane = src.outer.rank - 1;
    const int64_t width = src.outer.dims[lane];
    const int64_t blocks = (width + lanes_at_once - 1) / lanes_at_once;
    const int64_t count = src.outer.count() / width;
    const int64_t lane_stride = dst.outer.strides[lane];
    const int64_t places_stride = positions ? positions.outer.strides[lane] : 0;
    const int64_t cost = count * width * src.length * (Op::is_quick ? 1 : 4);
    parallel(threads_, cost, [&](int32_t part, int32_t parts) {
      alignas(64) T given[lanes_at_once];
      alignas(64) T made[lanes_at_once];
      typename Op::State states[lanes_at_once];
      const int64_t units = count * blocks;
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        const int64_t first = unit / blocks * width + unit % blocks * lanes_at_once;
        const int64_t n = std::min(lanes_at_once, width - unit % blocks * lanes_at_once);
        const char* const from = src.line(first);
        char* const to = dst.line(first);
        std::fill_n(states, n, Op::start(ends_));
        for (int64_t i = 0; i < src.length; ++i) {
          const int64_t at = at_.reverse != 0 ? src.length - 1 - i : i;
          const char* const row = from + at * src.stride * format_.size;
          const T* x = given;
          if (format_.same) {
            x = reinterpret_cast<const T*>(row);
          } else {
            format_.read(given, 1, row, 1, n);
          }
          if (at_.exclusive != 0) {
            for (int64_t l = 0; l < n; ++l) {
              made[l] = Op::value(states[l]);
              states[l] = Op::next(states[l], x[l], at);
            }
          } else {
            for (int64_t l = 0; l < n; ++l) {
              states[l] = Op::next(states[l], x[l], at);
              made[l] = Op::value(states[l]);
            }
          }
          format_.write(to + at * dst.stride * format_.size, lane_stride, made, 1, n);
          if constexpr (Op::has_positions) {
            auto* const places = reinterpret_cast<int64_t*>(positions.line(first)) + at * positions.stride;
            for (int64_t l = 0; l < n; ++l) places[l * places_stride] = Op::position(states[l]);
          }
        }
      }
    });
  }

  ep_primitive_desc desc_;
  ep_scan_attributes at_;
  int32_t src_, positions_;
  RowFormat format_;
  Ends ends_;
  int32_t threads_;
};

}  // namespace

Refusal Scan::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* positions = operand(desc, EP_ROLE_DST_INDICES);
  const ep_scan_attributes& at = desc.attributes.scan;
  if (src == nullptr || desc.operands[0].role != EP_ROLE_DST ||
      desc.operand_count != (positions != nullptr ? 3U : 2U)) {
    return Refusal::because("its operands are not DST, SRC and perhaps DST_INDICES");
  }
  if (at.op < EP_SCAN_SUM || at.op > EP_SCAN_LOG_SUM_EXP) return Refusal::because("op %d", at.op);
  const bool selects = at.op == EP_SCAN_MAX || at.op == EP_SCAN_MIN;
  const int32_t dtype = desc.operands[0].dtype;
  if (wide_dtype(dtype) == 0 || src->dtype != dtype) return Refusal::because("a source of %s", dtype_name(src->dtype));
  if (at.op == EP_SCAN_LOG_SUM_EXP ? !is_floating(dtype) : dtype == EP_DTYPE_bool && !selects)
    return Refusal::because("op %d on %s", at.op, dtype_name(dtype));
  if (positions != nullptr && (!selects || at.exclusive != 0 || positions->dtype != EP_DTYPE_i64))
    return Refusal::because("positions of %s for op %d", dtype_name(positions->dtype), at.op);
  if (at.axis < 0 || at.axis >= src->rank) return Refusal::because("axis %d of rank %d", at.axis, src->rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Scan::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<ScanPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
