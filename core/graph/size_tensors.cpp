// Computes the elements of tensors that hold sizes (core/ops/known_sizes.h) as expressions, in addition to their hints.
// An op that is not listed here reads elements as numbers, which adds a guard to the recording.
#include <algorithm>
#include <optional>

#include "core/graph/recorder.h"
#include "core/ops/attributes.h"
#include "core/ops/known_sizes.h"
#include "core/ops/op_rows.h"
#include "core/ops/ops.h"
#include "core/ops/sizes.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

using Elements = std::vector<SymDim>;

// An op that moves elements. Bit i of `data` is set if it moves elements of input i; other inputs are indices.
struct Mover {
  OpId id;
  uint32_t data;
};
constexpr uint32_t kAll = ~0u;
constexpr Mover kMovers[] = {{OpId::reshape, kAll},       {OpId::view, kAll},    {OpId::squeeze, kAll},
                             {OpId::unsqueeze, kAll},     {OpId::permute, kAll}, {OpId::expand, kAll},
                             {OpId::slice, kAll},         {OpId::select, kAll},  {OpId::concat, kAll},
                             {OpId::cast, kAll},          {OpId::to, kAll},      {OpId::gather_slices, 1},
                             {OpId::gather, 1},           {OpId::where, 2 | 4},  {OpId::slice_scatter, kAll},
                             {OpId::select_scatter, kAll}};

SymDim truncated_quotient(SymDim a, SymDim b) {
  if (!(0 <= a) || !(1 <= b)) throw Error(Subject{"div"}, Code::unsupported, "a size that may be negative is divided.");
  return floor_div(a, b);
}

// An element-wise op of two integers.
struct Formula {
  OpId id;
  SymDim (*compute)(SymDim a, SymDim b);
};
constexpr Formula kFormulas[] = {{OpId::add, [](SymDim a, SymDim b) { return a + b; }},
                                 {OpId::sub, [](SymDim a, SymDim b) { return a - b; }},
                                 {OpId::mul, [](SymDim a, SymDim b) { return a * b; }},
                                 {OpId::div, truncated_quotient},
                                 {OpId::floor_divide, [](SymDim a, SymDim b) { return floor_div(a, b); }},
                                 {OpId::remainder, [](SymDim a, SymDim b) { return modulo(a, b); }},
                                 {OpId::maximum, [](SymDim a, SymDim b) { return max_size(a, b); }},
                                 {OpId::minimum, [](SymDim a, SymDim b) { return min_size(a, b); }}};

// A comparison with a bool result: if the answer is unknown, the recording follows the hints and adds a guard.
struct Question {
  OpId id;
  Condition (*ask)(SymDim a, SymDim b);
};
constexpr Question kQuestions[] = {
    {OpId::eq, [](SymDim a, SymDim b) { return a == b; }}, {OpId::ne, [](SymDim a, SymDim b) { return a != b; }},
    {OpId::lt, [](SymDim a, SymDim b) { return a < b; }},  {OpId::le, [](SymDim a, SymDim b) { return a <= b; }},
    {OpId::gt, [](SymDim a, SymDim b) { return a > b; }},  {OpId::ge, [](SymDim a, SymDim b) { return a >= b; }}};

template <class Row, size_t N>
const Row* find(const Row (&rows)[N], const OpInfo& op) {
  const auto found = std::find_if(rows, rows + N, [&](const Row& row) { return &op == &op_row(row.id); });
  return found == rows + N ? nullptr : found;
}

Tensor numbered(const Tensor& like, int64_t first) {
  std::vector<int64_t> numbers(static_cast<size_t>(like.elements()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = first + static_cast<int64_t>(i);
  return Tensor::from<int64_t>(numbers, like.dims(), like.device());
}

// Moves the indices of elements instead of the elements.
Elements moved(const OpCall& call, uint32_t data, Interpreter& below) {
  TensorList stand_ins(call.inputs.size());
  std::vector<const Tensor*> inputs(call.inputs.begin(), call.inputs.end());
  Elements all;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || (data >> i & 1) == 0) continue;
    stand_ins[i] = numbered(*inputs[i], static_cast<int64_t>(all.size()));
    const Elements more = sized::elements(*inputs[i]);
    all.insert(all.end(), more.begin(), more.end());
    inputs[i] = &stand_ins[i];
  }
  Tensor result;
  CastAttributes to_numbers{};
  OpCall move = call;
  move.inputs = inputs;
  move.outputs = {&result, 1};
  if (call.op == &op_row(OpId::cast)) {
    to_numbers = call.attributes_as<CastAttributes>();
    to_numbers.dtype = DType::i64;
    move.attributes = &to_numbers;
  }
  below.apply(move);
  Elements picked;
  for (const int64_t number : contiguous(result.to(Device::host())).to_host<int64_t>()) {
    picked.push_back(all[static_cast<size_t>(number)]);
  }
  return picked;
}

// The elements of operand `i`, broadcast to `dims`.
Elements operand(const OpCall& call, size_t i, const Dims& dims) {
  const auto count = static_cast<size_t>(element_count(dims));
  if (call.inputs[i] == nullptr) return Elements(count, call.scalars[i].to_int());
  const Elements own = sized::elements(*call.inputs[i]);
  Elements all;
  for (const int64_t number : contiguous(expand(numbered(*call.inputs[i], 0), dims)).to_host<int64_t>()) {
    all.push_back(own[static_cast<size_t>(number)]);
  }
  return all;
}

bool whole_numbers(const OpCall& call) {
  for (const Tensor* input : call.inputs) {
    if (input != nullptr && !is_integer(input->dtype())) return false;
  }
  return std::none_of(call.scalars.begin(), call.scalars.end(),
                      [](const Scalar& scalar) { return scalar.dtype() == DType::f64; });
}

// The elements of the result of `call`, whose hints are `result`; nothing if they are not computed as expressions.
std::optional<Elements> computed(const OpCall& call, const Tensor& result, Interpreter& below) {
  if (const Mover* mover = find(kMovers, *call.op)) {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const bool place = call.inputs[i] != nullptr && (mover->data >> i & 1) == 0;
      const KnownSizes* known = place ? known_sizes(*call.inputs[i]) : nullptr;
      if (known != nullptr) recorded_value(*call.inputs[i]->impl())->read_elements(*call.inputs[i]->impl());
      if (!place && call.inputs[i] == nullptr) return std::nullopt;
    }
    if (!is_integer(result.dtype())) return std::nullopt;
    return moved(call, mover->data, below);
  }
  if (!whole_numbers(call) || call.inputs.size() != 2) return std::nullopt;
  const Formula* formula = find(kFormulas, *call.op);
  const Question* question = find(kQuestions, *call.op);
  if (formula == nullptr && question == nullptr) return std::nullopt;
  const Elements a = operand(call, 0, result.dims());
  const Elements b = operand(call, 1, result.dims());
  Elements elements;
  for (size_t i = 0; i < a.size(); ++i) {
    if (formula != nullptr) {
      elements.push_back(formula->compute(a[i], b[i]));
    } else {
      elements.push_back(static_cast<bool>(question->ask(a[i], b[i])) ? 1 : 0);
    }
  }
  return elements;
}

}  // namespace

bool Recorder::holds_sizes(const OpCall& call) {
  const auto holds = [](const Tensor* tensor) { return tensor != nullptr && known_sizes(*tensor) != nullptr; };
  const bool written =
      std::any_of(call.outputs.begin(), call.outputs.end(), [&](const Tensor& output) { return holds(&output); });
  if (written) {
    throw Error(Subject{call.op->name}, Code::unsupported,
                fmt::format("a tensor that holds sizes of {} cannot be written.", recording_->name),
                "Make a new tensor instead.");
  }
  return std::any_of(call.inputs.begin(), call.inputs.end(), holds);
}

void Recorder::compute_sizes(const OpCall& call) {
  const InterpreterScope scope(known_);
  known_.apply(call);
  std::optional<Elements> elements;
  if (call.outputs.size() == 1) {
    graph_->arena().context(call.op->name);
    elements = computed(call, call.outputs[0], known_);
    graph_->arena().context({});
  }
  if (elements) return set_known_sizes(call.outputs[0], std::move(*elements));
  for (const Tensor* input : call.inputs) {
    if (input != nullptr && known_sizes(*input) != nullptr)
      recorded_value(*input->impl())->read_elements(*input->impl());
  }
}

}  // namespace tenon::graph
