#include "providers/cpu/recurrent/recurrent.h"

#include "providers/cpu/movement/bad_index.h"
#include "providers/cpu/recurrent/cells.h"
#include "providers/cpu/recurrent/product.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// An operand as dense rows of T: in place, or copied.
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

// An output whose last axis holds rows of T.
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

// One launch.
template <class T>
class Run {
 public:
  Run(const ep_launch& launch, const ep_primitive_desc& desc, const Sizes& sizes, SimdLevel level)
      : at_(desc.attributes.recurrent),
        s_(sizes),
        math_(level, at_, sizes.width),
        from_inputs_(level, sizes.gates, sizes.width, sizes.inputs),
        from_state_(level, sizes.gates, sizes.width, sizes.width),
        src_(launch, desc, EP_ROLE_SRC),
        peephole_(launch, desc, EP_ROLE_PEEPHOLE),
        dst_(launch, desc, EP_ROLE_DST),
        dst_hidden_(launch, desc, EP_ROLE_DST_HIDDEN),
        dst_cell_(launch, desc, EP_ROLE_DST_CELL),
        bias_(static_cast<size_t>(row())),
        state_bias_(static_cast<size_t>(row())),
        sums_(static_cast<size_t>(sizes.steps * sizes.batch * row())),
        hidden_(state(launch, desc, EP_ROLE_HIDDEN)),
        cell_(state(launch, desc, EP_ROLE_CELL)) {
    pack(launch, desc);
  }

  // The sums of all inputs, for rows of SRC.
  void inputs(int64_t begin, int64_t end) {
    std::vector<const T*> rows;
    for (int64_t i = begin; i < end; ++i) rows.push_back(src_.row(i, s_.inputs));
    from_inputs_.run(rows.data(), end - begin, 0, s_.gates, bias_.data(), false, sums_.data() + begin * row(), row());
  }

  // All steps of elements [begin, end) of the batch.
  void elements(int64_t begin, int64_t end, const int64_t* lengths) {
    const int64_t n = end - begin;
    std::vector<const T*> states;
    for (int64_t b = begin; b < end; ++b) states.push_back(hidden_.data() + b * s_.width);
    std::vector<T> room(static_cast<size_t>(n * (step() + s_.width)));
    std::vector<T> zeros(static_cast<size_t>(s_.width));
    const bool reverse = (at_.flags & EP_RECURRENT_FLAG_REVERSE) != 0;
    for (int64_t i = 0; i < s_.steps; ++i) {
      const int64_t time = reverse ? s_.steps - 1 - i : i;
      T* const sums = sums_.data() + (time * s_.batch + begin) * row();
      if (at_.cell == EP_CELL_GRU) {
        gru_sums(states.data(), n, sums, room.data());
      } else {
        from_state_.run(states.data(), n, 0, s_.gates, nullptr, true, sums, row());
      }
      for (int64_t b = begin; b < end; ++b) {
        const bool active = lengths == nullptr || time < lengths[b];
        if (active) update(sums + (b - begin) * row(), b);
        dst_.put(time * s_.batch + b, active ? hidden_.data() + b * s_.width : zeros.data());
      }
    }
    for (int64_t b = begin; b < end; ++b) {
      dst_hidden_.put(b, hidden_.data() + b * s_.width);
      dst_cell_.put(b, cell_.data() + b * s_.width);
    }
  }

 private:
  int64_t step() const { return from_state_.step(); }
  int64_t row() const { return s_.gates * step(); }

  std::vector<T> state(const ep_launch& launch, const ep_primitive_desc& desc, int32_t role) const {
    std::vector<T> values(static_cast<size_t>(s_.batch * s_.width));
    const Dense<T> given(launch, desc, role);
    if (given.data() != nullptr) std::copy_n(given.data(), values.size(), values.begin());
    return values;
  }

  bool linear() const { return (at_.flags & EP_RECURRENT_FLAG_LINEAR_BEFORE_RESET) != 0; }

  void pack(const ep_launch& launch, const ep_primitive_desc& desc) {
    const Dense<T> weight(launch, desc, EP_ROLE_WEIGHT), recurrent(launch, desc, EP_ROLE_RECURRENT_WEIGHT);
    const Dense<T> bias(launch, desc, EP_ROLE_BIAS), recurrent_bias(launch, desc, EP_ROLE_RECURRENT_BIAS);
    for (int64_t gate = 0; gate < s_.gates; ++gate) {
      for (int64_t j = 0; j < s_.width; ++j) {
        const int64_t from = gate_block(at_, gate) * s_.width + j;
        const auto to = static_cast<size_t>(gate * step() + j);
        from_inputs_.set(gate, j, weight.row(from, s_.inputs));
        from_state_.set(gate, j, recurrent.row(from, s_.width));
        if (bias.data() != nullptr) bias_[to] = bias.data()[from];
        if (recurrent_bias.data() == nullptr) continue;
        (linear() && gate == 2 ? state_bias_ : bias_)[to] += recurrent_bias.data()[from];
      }
    }
  }

  // The sums of z, r and h; r is a value already.
  void gru_sums(const T* const* states, int64_t n, T* sums, T* room) const {
    from_state_.run(states, n, 0, 2, nullptr, true, sums, row());
    for (int64_t b = 0; b < n; ++b) math_.gru_gates(sums + b * row(), step());
    if (linear()) {
      from_state_.run(states, n, 2, 1, state_bias_.data() + 2 * step(), false, room, step());
      for (int64_t b = 0; b < n; ++b) {
        T* const gates = sums + b * row();
        for (int64_t j = 0; j < s_.width; ++j) gates[2 * step() + j] += gates[step() + j] * room[b * step() + j];
      }
      return;
    }
    std::vector<const T*> reset;
    for (int64_t b = 0; b < n; ++b) {
      T* const to = room + b * s_.width;
      for (int64_t j = 0; j < s_.width; ++j) to[j] = sums[b * row() + step() + j] * states[b][j];
      reset.push_back(to);
    }
    from_state_.run(reset.data(), n, 2, 1, nullptr, true, sums + 2 * step(), row());
  }

  void update(T* gates, int64_t b) {
    T* const h = hidden_.data() + b * s_.width;
    switch (at_.cell) {
      case EP_CELL_LSTM: return math_.lstm(gates, step(), peephole_.data(), h, cell_.data() + b * s_.width);
      case EP_CELL_GRU: return math_.gru_state(gates, gates + 2 * step(), h);
      default: return math_.simple(gates, h);
    }
  }

  ep_recurrent_attributes at_;
  Sizes s_;
  CellMath<T> math_;
  Panels<T> from_inputs_, from_state_;
  Dense<T> src_, peephole_;
  Rows dst_, dst_hidden_, dst_cell_;
  std::vector<T> bias_, state_bias_, sums_, hidden_, cell_;
};

template <class T>
class RecurrentPrimitive final : public ep_primitive {
 public:
  explicit RecurrentPrimitive(const ep_primitive_desc& desc) : desc_(desc) {}

  ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error**) override {
    const auto shape = [&](int32_t role) {
      const int32_t i = find_operand(desc_, role);
      return shape_of(desc_.operands[i], launch.shapes, static_cast<uint32_t>(i));
    };
    const OperandShape src = shape(EP_ROLE_SRC);
    const Sizes sizes = {src.dims[0], src.dims[1], src.dims[2], shape(EP_ROLE_RECURRENT_WEIGHT).dims[1],
                         gate_count(desc_.attributes.recurrent.cell)};
    BadIndex bad;
    const std::vector<int64_t> lengths = lengths_of(launch, sizes, &bad);
    Run<T> run(launch, desc_, sizes, device->simd);
    const int64_t rows = sizes.steps * sizes.batch;
    const int64_t columns = sizes.gates * sizes.width;
    parallel(device->threads, rows * columns * sizes.inputs / 32,
             [&](int32_t part, int32_t parts) { run.inputs(rows * part / parts, rows * (part + 1) / parts); });
    const int64_t* const until = lengths.empty() ? nullptr : lengths.data();
    if (sizes.batch == 1) {
      run.elements(0, 1, until);
    } else {
      const int64_t each = columns * (sizes.width / 32 + 2);
      parallel(device->threads, rows * each, [&](int32_t part, int32_t parts) {
        const int64_t begin = sizes.batch * part / parts;
        const int64_t end = sizes.batch * (part + 1) / parts;
        if (begin < end) run.elements(begin, end, until);
      });
    }
    return bad.answer(launch, find_operand(desc_, EP_ROLE_LENGTHS), out_fault);
  }

 private:
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
  if (src != nullptr && src->dtype == EP_DTYPE_f64) return Refusal::because("f64 takes loops");
  return why_not(device, desc, info);
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
