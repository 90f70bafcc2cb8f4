// Control flow: branches, loops and scans. Conditions that are known while the model is recorded are decided then;
// otherwise branches and bodies become regions of the graph (core/graph/regions). If a loop cannot be a region, the
// model runs node after node.
#include <algorithm>

#include "core/graph/recorder.h"
#include "core/graph/regions/control_flow.h"
#include "core/ops/op_call.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

// A recorded loop of at most this many steps is unrolled if it cannot be a region.
constexpr int64_t kMostUnrolled = 1024;
// A loop of at most this many steps is always unrolled.
constexpr int64_t kFewSteps = 4;

bool recording() { return dynamic_cast<graph::Recorder*>(&current_interpreter()) != nullptr; }

// Scope in which the steps of a recorded loop are recorded one by one. Nested loops multiply. Throws UnknownValue if
// the steps are too many.
class Unrolling {
 public:
  explicit Unrolling(int64_t steps) : before_(unrolled_) {
    if (!recording()) return;
    if (steps > kMostUnrolled / before_) throw UnknownValue(-1);
    unrolled_ *= std::max<int64_t>(1, steps);
  }
  ~Unrolling() { unrolled_ = before_; }
  Unrolling(const Unrolling&) = delete;
  Unrolling& operator=(const Unrolling&) = delete;

 private:
  static thread_local int64_t unrolled_;
  int64_t before_;
};
thread_local int64_t Unrolling::unrolled_ = 1;

Tensor host_bool(bool value) { return Tensor::copy_from_host(&value, Dims(), DType::boolean, Device::host()); }
Tensor host_int(int64_t value) { return Tensor::copy_from_host(&value, Dims(), DType::i64, Device::host()); }

// Moves the results of a region to one device.
TensorList tensors_on(Device device, const ValueList& values) {
  TensorList tensors;
  for (const Value& value : values) tensors.push_back(value.tensor().to(device));
  return tensors;
}

ValueList values_of(const TensorList& tensors) { return {tensors.begin(), tensors.end()}; }

bool all_known(const ValueList& values) {
  return std::all_of(values.begin(), values.end(),
                     [](const Value& value) { return !value.is_tensor() || NodeContext::is_known(value.tensor()); });
}

bool is_true(NodeContext& n, const Value& value) {
  const Tensor& condition = value.tensor();
  if (condition.dtype() != DType::boolean || condition.elements() != 1) {
    n.invalid(fmt::format("its condition must be one bool, not {}", to_string(value)));
  }
  if (!NodeContext::is_known(condition)) throw UnknownValue(-1);
  return condition.item().to_int() != 0;
}

// If a part cannot be recorded, the model is still valid: the node waits until `value` is known.
template <class Record>
auto recorded_or_unknown(int32_t value, Record record) {
  try {
    return record();
  } catch (const UnknownValue&) {
  } catch (const Error& error) {
    if (error.code() != Code::unsupported && error.code() != Code::invalid_argument) throw;
  }
  throw UnknownValue(value);
}

ValueList translate_if(NodeContext& n) {
  const Subgraph &then_graph = n.graph("then_branch"), &else_graph = n.graph("else_branch");
  for (const Subgraph* graph : {&then_graph, &else_graph}) {
    if (graph->outputs.size() != n.output_count())
      n.invalid(fmt::format("a branch has {} outputs, but the node has {}", graph->outputs.size(), n.output_count()));
  }
  if (NodeContext::is_known(n.value(0).tensor())) return n.run(is_true(n, n.value(0)) ? then_graph : else_graph, {});
  const int32_t condition = n.node().inputs[0];
  return recorded_or_unknown(condition, [&] {
    const Tensor predicate = reshape(n.input(0), Dims());
    const Device device = predicate.device();
    return values_of(cond(
        predicate, [&] { return tensors_on(device, n.run(then_graph, {})); },
        [&] { return tensors_on(device, n.run(else_graph, {})); }));
  });
}

// Joins the results of all steps for one output of a body.
Value stacked(NodeContext& n, const ValueList& steps, const ValueInfo& info, int64_t axis = 0) {
  if (!steps.empty()) {
    TensorList tensors;
    for (const Value& step : steps) {
      const Tensor& tensor = step.tensor();
      if (tensor.rank() >= EP_MAX_RANK) n.invalid("a stacked result would have more than 8 axes");
      tensors.push_back(unsqueeze(tensor.to(n.device()), n.normalise_axis(axis, tensor.rank() + 1)));
    }
    return tensors.size() == 1 ? tensors[0] : concat(tensors, n.normalise_axis(axis, tensors[0].rank()));
  }
  if (info.dtype == DType::none)
    n.unsupported("it runs zero steps, and its body does not declare the type of its outputs");
  Dims dims{0};
  for (const Dim& dim : info.dims) {
    if (dims.rank() < EP_MAX_RANK) dims.push_back(std::max<int64_t>(0, dim.value));
  }
  return full(dims, Scalar(0), info.dtype, n.device());
}

class Loop {
 public:
  explicit Loop(NodeContext& n) : n_(n), body_(n.graph("body")) {
    for (size_t i = 2; i < n.input_count(); ++i) state_.push_back(n.value(i));
    if (body_.inputs.size() != state_.size() + 2 || body_.outputs.size() < state_.size() + 1 ||
        body_.outputs.size() - 1 != n.output_count()) {
      n.invalid(fmt::format("its body has {} inputs and {} outputs, but the node has {} states and {} outputs",
                            body_.inputs.size(), body_.outputs.size(), state_.size(), n.output_count()));
    }
    most_known_ = !n.has(0) || NodeContext::is_known(n.value(0).tensor());
    if (n.has(0) && most_known_) most_ = std::max<int64_t>(0, n.scalar(0).to_int());
    start_known_ = !n.has(1) || NodeContext::is_known(n.value(1).tensor());
  }

  ValueList run() {
    if (start_known_ && n_.has(1) && !is_true(n_, n_.value(1))) most_ = 0, most_known_ = true;
    const bool counted = start_known_ && goes_on();
    if (!n_.has(0) && counted) n_.invalid("it never ends: it has no number of steps, and its condition stays true");
    if (!recording()) return steps();
    if (start_known_ && most_known_ && (counted ? most_ <= kFewSteps : all_known(inputs()))) return steps();
    if (counted && most_known_ && n_.has(0)) return scanned();
    if (scans() != 0) throw UnknownValue(-1);  // the number of results is not known
    return recorded_or_unknown(n_.has(0) ? n_.node().inputs[0] : -1, [&] { return looped(); });
  }

 private:
  size_t scans() const { return body_.outputs.size() - 1 - state_.size(); }

  // The initial values of the loop, and the outer values that its body reads.
  ValueList inputs() {
    ValueList all = state_;
    for (const int32_t value : n_.node().captures) all.push_back(n_.captured(value));
    return all;
  }

  // True if the body passes its condition on or gives a constant true, so that only the number of steps ends the loop.
  bool goes_on() {
    const int32_t condition = body_.outputs[0];
    if (condition == body_.inputs[1]) return true;
    for (const Node& node : body_.nodes) {
      if (node.outputs.size() == 1 && node.outputs[0] == condition && node.op_type == "Identity")
        return node.inputs[0] == body_.inputs[1];
    }
    const Value& constant = n_.captured(condition);
    return constant.is_tensor() && NodeContext::is_known(constant.tensor()) && is_true(n_, constant);
  }

  // Runs step after step, like eager code.
  ValueList steps() {
    const Unrolling unrolling(most_);
    ValueList state = state_;
    std::vector<ValueList> results(scans());
    Value condition = n_.has(1) ? n_.value(1) : Value(host_bool(true));
    for (int64_t step = 0; step < most_ && is_true(n_, condition); ++step) {
      ValueList inputs{host_int(step), condition};
      inputs.insert(inputs.end(), state.begin(), state.end());
      ValueList made = n_.run(body_, inputs);
      condition = made[0];
      for (size_t i = 0; i < state.size(); ++i) state[i] = made[1 + i];
      for (size_t i = 0; i < results.size(); ++i) results[i].push_back(made[1 + state.size() + i]);
    }
    for (size_t i = 0; i < results.size(); ++i)
      state.push_back(stacked(n_, results[i], body_.output_infos[1 + state_.size() + i]));
    return state;
  }

  // One region for all steps; the number of steps is known.
  ValueList scanned() {
    try {
      return recorded_or_unknown(-1, [&] {
        const Tensor numbers = arange(Scalar(most_), DType::i64, n_.device());
        const Scanned all = scan(
            [&](const TensorList& carry, const TensorList& slices) {
              ValueList inputs{slices[0], host_bool(true)};
              for (const Tensor& state : carry) inputs.push_back(state);
              const ValueList made = n_.run(body_, inputs);
              const TensorList tensors = tensors_on(n_.device(), {made.begin() + 1, made.end()});
              const auto ys = tensors.begin() + static_cast<ptrdiff_t>(state_.size());
              return Scanned{{tensors.begin(), ys}, {ys, tensors.end()}};
            },
            tensors_on(n_.device(), state_), {numbers});
        ValueList results = values_of(all.carry);
        for (const Tensor& y : all.ys) results.push_back(y);
        return results;
      });
    } catch (const UnknownValue&) {
      if (most_ > kMostUnrolled) throw;
    }
    return steps();
  }

  // One region that repeats while its condition holds.
  ValueList looped() {
    const Device device = n_.device();
    TensorList state{host_int(0).to(device), n_.has(1) ? reshape(n_.input(1), Dims()) : host_bool(true).to(device)};
    for (const Tensor& tensor : tensors_on(device, state_)) state.push_back(tensor);
    const Tensor most = n_.has(0) && !most_known_ ? reshape(n_.input(0), Dims()) : Tensor();
    WhileOptions options;
    if (n_.has(0) && most_known_) options.most = most_;
    TensorList results = while_loop(
        [&](const TensorList& now) { return most.defined() ? logical_and(now[1], lt(now[0], most)) : now[1]; },
        [&](const TensorList& now) {
          TensorList next = tensors_on(device, n_.run(body_, values_of(now)));
          next[0] = reshape(next[0], Dims());
          next.insert(next.begin(), add(now[0], Scalar(1)));
          return next;
        },
        state, options);
    results.erase(results.begin(), results.begin() + 2);
    return values_of(results);
  }

  NodeContext& n_;
  const Subgraph& body_;
  ValueList state_;
  bool most_known_ = false, start_known_ = false;
  int64_t most_ = INT64_MAX;
};

ValueList translate_loop(NodeContext& n) { return Loop(n).run(); }

// The inputs of a Scan that are sliced, and the axes and directions of these inputs and of the stacked results.
class ScanNode {
 public:
  ScanNode(NodeContext& n, size_t first) : n_(n), body_(n.graph("body")) {
    const size_t given = n.input_count() - first;
    const int64_t slices = n.require("num_scan_inputs", Attribute::Kind::integer).i;
    if (slices < 1 || slices > static_cast<int64_t>(given))
      n.invalid(fmt::format("it has {} inputs, of which {} are to be scanned", given, slices));
    states_ = given - static_cast<size_t>(slices);
    if (body_.inputs.size() != given || body_.outputs.size() < states_ || body_.outputs.size() != n.output_count()) {
      n.invalid(fmt::format("its body has {} inputs and {} outputs, but the node has {} inputs and {} outputs",
                            body_.inputs.size(), body_.outputs.size(), given, n.output_count()));
    }
    const size_t results = body_.outputs.size() - states_;
    const char* old = n.version() < 9 ? "directions" : "scan_input_directions";
    backwards_ = numbers(old, static_cast<size_t>(slices));
    axes_ = numbers("scan_input_axes", static_cast<size_t>(slices));
    results_backwards_ = numbers("scan_output_directions", results);
    result_axes_ = numbers("scan_output_axes", results);
  }

  // `given`: the states, then the scanned inputs.
  TensorList run(const TensorList& given) {
    const TensorList init(given.begin(), given.begin() + static_cast<ptrdiff_t>(states_));
    TensorList xs(given.begin() + static_cast<ptrdiff_t>(states_), given.end());
    for (size_t i = 0; i < xs.size(); ++i) {
      if (xs[i].rank() == 0) n_.invalid("a scanned input has no axis");
      xs[i] = transpose_to_front(xs[i], n_.normalise_axis(axes_[i], xs[i].rank()));
      if (backwards_[i] != 0) xs[i] = flip(xs[i], 0);
      if (!(size_at(xs[i], 0) == size_at(xs[0], 0)))
        n_.invalid(fmt::format("its scanned inputs have {} and {} slices", size_at(xs[0], 0), size_at(xs[i], 0)));
    }
    Scanned all = scanned(init, xs);
    for (size_t i = 0; i < all.ys.size(); ++i) {
      Tensor y = results_backwards_[i] != 0 ? flip(all.ys[i], 0) : all.ys[i];
      const int64_t axis = n_.normalise_axis(result_axes_[i], y.rank());
      std::vector<int64_t> order;
      for (int64_t at = 1; at < y.rank(); ++at) order.push_back(at);
      order.insert(order.begin() + axis, 0);
      all.carry.push_back(axis == 0 ? y : permute(y, order));
    }
    return std::move(all.carry);
  }

  size_t states() const { return states_; }

 private:
  std::vector<int64_t> numbers(const char* name, size_t count) {
    std::vector<int64_t> list = n_.integers(name).value_or(std::vector<int64_t>(count, 0));
    if (list.size() != count)
      n_.invalid(fmt::format("its {} have {} numbers; {} are needed", name, list.size(), count));
    return list;
  }

  static Tensor transpose_to_front(const Tensor& x, int64_t axis) {
    if (axis == 0) return x;
    std::vector<int64_t> order{axis};
    for (int64_t at = 0; at < x.rank(); ++at) {
      if (at != axis) order.push_back(at);
    }
    return permute(x, order);
  }

  Scanned step(const TensorList& carry, const TensorList& slices) {
    ValueList inputs = values_of(carry);
    for (const Tensor& slice : slices) inputs.push_back(slice);
    const TensorList made = tensors_on(n_.device(), n_.run(body_, inputs));
    const auto ys = made.begin() + static_cast<ptrdiff_t>(states_);
    return {{made.begin(), ys}, {ys, made.end()}};
  }

  // Steps that need their numbers are unrolled.
  Scanned scanned(const TensorList& init, const TensorList& xs) {
    const SymDim length = size_at(xs[0], 0);
    try {
      return scan([&](const TensorList& carry, const TensorList& slices) { return step(carry, slices); }, init, xs);
    } catch (const UnknownValue&) {
      if (!length.is_number() || length.number() > kMostUnrolled || length.number() == 0) throw;
    }
    const Unrolling unrolling(length.number());
    Scanned all{init, {}};
    std::vector<ValueList> ys(body_.outputs.size() - states_);
    for (int64_t at = 0; at < length.number(); ++at) {
      TensorList slices;
      for (const Tensor& x : xs) slices.push_back(select(x, 0, at));
      Scanned made = step(all.carry, slices);
      all.carry = std::move(made.carry);
      for (size_t i = 0; i < ys.size(); ++i) ys[i].push_back(made.ys[i]);
    }
    for (const ValueList& y : ys) all.ys.push_back(stacked(n_, y, {}).tensor());
    return all;
  }

  NodeContext& n_;
  const Subgraph& body_;
  size_t states_ = 0;
  std::vector<int64_t> axes_, backwards_, result_axes_, results_backwards_;
};

ValueList translate_scan(NodeContext& n) { return values_of(ScanNode(n, 0).run(n.inputs())); }

// Version 8 has a first axis of independent sequences, whose lengths are in input 0. Results after the end of a
// sequence are 0.
ValueList scan_of_batch(NodeContext& n) {
  ScanNode scan(n, 1);
  const TensorList given = n.inputs(1);
  const int64_t batch = given[0].rank() == 0 ? 0 : given[0].dim(0);
  const int64_t length = given.back().rank() < 2 ? 0 : given.back().dim(1);
  if (batch < 1 || length < 1) n.invalid("its inputs have no batch, or no step");
  if (batch > kMostUnrolled)
    n.unsupported(fmt::format("its batch has {} elements; at most {} are possible", batch, kMostUnrolled));
  const std::vector<int64_t> lengths = n.has(0) ? n.ints(0) : std::vector<int64_t>(static_cast<size_t>(batch), length);
  if (static_cast<int64_t>(lengths.size()) != batch)
    n.invalid(fmt::format("it has {} lengths for a batch of {} elements", lengths.size(), batch));
  std::vector<TensorList> rows(n.output_count());
  for (int64_t row = 0; row < batch; ++row) {
    const int64_t steps = lengths[static_cast<size_t>(row)];
    if (steps < 1 || steps > length)
      n.invalid(fmt::format("a sequence of length {} does not fit {} steps", steps, length));
    TensorList one;
    for (size_t i = 0; i < given.size(); ++i) {
      const Tensor element = select(given[i], 0, row);
      one.push_back(i < scan.states() ? element : narrow(element, 0, 0, steps));
    }
    const TensorList made = scan.run(one);
    for (size_t i = 0; i < made.size(); ++i) {
      Tensor result = made[i];
      if (i >= scan.states() && steps < length) {
        std::vector<int64_t> padding(2 * static_cast<size_t>(result.rank()), 0);
        padding[padding.size() - 1] = length - steps;
        result = pad(result, padding);
      }
      rows[i].push_back(unsqueeze(result, 0));
    }
  }
  ValueList results;
  for (const TensorList& list : rows) results.push_back(list.size() == 1 ? list[0] : concat(list, 0));
  return results;
}

constexpr Translator kControlRows[] = {
    {.op_type = "If", .since = 1, .translate_values = translate_if},
    {.op_type = "Loop", .since = 1, .translate_values = translate_loop},
    {.op_type = "Scan", .since = 8, .until = 8, .translate_values = scan_of_batch},
    {.op_type = "Scan", .since = 9, .translate_values = translate_scan},
};

}  // namespace

std::span<const Translator> control_translators() { return kControlRows; }

}  // namespace tenon::onnx
