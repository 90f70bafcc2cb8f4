#include "providers/cpu/recurrent/recurrent.h"

#include "providers/cpu/movement/bad_index.h"
#include "providers/cpu/onednn/relaxed.h"
#include "providers/cpu/recurrent/cells.h"
#include "providers/cpu/recurrent/product.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// An operand as dense rows of T, in place or copied.
template <class T>
class Dense {
 public:
  Dense(const ep_launch& launch, const ep_primitive_desc& desc, int32_t role) {
    number_ = find_operand(desc, role);
    if (number_ < 0) return;
    const ep_operand_desc& given = desc.operands[number_];
    const Axes axes = axes_of(shape_of(given, launch.shapes, static_cast<uint32_t>(number_)), ~0U, true);
    const RowFormat format(given.dtype);
    const char* base = address_of(launch.operands[number_]);
    if (!format.in_place(axes)) copy_.resize(static_cast<size_t>(axes.count()));
    data_ = static_cast<const T*>(format.fetch(base, axes, copy_.data()));
  }
  const T* data() const { return data_; }
  const T* row(int64_t i, int64_t width) const { return data_ + i * width; }

 private:
  int32_t number_ = -1;
  std::vector<T> copy_;
  const T* data_ = nullptr;
};

// An output whose last axis contains rows of T.
class Rows {
 public:
  Rows(const ep_launch& launch, const ep_primitive_desc& desc, int32_t role) {
    const int32_t number = find_operand(desc, role);
    if (number < 0) return;
    format_ = RowFormat(desc.operands[number].dtype);
    const OperandShape shape = shape_of(desc.operands[number], launch.shapes, static_cast<uint32_t>(number));
    outer_ = axes_of(shape, (1U << (shape.rank - 1)) - 1, true);
    row_.add(shape.dims[shape.rank - 1], shape.strides[shape.rank - 1]);
    base_ = address_of(launch.operands[number]);
  }
  void put(int64_t i, const void* values) const {
    if (base_ != nullptr) format_.put(base_ + outer_.offset(i) * format_.size, row_, values);
  }

 private:
  RowFormat format_;
  Axes outer_, row_;
  char* base_ = nullptr;
};

struct Sizes {
  int64_t steps, batch, inputs, width, gates;
};

// One launch. P holds the packed weights.
template <class T, class P>
class Run {
 public:
  // `room` is a workspace of bytes() bytes.
  Run(const ep_launch& launch, const ep_primitive_desc& desc, const Sizes& sizes, SimdLevel level, T* room)
      : at_(desc.attributes.recurrent),
        s_(sizes),
        math_(level, at_, sizes.width),
        from_inputs_(level, sizes.width, sizes.inputs, room),
        from_state_(level, sizes.width, sizes.width, room + sizes.gates * P::size(from_inputs_.step(), sizes.inputs)),
        src_(launch, desc, EP_ROLE_SRC),
        weight_(launch, desc, EP_ROLE_WEIGHT),
        recurrent_(launch, desc, EP_ROLE_RECURRENT_WEIGHT),
        peephole_(launch, desc, EP_ROLE_PEEPHOLE),
        dst_(launch, desc, EP_ROLE_DST),
        dst_hidden_(launch, desc, EP_ROLE_DST_HIDDEN),
        dst_cell_(launch, desc, EP_ROLE_DST_CELL),
        bias_(static_cast<size_t>(row())),
        state_bias_(static_cast<size_t>(row())),
        sums_(room + weights(sizes, step())),
        hidden_(state(launch, desc, EP_ROLE_HIDDEN)),
        cell_(state(launch, desc, EP_ROLE_CELL)) {
    hidden_.resize(2 * hidden_.size());
    add_biases(launch, desc);
  }

  static uint64_t bytes(const Sizes& sizes, SimdLevel level) {
    const int64_t step = P(level, sizes.width, 0, nullptr).step();
    return static_cast<uint64_t>(weights(sizes, step) + sizes.gates * step * sizes.steps * sizes.batch) * sizeof(T);
  }

  // The number of panels of each of the two weights.
  int64_t panels() const { return s_.gates * from_state_.per_gate(); }
  // Packs panels [begin, end). Called before everything else.
  void pack(int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t gate = i / from_state_.per_gate(), panel = i % from_state_.per_gate();
      const int64_t from = gate_block(at_, gate) * s_.width;
      from_inputs_.pack(gate, panel, weight_.row(from, s_.inputs));
      from_state_.pack(gate, panel, recurrent_.row(from, s_.width));
    }
  }

  // Computes the gate sums of all inputs, for rows [begin, end) of SRC.
  void inputs(int64_t begin, int64_t end) {
    std::vector<const T*> rows;
    for (int64_t i = begin; i < end; ++i) rows.push_back(src_.row(i, s_.inputs));
    from_inputs_.run(rows.data(), end - begin, 0, panels(), bias_.data(), false, sums_ + begin * row(), row());
  }

  // True if several threads can share the steps of a batch element, which requires that no gate sum depends on another
  // thread's result of the same step.
  bool can_share() const { return at_.cell != EP_CELL_GRU || linear(); }

  // Runs all steps of elements [begin, end) of the batch.
  void elements(int64_t begin, int64_t end, const int64_t* lengths) {
    walk(begin, end, 0, from_state_.per_gate(), lengths, false);
  }
  // Runs all steps of the whole batch for a part of each state, together with the other parts.
  void share(int32_t part, int32_t parts, const int64_t* lengths) {
    const int64_t all = from_state_.per_gate();
    walk(0, s_.batch, all * part / parts, all * (part + 1) / parts, lengths, parts > 1);
  }

 private:
  // The room of both weights, in T.
  static int64_t weights(const Sizes& sizes, int64_t step) {
    return sizes.gates * (P::size(step, sizes.inputs) + P::size(step, sizes.width));
  }

  int64_t step() const { return from_state_.step(); }
  int64_t row() const { return s_.gates * step(); }

  std::vector<T> state(const ep_launch& launch, const ep_primitive_desc& desc, int32_t role) const {
    std::vector<T> values(static_cast<size_t>(s_.batch * s_.width));
    const Dense<T> given(launch, desc, role);
    if (given.data() != nullptr) std::copy_n(given.data(), values.size(), values.begin());
    return values;
  }

  bool linear() const { return (at_.flags & EP_RECURRENT_FLAG_LINEAR_BEFORE_RESET) != 0; }

  void add_biases(const ep_launch& launch, const ep_primitive_desc& desc) {
    const Dense<T> bias(launch, desc, EP_ROLE_BIAS), recurrent_bias(launch, desc, EP_ROLE_RECURRENT_BIAS);
    for (int64_t gate = 0; gate < s_.gates; ++gate) {
      for (int64_t j = 0; j < s_.width; ++j) {
        const int64_t from = gate_block(at_, gate) * s_.width + j;
        const auto to = static_cast<size_t>(gate * step() + j);
        if (bias.data() != nullptr) bias_[to] = bias.data()[from];
        if (recurrent_bias.data() == nullptr) continue;
        (linear() && gate == 2 ? state_bias_ : bias_)[to] += recurrent_bias.data()[from];
      }
    }
  }

  // A part of each state: panels [first, first + panels).
  struct Part {
    int64_t first, panels, begin, count;
  };

  // A step reads the previous states from the other half of hidden_.
  void walk(int64_t begin, int64_t end, int64_t first, int64_t last, const int64_t* lengths, bool waits) {
    const int64_t n = end - begin, columns = from_state_.columns(), half = s_.batch * s_.width;
    const Part part = {first, last - first, first * columns, std::min(last * columns, s_.width) - first * columns};
    std::vector<const T*> states(static_cast<size_t>(n));
    std::vector<T> room(static_cast<size_t>(n * (step() + s_.width)));
    const std::vector<T> zeros(static_cast<size_t>(s_.width));
    const bool reverse = (at_.flags & EP_RECURRENT_FLAG_REVERSE) != 0;
    for (int64_t i = 0; i < s_.steps; ++i) {
      const int64_t time = reverse ? s_.steps - 1 - i : i;
      const T* const before = hidden_.data() + i % 2 * half;
      T* const after = hidden_.data() + (i + 1) % 2 * half;
      T* const sums = sums_ + (time * s_.batch + begin) * row();
      for (int64_t b = 0; b < n; ++b) states[static_cast<size_t>(b)] = before + (begin + b) * s_.width;
      if (at_.cell == EP_CELL_GRU) {
        gru_sums(states.data(), n, sums, room.data(), part);
      } else {
        add_products(states.data(), n, 0, s_.gates, sums, part);
      }
      const auto active = [&](int64_t b) { return lengths == nullptr || time < lengths[b]; };
      for (int64_t b = begin; b < end; ++b) {
        const int64_t at = b * s_.width + part.begin;
        if (active(b))
          update(sums + (b - begin) * row() + part.begin, before + at, after + at, b, part);
        else
          std::copy_n(before + at, part.count, after + at);
      }
      if (waits) wait_for_others();
      for (int64_t b = begin; first == 0 && b < end; ++b) {
        dst_.put(time * s_.batch + b, active(b) ? after + b * s_.width : zeros.data());
      }
    }
    for (int64_t b = begin; first == 0 && b < end; ++b) {
      dst_hidden_.put(b, hidden_.data() + s_.steps % 2 * half + b * s_.width);
      dst_cell_.put(b, cell_.data() + b * s_.width);
    }
  }

  // sums += states times `count` gates from `gate` on.
  void add_products(const T* const* states, int64_t n, int64_t gate, int64_t count, T* sums, const Part& part) const {
    const int64_t all = from_state_.per_gate();
    if (part.panels == all) {
      return from_state_.run(states, n, gate * all, count * all, nullptr, true, sums + gate * step(), row());
    }
    for (int64_t g = gate; g < gate + count; ++g) {
      from_state_.run(states, n, g * all + part.first, part.panels, nullptr, true, sums + g * step() + part.begin,
                      row());
    }
  }

  // Computes the sums of z, r and h. Applies the gate function to r first.
  void gru_sums(const T* const* states, int64_t n, T* sums, T* room, const Part& part) const {
    add_products(states, n, 0, 2, sums, part);
    for (int64_t b = 0; b < n; ++b) math_.gru_gates(sums + b * row() + part.begin, step(), part.count);
    if (linear()) {
      from_state_.run(states, n, 2 * from_state_.per_gate() + part.first, part.panels,
                      state_bias_.data() + 2 * step() + part.begin, false, room + part.begin, step());
      for (int64_t b = 0; b < n; ++b) {
        T* const gates = sums + b * row() + part.begin;
        for (int64_t j = 0; j < part.count; ++j)
          gates[2 * step() + j] += gates[step() + j] * room[b * step() + part.begin + j];
      }
      return;
    }
    std::vector<const T*> reset;
    for (int64_t b = 0; b < n; ++b) {
      T* const to = room + b * s_.width;
      for (int64_t j = 0; j < s_.width; ++j) to[j] = sums[b * row() + step() + j] * states[b][j];
      reset.push_back(to);
    }
    add_products(reset.data(), n, 2, 1, sums, part);
  }

  void update(T* gates, const T* before, T* after, int64_t b, const Part& part) {
    switch (at_.cell) {
      case EP_CELL_LSTM: {
        const T* const peephole = peephole_.data() == nullptr ? nullptr : peephole_.data() + part.begin;
        return math_.lstm(gates, step(), peephole, after, cell_.data() + b * s_.width + part.begin, part.count);
      }
      case EP_CELL_GRU: return math_.gru_state(gates, gates + 2 * step(), before, after, part.count);
      default: return math_.simple(gates, after, part.count);
    }
  }

  ep_recurrent_attributes at_;
  Sizes s_;
  CellMath<T> math_;
  P from_inputs_, from_state_;
  Dense<T> src_, weight_, recurrent_, peephole_;
  Rows dst_, dst_hidden_, dst_cell_;
  std::vector<T> bias_, state_bias_;
  T* sums_;  // [steps, batch, row()]
  std::vector<T> hidden_, cell_;
};

template <class T, class P = Panels<T>>
class RecurrentPrimitive final : public ep_primitive {
 public:
  explicit RecurrentPrimitive(const ep_primitive_desc& desc) : desc_(desc) {}

  bool has_workspace() const override { return true; }
  uint64_t workspace(const ep_shape* shapes) const override { return Run<T, P>::bytes(sizes_of(shapes), device->simd); }

  ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error** error) override {
    if (launch.workspace.memory == nullptr && workspace(launch.shapes) != 0) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "The launch of a recurrent cell has no workspace.");
    }
    const Sizes sizes = sizes_of(launch.shapes);
    BadIndex bad;
    const std::vector<int64_t> lengths = lengths_of(launch, sizes, &bad);
    Run<T, P> run(launch, desc_, sizes, device->simd, reinterpret_cast<T*>(address_of(launch.workspace)));
    const int64_t rows = sizes.steps * sizes.batch;
    const int64_t columns = sizes.gates * sizes.width;
    parallel(device->threads, columns * (sizes.inputs + sizes.width) / 8, [&](int32_t part, int32_t parts) {
      run.pack(run.panels() * part / parts, run.panels() * (part + 1) / parts);
    });
    parallel(device->threads, rows * columns * sizes.inputs / 32,
             [&](int32_t part, int32_t parts) { run.inputs(rows * part / parts, rows * (part + 1) / parts); });
    const int64_t* const until = lengths.empty() ? nullptr : lengths.data();
    const int64_t each = columns * (sizes.width / 32 + 2);
    if (sizes.batch == 1 && run.can_share() && each >= worth_sharing) {
      together(device->threads, rows * each, [&](int32_t part, int32_t parts) { run.share(part, parts, until); });
    } else {
      parallel(sizes.batch == 1 ? 1 : device->threads, rows * each, [&](int32_t part, int32_t parts) {
        const int64_t begin = sizes.batch * part / parts;
        const int64_t end = sizes.batch * (part + 1) / parts;
        if (begin < end) run.elements(begin, end, until);
      });
    }
    return bad.answer(launch, find_operand(desc_, EP_ROLE_LENGTHS), out_fault);
  }

 private:
  // Nanoseconds per step from which on threads share a step; they synchronise after each step.
  static constexpr int64_t worth_sharing = 4000;

  Sizes sizes_of(const ep_shape* shapes) const {
    const auto shape = [&](int32_t role) {
      const int32_t i = find_operand(desc_, role);
      return shape_of(desc_.operands[i], shapes, static_cast<uint32_t>(i));
    };
    const OperandShape src = shape(EP_ROLE_SRC);
    return {src.dims[0], src.dims[1], src.dims[2], shape(EP_ROLE_RECURRENT_WEIGHT).dims[1],
            gate_count(desc_.attributes.recurrent.cell)};
  }

  std::vector<int64_t> lengths_of(const ep_launch& launch, const Sizes& sizes, BadIndex* bad) const {
    std::vector<int64_t> lengths;
    const int32_t i = find_operand(desc_, EP_ROLE_LENGTHS);
    if (i < 0) return lengths;
    const int64_t stride = shape_of(desc_.operands[i], launch.shapes, static_cast<uint32_t>(i)).strides[0];
    const bool wide = desc_.operands[i].dtype == EP_DTYPE_i64;
    for (int64_t b = 0; b < sizes.batch; ++b) {
      const int64_t given = index_at(address_of(launch.operands[i]), b * stride, wide);
      lengths.push_back(std::clamp<int64_t>(given, 0, sizes.steps));
      if (lengths.back() != given) bad->note(given, sizes.steps);
    }
    return lengths;
  }

  ep_primitive_desc desc_;
};

}  // namespace

Refusal Recurrent::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_recurrent_attributes& at = desc.attributes.recurrent;
  if (at.cell < EP_CELL_TANH || at.cell > EP_CELL_GRU) return Refusal::because("cell %d", at.cell);
  const int32_t known = EP_RECURRENT_FLAG_REVERSE | EP_RECURRENT_FLAG_LINEAR_BEFORE_RESET | EP_RECURRENT_FLAG_COUPLED |
                        EP_RECURRENT_FLAG_TORCH;
  if ((at.flags & ~known) != 0) return Refusal::because("flags %d", at.flags);
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* recurrent = operand(desc, EP_ROLE_RECURRENT_WEIGHT);
  if (src == nullptr || src->rank != 3 || recurrent == nullptr || recurrent->rank != 2 ||
      operand(desc, EP_ROLE_WEIGHT) == nullptr) {
    return Refusal::because("it lacks SRC, WEIGHT or RECURRENT_WEIGHT");
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const int32_t dtype = desc.operands[i].dtype;
    const bool indices = desc.operands[i].role == EP_ROLE_LENGTHS;
    if (indices ? dtype != EP_DTYPE_i32 && dtype != EP_DTYPE_i64 : dtype != src->dtype || !is_row_float(dtype))
      return Refusal::because("operand %u of %s", i, dtype_name(dtype));
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Recurrent::simd_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  if (src != nullptr && src->dtype == EP_DTYPE_f64) return Refusal::because("f64 is computed in plain loops");
  return why_not(device, desc, info);
}

Refusal Recurrent::relaxed_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (Refusal refusal = why_not_relaxed(device, desc)) return refusal;
  if (Refusal refusal = why_not(device, desc, info)) return refusal;
  info.flags |= EP_SUPPORT_FLAG_RELAXED;
  return {};
}

Refusal Recurrent::relaxed_make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                ep_primitive_info&) {
  *out = make_primitive<RecurrentPrimitive<float, RoundedPanels>>(device, desc);
  return {};
}

Refusal Recurrent::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  if (operand(desc, EP_ROLE_SRC)->dtype == EP_DTYPE_f64) {
    *out = make_primitive<RecurrentPrimitive<double>>(device, desc);
  } else {
    *out = make_primitive<RecurrentPrimitive<float>>(device, desc);
  }
  return {};
}

}  // namespace tenon::provider::cpu
