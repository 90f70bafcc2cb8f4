#include "core/graph/regions/eager.h"

#include <utility>
#include <vector>

#include "core/background/cancellation.h"
#include "core/graph/recorder.h"
#include "core/ops/ops.h"
#include "core/vm/storage.h"
#include "primitives/text/format.h"

namespace tenon::control {
namespace {

std::string type_of(const Tensor& tensor) {
  return fmt::format("{} {} on {}", dtype_name(tensor.dtype()), tensor.dims(), tensor.device().spelling());
}

// Errors: invalid_argument if the first results of a step have other types than its inputs.
void check_step(Kind kind, std::string_view what, const TensorList& before, const TensorList& after, size_t count) {
  const std::string_view op = row_of(kind).op.name;
  if (after.size() < count) {
    throw Error(Subject{op}, Code::invalid_argument,
                fmt::format("a step gives {} tensors, but the {} has {}.", after.size(), what, count));
  }
  for (size_t i = 0; i < count; ++i) {
    const Tensor &a = before[i], &b = after[i];
    if (b.defined() && a.dtype() == b.dtype() && a.dims() == b.dims() && a.device() == b.device()) continue;
    throw Error(Subject{op}, Code::invalid_argument,
                fmt::format("a step must keep the types of the {}, but value {} is {} before a step and {} after it.",
                            what, i, type_of(a), b.defined() ? type_of(b) : "undefined"));
  }
}

TensorList run_loop(const Attributes& attributes, std::span<const Body> bodies, TensorList state) {
  for (int64_t step = 0; attributes.limited == 0 || step < attributes.most; ++step) {
    check_cancelled(Kind::while_loop);
    if (!holds(Kind::while_loop, bodies[0](state)[0])) break;
    TensorList next = bodies[1](state);
    if (next.size() != state.size()) {
      throw Error(Subject{"while_loop"}, Code::invalid_argument,
                  fmt::format("a step gives {} tensors, but the state has {}.", next.size(), state.size()));
    }
    check_step(Kind::while_loop, "state", state, next, state.size());
    state = std::move(next);
  }
  return state;
}

// The stacked results of a scan without steps: the step is recorded only for the types of its results.
TensorList nothing_stacked(const Attributes& attributes, const Body& body, const TensorList& operands) {
  const auto carried = static_cast<size_t>(attributes.carried);
  graph::Recorder recorder(operands.empty() ? Device::current() : operands[0].device());
  const InterpreterScope scope(recorder);
  TensorList inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    Dims dims = operands[i].dims();
    const bool sliced = i >= carried && i < carried + static_cast<size_t>(attributes.sliced);
    if (sliced) dims = Dims(std::span(dims.begin(), dims.end()).subspan(1));
    inputs.push_back(recorder.input(operands[i].dtype(), dims, operands[i].device()));
  }
  const TensorList results = body(inputs);
  check_step(Kind::scan, "carry", operands, results, carried);
  TensorList stacked;
  for (size_t i = carried; i < results.size(); ++i) {
    Dims dims{0};
    for (int64_t dim : results[i].dims()) dims.push_back(dim);
    stacked.push_back(Tensor::empty(dims, results[i].dtype(), results[i].device()));
  }
  return stacked;
}

TensorList run_scan(const Attributes& attributes, const Body& body, const TensorList& operands) {
  const auto carried = static_cast<size_t>(attributes.carried);
  const int64_t steps = steps_of(attributes, operands);
  TensorList carry(operands.begin(), operands.begin() + attributes.carried);
  std::vector<TensorList> ys;
  for (int64_t step = 0; step < steps; ++step) {
    check_cancelled(Kind::scan);
    TensorList results = body(step_operands(attributes, carry, operands, step));
    check_step(Kind::scan, "carry", carry, results, carried);
    ys.resize(results.size() - carried);
    for (size_t i = 0; i < ys.size(); ++i) ys[i].push_back(std::move(results[carried + i]));
    results.resize(carried);
    carry = std::move(results);
  }
  const TensorList nothing = steps == 0 ? nothing_stacked(attributes, body, operands) : TensorList();
  carry.insert(carry.end(), nothing.begin(), nothing.end());
  for (const TensorList& each : ys) carry.push_back(stack(each, 0));
  return carry;
}

// A recorded program returns new row-major tensors. So a result that something else refers to, or that is a view,
// becomes a copy.
void own(const OpInfo& op, Tensor* result) {
  if (!result->defined()) {
    throw Error(Subject{op.name}, Code::invalid_argument, "a result of its function is an undefined tensor.");
  }
  const TensorImpl& impl = *result->impl();
  if (impl.storage != nullptr && !impl.contiguous) {
    *result = contiguous(*result);
    return;
  }
  const bool held = impl.count.load(std::memory_order_relaxed) > 1;
  if (held || impl.storage == nullptr || impl.storage.tensor_count() > 1) *result = clone(*result);
}

}  // namespace

bool holds(Kind kind, const Tensor& predicate) {
  if (predicate.defined() && predicate.dtype() == DType::boolean && predicate.elements() == 1) {
    return predicate.item().to_int() != 0;
  }
  throw Error(Subject{row_of(kind).op.name}, Code::invalid_argument,
              fmt::format("the predicate must be one bool, but it is {}.",
                          predicate.defined() ? type_of(predicate) : "undefined"));
}

void check_cancelled(Kind kind) {
  if (!CancellationScope::cancelled_here()) return;
  throw Error(Subject{row_of(kind).op.name}, Code::cancelled, "The program cancelled this run.");
}

int64_t steps_of(const Attributes& attributes, const TensorList& operands) {
  const auto first = static_cast<size_t>(attributes.carried);
  const int64_t steps = attributes.sliced == 0 ? attributes.length : operands[first].dim(0);
  for (size_t i = first; i < first + static_cast<size_t>(attributes.sliced); ++i) {
    if (operands[i].dim(0) == steps) continue;
    throw Error(Subject{"scan"}, Code::invalid_argument,
                fmt::format("xs[0] has {} slices, but xs[{}] has {}.", steps, i - first, operands[i].dim(0)));
  }
  return steps;
}

TensorList step_operands(const Attributes& attributes, TensorList carry, const TensorList& operands, int64_t index) {
  const auto first = static_cast<size_t>(attributes.carried), end = first + static_cast<size_t>(attributes.sliced);
  for (size_t i = first; i < operands.size(); ++i) {
    carry.push_back(i < end ? select(operands[i], 0, index) : operands[i]);
  }
  return carry;
}

TensorList run(Kind kind, const Attributes& attributes, std::span<const Body> bodies, const TensorList& operands) {
  TensorList results;
  if (kind == Kind::while_loop) {
    results = run_loop(attributes, bodies, operands);
  } else if (kind == Kind::scan) {
    results = run_scan(attributes, bodies[0], operands);
  } else if (kind == Kind::fused) {
    results = bodies[0](operands);
  } else {
    results = bodies[holds(kind, operands[0]) ? 0 : 1]({operands.begin() + 1, operands.end()});
  }
  for (Tensor& result : results) own(row_of(kind).op, &result);
  return results;
}

}  // namespace tenon::control
