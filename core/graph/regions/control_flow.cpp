// cond, while_loop and scan: their rows, and the choice between calling the functions and handing the record to a
// recorder.
#include "core/graph/regions/control_flow.h"

#include <algorithm>
#include <utility>

#include "core/graph/recorder.h"
#include "core/graph/regions/eager.h"
#include "core/ops/control.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon {
namespace control {
namespace {

void compose_control(const OpCall& call) {
  const Call& given = call.attributes_as<Call>();
  TensorList operands;
  for (const Tensor* input : call.inputs) operands.push_back(*input);
  *given.results = run(row_of(*call.op).kind, given.attributes, given.bodies, operands);
}

constexpr OpInfo op_named(std::string_view name) {
  OpInfo op;
  op.name = name;
  op.named = {name};
  op.id = kNoOp;
  op.form = OpForm::composite;
  op.output_count = 0;
  op.attribute_bytes = sizeof(Attributes);
  op.compose = compose_control;
  return op;
}

constexpr Row kRows[] = {{Kind::cond, op_named("cond"), {"then", "else"}, 2, 1},
                         {Kind::while_loop, op_named("while_loop"), {"cond", "body"}, 2, 0},
                         {Kind::scan, op_named("scan"), {"body"}, 1, 0},
                         {Kind::fused, op_named("fused"), {"body"}, 1, 0}};

constexpr AttributeField kFields[] = {{"carried", AttributeType::i64, offsetof(Attributes, carried)},
                                      {"sliced", AttributeType::i64, offsetof(Attributes, sliced)},
                                      {"length", AttributeType::i64, offsetof(Attributes, length)},
                                      {"limited", AttributeType::i64, offsetof(Attributes, limited)},
                                      {"most", AttributeType::i64, offsetof(Attributes, most)}};

}  // namespace

std::span<const Row> rows() { return kRows; }
const Row& row_of(Kind kind) { return kRows[static_cast<size_t>(kind)]; }
const Row& row_of(const OpInfo& op) {
  return *std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) { return &row.op == &op; });
}
std::span<const AttributeField> attribute_fields() { return kFields; }

void refuse_gradients(const OpInfo& op, const TensorList& results) {
  for (const Tensor& result : results) {
    if (!result.defined() || !result.requires_grad()) continue;
    throw Error(Subject{op.name}, Code::unsupported,
                fmt::format("a tensor that its function reads requires a gradient, which a recorded {} does not have "
                            "yet.",
                            op.name),
                "Call the function without compile, or inside a NoGrad scope.");
  }
}

TensorList apply(Kind kind, const Attributes& attributes, std::span<const Body> bodies, const TensorList& operands) {
  Interpreter& current = current_interpreter();
  const Row& row = row_of(kind);
  const bool known = kind == Kind::cond && current.host_value_known(operands[0]);
  if (known || !current.keeps(row.op)) return run(kind, attributes, bodies, operands);
  TensorList results;
  const Call call{attributes, bodies, &current, &results};
  std::vector<const Tensor*> inputs;
  for (const Tensor& operand : operands) inputs.push_back(&operand);
  OpCall at_the_door;
  at_the_door.op = &row.op;
  at_the_door.inputs = inputs;
  at_the_door.attributes = &call;
  current.apply(at_the_door);
  return results;
}

}  // namespace control

namespace {

using control::Body;
using control::Kind;

void check_tensors(std::string_view op, std::string_view what, const TensorList& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].defined()) continue;
    throw Error(Subject{op}, Code::invalid_argument, fmt::format("{} {} is an undefined tensor.", what, i));
  }
}

int64_t checked_count(std::string_view op, std::string_view what, int64_t count) {
  if (count >= 0) return count;
  throw Error(Subject{op}, Code::invalid_argument, fmt::format("{} must not be negative, but it is {}.", what, count));
}

TensorList joined(TensorList first, const TensorList& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

void check_slices(const TensorList& xs, const ScanOptions& options) {
  if (xs.empty() && !options.length) {
    throw Error(Subject{"scan"}, Code::invalid_argument, "it has nothing to slice, so it needs the option length.");
  }
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].rank() != 0) continue;
    throw Error(Subject{"scan"}, Code::invalid_argument,
                fmt::format("xs[{}] has rank 0, but is given slice by slice.", i));
  }
  if (xs.empty() || !options.length || xs[0].dim(0) == *options.length) return;
  throw Error(Subject{"scan"}, Code::invalid_argument,
              fmt::format("the option length is {}, but xs[0] has {} slices.", *options.length, xs[0].dim(0)));
}

}  // namespace

TensorList cond(const Tensor& pred, const Branch& then_fn, const Branch& else_fn, const TensorList& operands) {
  check_tensors("cond", "the predicate, or an operand after it,", joined({pred}, operands));
  const Body bodies[] = {then_fn, else_fn};
  return control::apply(Kind::cond, {}, bodies, joined({pred}, operands));
}

TensorList cond(const Tensor& pred, const std::function<TensorList()>& then_fn,
                const std::function<TensorList()>& else_fn) {
  return cond(
      pred, [&](const TensorList&) { return then_fn(); }, [&](const TensorList&) { return else_fn(); }, {});
}

TensorList while_loop(const StateCondition& cond_fn, const StateBody& body_fn, const TensorList& state,
                      const WhileOptions& options) {
  check_tensors("while_loop", "state", state);
  control::Attributes attributes;
  attributes.limited = options.most ? 1 : 0;
  attributes.most = checked_count("while_loop", "the option most", options.most.value_or(0));
  const Body bodies[] = {[&](const TensorList& now) { return TensorList{cond_fn(now)}; }, body_fn};
  return control::apply(Kind::while_loop, attributes, bodies, state);
}

Scanned scan(const ScanBody& fn, const TensorList& init, const TensorList& xs, const ScanOptions& options) {
  check_tensors("scan", "the carry, or xs behind it,", joined(init, xs));
  check_slices(xs, options);
  control::Attributes attributes;
  attributes.carried = static_cast<int64_t>(init.size());
  attributes.sliced = static_cast<int64_t>(xs.size());
  attributes.length = xs.empty() ? checked_count("scan", "the option length", *options.length) : 0;
  const auto carried = static_cast<ptrdiff_t>(init.size());
  const Body body = [&](const TensorList& operands) {
    const auto end = operands.begin() + carried;
    Scanned step = fn({operands.begin(), end}, {end, end + static_cast<ptrdiff_t>(xs.size())});
    if (step.carry.size() != init.size()) {
      throw Error(Subject{"scan"}, Code::invalid_argument,
                  fmt::format("a step gives a carry of {} tensors, but gets {}.", step.carry.size(), init.size()));
    }
    return joined(std::move(step.carry), step.ys);
  };
  TensorList results = control::apply(Kind::scan, attributes, {&body, 1}, joined(init, xs));
  Scanned scanned;
  scanned.ys.assign(results.begin() + carried, results.end());
  results.resize(init.size());
  scanned.carry = std::move(results);
  return scanned;
}

}  // namespace tenon
