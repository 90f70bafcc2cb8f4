// scan, in one of three ways. If other elements are adjacent, they become lanes: each row is combined with a block of
// states. Short lines without gaps are read together. Otherwise a line is read in pieces. Chunks of a long line are
// first combined separately, so that several threads can continue from there. Chunks have one length for any number of
// threads.
#include <algorithm>

#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/order/lines.h"
#include "providers/cpu/order/order.h"
#include "providers/cpu/order/scan_states.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t piece = 512;             // elements converted at a time
constexpr int64_t chunk_length = 1 << 15;  // chunk of a long line
constexpr int64_t least_lanes = 3;
constexpr int64_t few = 32;  // elements of a line that is too short for vectors

class ScanPrimitive final : public ep_primitive {
 public:
  ScanPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        at_(desc.attributes.scan),
        src_(find_operand(desc, EP_ROLE_SRC)),
        positions_(find_operand(desc, EP_ROLE_DST_INDICES)),
        format_(desc.operands[0].dtype, on.simd),
        ends_(desc.operands[0].dtype),
        kernels_(&scan_kernels(on.simd)),
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
    const Lines dst(desc_, launch, 0, at_.axis);
    const Lines src = source(launch);
    const Lines positions(desc_, launch, positions_, at_.axis);
    const int32_t lane = src.outer.rank - 1;
    const bool lanes =
        lane >= 0 && src.stride != 1 && src.outer.strides[lane] == 1 && src.outer.dims[lane] >= least_lanes;
    constexpr bool likes_lines = has_line<Op> && !has_lanes<Op> && !Op::is_quick;
    if (lanes && !likes_lines && src.length <= INT32_MAX) return by_lanes<Op>(src, dst, positions);
    const int64_t count = src.outer.count();
    const int64_t cost = src.length * (Op::is_quick ? 1 : 4);
    if (count < threads_ && src.length >= 2 * chunk_length) {
      for (int64_t line = 0; line < count; ++line) long_line<Op>(src, dst, positions, line, cost);
      return;
    }
    const bool together = src.length <= few && is_dense(src) && is_dense(dst) && (!positions || is_dense(positions));
    parallel(threads_, count * cost, [&](int32_t part, int32_t parts) {
      if (together) {
        return short_lines<Op>(src, dst, positions, count * part / parts, count * (part + 1) / parts);
      }
      for (int64_t line = count * part / parts; line < count * (part + 1) / parts; ++line) {
        typename Op::State state = Op::start(ends_);
        stretch<Op, true>(src, dst, positions, line, 0, src.length, &state);
      }
    });
  }

  // The lines of the source. If its neighbours are others than those of the result, it is copied there first.
  Lines source(const ep_launch& launch) const {
    const OperandShape dst = shape_of(desc_.operands[0], launch.shapes, 0);
    const OperandShape src = shape_of(desc_.operands[src_], launch.shapes, static_cast<uint32_t>(src_));
    char* const to = address_of(launch.operands[0]);
    char* const from = address_of(launch.operands[src_]);
    if (has_neighbours_of(dst, src) || overlap(format_.size, dst, to, src, from))
      return {src, from, format_.size, at_.axis};
    copy_operand(format_.size, dst, to, src, from, device->simd, threads_);
    return {dst, to, format_.size, at_.axis};
  }

  // True if each line follows the one before it without a gap.
  static bool is_dense(const Lines& lines) {
    return lines.outer.rank > 0 && (lines.stride == 1 || lines.length == 1) && lines.outer.contiguous(lines.length);
  }

  // Scans lines [begin, end), which are dense, as many as a piece holds at a time.
  template <class Op>
  void short_lines(const Lines& src, const Lines& dst, const Lines& positions, int64_t begin, int64_t end) const {
    using T = typename Op::Element;
    alignas(64) T given[piece];
    alignas(64) T made[piece];
    const int64_t length = src.length, most = piece / length;
    const int64_t first = at_.reverse != 0 ? length - 1 : 0, way = at_.reverse != 0 ? -1 : 1;
    const typename Op::State start = Op::start(ends_);
    for (int64_t line = begin; line < end; line += most) {
      const int64_t count = std::min(most, end - line), n = count * length;
      const char* const from = src.base + line * length * format_.size;
      char* const to = dst.base + line * length * format_.size;
      const T* const x = format_.same ? reinterpret_cast<const T*>(from) : given;
      T* const y = format_.same ? reinterpret_cast<T*>(to) : made;
      int64_t* const places = positions ? reinterpret_cast<int64_t*>(positions.base) + line * length : nullptr;
      if (!format_.same) format_.read(given, 1, from, 1, n);
      for (int64_t k = 0; k < count; ++k) {
        typename Op::State state = start;
        for (int64_t i = first, left = length; left > 0; --left, i += way) {
          const int64_t at = k * length + i;
          step<Op, true>(x[at], y + at, places, at, i, &state);
        }
      }
      if (!format_.same) format_.write(to, 1, made, 1, n);
    }
  }

  // Scans a line whose chunks several threads combine.
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
    if (!std::all_of(states, states + chunks, Op::joins)) {
      return stretch<Op, true>(src, dst, positions, line, 0, src.length, &state);
    }
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

  // Processes steps [begin, end) of a line, backwards if the scan is reversed. Writes results only if `writes`.
  template <class Op, bool writes>
  void stretch(const Lines& src, const Lines& dst, const Lines& positions, int64_t line, int64_t begin, int64_t end,
               typename Op::State* state) const {
    using T = typename Op::Element;
    alignas(64) T given[piece];
    alignas(64) T made[piece];
    int64_t places[Op::has_positions ? piece : 1];
    const char* const from = src.line(line);
    char* const to = dst.line(line);
    const bool places_in_place = at_.reverse == 0 && positions.stride == 1;
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
      int64_t* into = places;
      if constexpr (Op::has_positions && writes) {
        if (places_in_place) into = reinterpret_cast<int64_t*>(positions.line(line)) + low;
      }
      combine<Op, writes>(x, y, into, n, low, state);
      if constexpr (!writes) continue;
      if (at_.reverse != 0) std::reverse(made, made + n);
      if (!in_place) format_.write(to + low * dst.stride * format_.size, dst.stride, made, 1, n);
      if constexpr (Op::has_positions) {
        if (places_in_place) continue;
        if (at_.reverse != 0) std::reverse(places, places + n);
        auto* const line_positions = reinterpret_cast<int64_t*>(positions.line(line)) + low * positions.stride;
        for (int64_t i = 0; i < n; ++i) line_positions[i * positions.stride] = places[i];
      }
    }
  }

  // Processes n elements. `low` is the position of the first one processed; of the last one if backwards. `x` may be
  // `y`.
  template <class Op, bool writes>
  void combine(const typename Op::Element* x, typename Op::Element* y, int64_t* places, int64_t n, int64_t low,
               typename Op::State* carry) const {
    using State = typename Op::State;
    if constexpr (has_line<Op>) {
      const auto kernel = Op::line(*kernels_);
      if constexpr (Op::has_positions) {
        const int64_t step = at_.reverse != 0 ? -1 : 1;
        kernel(x, writes ? y : nullptr, places, n, step < 0 ? low + n - 1 : low, step, carry);
      } else if constexpr (std::is_same_v<typename Op::Element, int64_t>) {
        kernel(reinterpret_cast<const uint64_t*>(x), reinterpret_cast<uint64_t*>(writes ? y : nullptr), n, carry,
               at_.exclusive != 0);
      } else {
        kernel(x, writes ? y : nullptr, n, carry, at_.exclusive != 0);
      }
      return;
    }
    State state = *carry;
    if constexpr (Op::is_quick) {
      // Four runs in parallel, because within a run each state depends on the previous one.
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

  // Processes blocks of lanes along the last of the other axes.
  template <class Op>
  void by_lanes(const Lines& src, const Lines& dst, const Lines& positions) const {
    const int32_t lane = src.outer.rank - 1;
    const int64_t width = src.outer.dims[lane];
    const int64_t blocks = (width + LaneStates<Op>::most - 1) / LaneStates<Op>::most;
    const int64_t units = src.outer.count() / width * blocks;
    const int64_t cost = src.outer.count() * src.length * (Op::is_quick ? 1 : 4);
    parallel(threads_, cost, [&](int32_t part, int32_t parts) {
      LaneStates<Op> states(*kernels_, ends_, at_.exclusive != 0);
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        const int64_t begin = unit % blocks * LaneStates<Op>::most;
        lanes_of_block<Op>(src, dst, positions, unit / blocks * width + begin,
                           std::min(LaneStates<Op>::most, width - begin), &states);
      }
    });
  }

  // Processes the adjacent lines [first, first + n).
  template <class Op>
  void lanes_of_block(const Lines& src, const Lines& dst, const Lines& positions, int64_t first, int64_t n,
                      LaneStates<Op>* states) const {
    using T = typename Op::Element;
    alignas(64) T given[LaneStates<Op>::most];
    alignas(64) T made[LaneStates<Op>::most];
    int64_t found[Op::has_positions ? LaneStates<Op>::most : 1];
    const int32_t lane = src.outer.rank - 1;
    const int64_t dst_step = dst.outer.strides[lane];
    const int64_t places_step = positions ? positions.outer.strides[lane] : 0;
    const char* const from = src.line(first);
    char* const to = dst.line(first);
    const bool in_place = format_.same && dst_step == 1;
    // Rows without gaps are converted together.
    const int64_t most = src.stride == n && dst.stride == n && dst_step == 1 ? LaneStates<Op>::most / n : 1;
    states->restart(n);
    for (int64_t begin = 0; begin < src.length; begin += most) {
      const int64_t count = std::min(most, src.length - begin);
      const int64_t low = at_.reverse != 0 ? src.length - begin - count : begin;
      const char* const rows = from + low * src.stride * format_.size;
      char* const out = to + low * dst.stride * format_.size;
      if (!format_.same) format_.read(given, 1, rows, 1, count * n);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = at_.reverse != 0 ? count - 1 - i : i, at = low + row;
        const T* const x =
            format_.same ? reinterpret_cast<const T*>(rows + row * src.stride * format_.size) : given + row * n;
        T* const y = in_place ? reinterpret_cast<T*>(out + row * dst.stride * format_.size) : made + row * n;
        if constexpr (Op::has_positions) {
          auto* const places = reinterpret_cast<int64_t*>(positions.line(first)) + at * positions.stride;
          states->step(x, y, places_step == 1 ? places : found, at);
          for (int64_t l = 0; l < n && places_step != 1; ++l) places[l * places_step] = found[l];
        } else {
          states->step(x, y, found, at);
        }
      }
      if (!in_place) format_.write(out, dst_step, made, 1, count * n);
    }
  }

  ep_primitive_desc desc_;
  ep_scan_attributes at_;
  int32_t src_, positions_;
  RowFormat format_;
  Ends ends_;
  const ScanKernels* kernels_;
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
