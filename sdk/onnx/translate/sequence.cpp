// Sequences and optionals. Both are lists of tensor handles on the host, so recorded models may contain them.
#include <algorithm>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

ValueList identity(NodeContext& n) { return {n.value(0)}; }

const ValueList& elements(NodeContext& n, size_t i) {
  if (n.value(i).kind() != Value::Kind::sequence)
    n.invalid(fmt::format("input {} must be a sequence, not {}", i, to_string(n.value(i))));
  return n.value(i).elements();
}

// The position in input `i` for a sequence of `count` elements. If `end`, `count` itself is valid too.
size_t position(NodeContext& n, size_t i, size_t count, bool end) {
  const int64_t given = n.scalar(i).to_int(), length = static_cast<int64_t>(count);
  if (given < -length || given >= length + (end ? 1 : 0))
    n.invalid(fmt::format("position {} is outside of a sequence of length {}", given, length));
  return static_cast<size_t>(given < 0 ? given + length : given);
}

ValueList sequence_construct(NodeContext& n) {
  ValueList list;
  for (size_t i = 0; i < n.input_count(); ++i) list.push_back(n.value(i));
  return {Value::sequence(std::move(list))};
}

ValueList sequence_empty(NodeContext&) { return {Value::sequence({})}; }

ValueList sequence_at(NodeContext& n) {
  const ValueList& list = elements(n, 0);
  return {list[position(n, 1, list.size(), false)]};
}

ValueList sequence_insert(NodeContext& n) {
  ValueList list = elements(n, 0);
  const size_t at = n.has(2) ? position(n, 2, list.size(), true) : list.size();
  list.insert(list.begin() + static_cast<ptrdiff_t>(at), n.value(1));
  return {Value::sequence(std::move(list))};
}

ValueList sequence_erase(NodeContext& n) {
  ValueList list = elements(n, 0);
  if (list.empty()) n.invalid("its sequence is empty");
  const size_t at = n.has(1) ? position(n, 1, list.size(), false) : list.size() - 1;
  list.erase(list.begin() + static_cast<ptrdiff_t>(at));
  return {Value::sequence(std::move(list))};
}

Tensor host_scalar(int64_t value) { return Tensor::copy_from_host(&value, Dims(), DType::i64, Device::host()); }
Tensor host_bool(bool value) { return Tensor::copy_from_host(&value, Dims(), DType::boolean, Device::host()); }

ValueList sequence_length(NodeContext& n) { return {host_scalar(static_cast<int64_t>(elements(n, 0).size()))}; }

ValueList split_to_sequence(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int64_t axis = n.axis(0, x.rank()), length = x.dim(axis);
  std::vector<int64_t> sizes;
  const bool one = !n.has(1), number = !one && n.rank(1) == 0;
  if (one || number) {
    const int64_t each = one ? 1 : n.scalar(1).to_int();
    if (each < 1) n.invalid(fmt::format("its parts have length {}; at least 1 is needed", each));
    constexpr int64_t kMostParts = 1 << 16;
    if (length / each >= kMostParts)
      n.unsupported(fmt::format("an axis of length {} has more than {} parts of length {}", length, kMostParts, each));
    for (int64_t at = 0; at < length; at += std::min(each, length - at)) sizes.push_back(std::min(each, length - at));
  } else {
    sizes = n.ints(1);
  }
  int64_t sum = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > length - sum)
      n.invalid(fmt::format("a part of length {} does not fit the remaining {} elements of an axis of length {}", size,
                            length - sum, length));
    sum += size;
  }
  if (sum != length) n.invalid(fmt::format("the parts have {} elements together, but the axis has {}", sum, length));
  ValueList list;
  int64_t at = 0;
  for (int64_t size : sizes) {
    const Tensor part = narrow(x, axis, at, size);
    list.push_back(one && !n.flag("keepdims", true) ? squeeze(part, axis) : part);
    at += size;
  }
  return {Value::sequence(std::move(list))};
}

ValueList concat_from_sequence(NodeContext& n) {
  TensorList tensors;
  for (const Value& element : elements(n, 0)) {
    if (!element.is_tensor())
      n.invalid(fmt::format("its sequence contains {}; only tensors can be joined", to_string(element)));
    tensors.push_back(element.tensor().to(n.device()));
  }
  if (tensors.empty()) n.invalid("its sequence is empty, so the result has no shape");
  const bool fresh = n.flag("new_axis", false);
  const int64_t axis = n.axis(0, tensors[0].rank() + (fresh ? 1 : 0));
  if (tensors[0].rank() + (fresh ? 1 : 0) > EP_MAX_RANK)
    n.invalid(fmt::format("the result would have rank {}; at most {} is possible", tensors[0].rank() + 1, EP_MAX_RANK));
  if (fresh) {
    for (Tensor& tensor : tensors) tensor = unsqueeze(tensor, axis);
  }
  return {tensors.size() == 1 ? tensors[0] : concat(tensors, axis)};
}

// Runs the body once for each element of the sequence. Further inputs that are sequences give one element per run.
ValueList sequence_map(NodeContext& n) {
  const size_t count = elements(n, 0).size();
  std::vector<ValueList> results(n.output_count());
  for (size_t step = 0; step < count; ++step) {
    ValueList inputs;
    for (size_t i = 0; i < n.input_count(); ++i) {
      const Value& given = n.value(i);
      if (given.kind() == Value::Kind::sequence && given.elements().size() != count)
        n.invalid(fmt::format("its sequences have {} and {} elements; both must have the same number", count,
                              given.elements().size()));
      inputs.push_back(given.kind() == Value::Kind::sequence ? given.elements()[step] : given);
    }
    const ValueList made = n.run(n.graph("body"), inputs);
    if (made.size() != results.size())
      n.invalid(fmt::format("its body has {} outputs, but the node has {}", made.size(), results.size()));
    for (size_t i = 0; i < made.size(); ++i) results[i].push_back(made[i]);
  }
  ValueList sequences;
  for (ValueList& list : results) sequences.push_back(Value::sequence(std::move(list)));
  return sequences;
}

ValueList optional(NodeContext& n) { return {n.has(0) ? n.value(0) : Value::nothing()}; }

ValueList optional_has_element(NodeContext& n) {
  return {host_bool(n.has(0) && n.value(0).kind() != Value::Kind::optional)};
}

ValueList optional_get_element(NodeContext& n) {
  if (n.value(0).kind() == Value::Kind::optional) n.invalid("its optional holds nothing");
  return {n.value(0)};
}

constexpr Translator kSequenceRows[] = {
    {.op_type = "ConcatFromSequence", .since = 11, .translate_values = concat_from_sequence},
    {.op_type = "Identity", .since = 1, .translate_values = identity},
    {.op_type = "Optional", .since = 15, .translate_values = optional},
    {.op_type = "OptionalGetElement", .since = 15, .translate_values = optional_get_element},
    {.op_type = "OptionalHasElement", .since = 15, .translate_values = optional_has_element},
    {.op_type = "SequenceAt", .since = 11, .translate_values = sequence_at},
    {.op_type = "SequenceConstruct", .since = 11, .translate_values = sequence_construct},
    {.op_type = "SequenceEmpty", .since = 11, .translate_values = sequence_empty},
    {.op_type = "SequenceErase", .since = 11, .translate_values = sequence_erase},
    {.op_type = "SequenceInsert", .since = 11, .translate_values = sequence_insert},
    {.op_type = "SequenceLength", .since = 11, .translate_values = sequence_length},
    {.op_type = "SequenceMap", .since = 17, .translate_values = sequence_map},
    {.op_type = "SplitToSequence", .since = 11, .translate_values = split_to_sequence},
};

}  // namespace

std::span<const Translator> sequence_translators() { return kSequenceRows; }

}  // namespace tenon::onnx
