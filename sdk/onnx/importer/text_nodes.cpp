#include "sdk/onnx/importer/text_nodes.h"

#include <algorithm>

#include "core/ops/ops.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/schema/schema.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

bool is_text(const Value& value) { return value.kind() == Value::Kind::strings; }

// All strings of the node's inputs, sorted and without duplicates. The empty string comes first, because operators fill
// with it.
std::vector<std::string> strings_of(const Node& node, const std::vector<Value>& values) {
  std::vector<std::string> all{std::string()};
  for (int32_t value : node.inputs) {
    if (value < 0 || !is_text(values[static_cast<size_t>(value)])) continue;
    const std::vector<std::string>& strings = values[static_cast<size_t>(value)].strings();
    all.insert(all.end(), strings.begin(), strings.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

Tensor positions_of(const Value& text, const std::vector<std::string>& all) {
  std::vector<int64_t> positions;
  for (const std::string& string : text.strings())
    positions.push_back(std::lower_bound(all.begin(), all.end(), string) - all.begin());
  return Tensor::copy_from_host(positions.data(), text.dims(), DType::i64, Device::host());
}

Value strings_at(const Tensor& positions, const std::vector<std::string>& all) {
  std::vector<std::string> strings;
  for (int64_t at : contiguous(positions.to(Device::host())).to_host<int64_t>())
    strings.push_back(all.at(static_cast<size_t>(at)));
  return Value::strings(positions.dims(), std::move(strings));
}

// True if the rules give the output the type of an input that is text.
bool gives_text(const Node& node, size_t output, const std::vector<Value>& values) {
  const Schema& schema = *node.schema;
  const std::string_view letter = schema.outputs[std::min(output, schema.outputs.size() - 1)].letter;
  for (size_t i = 0; i < node.inputs.size() && !letter.empty(); ++i) {
    if (schema.inputs[std::min(i, schema.inputs.size() - 1)].letter != letter || node.inputs[i] < 0) continue;
    if (is_text(values[static_cast<size_t>(node.inputs[i])])) return true;
  }
  return false;
}

}  // namespace

bool has_text(const Node& node, const std::vector<Value>& values) {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](int32_t value) { return value >= 0 && is_text(values[static_cast<size_t>(value)]); });
}

ValueList move_text(const ParsedModel& parsed, const Node& node, const std::vector<Value>& values) {
  const std::vector<std::string> all = strings_of(node, values);
  std::vector<Value> numbers = values;
  for (int32_t value : node.inputs) {
    if (value < 0) continue;
    Value& number = numbers[static_cast<size_t>(value)];
    if (is_text(number)) {
      number = positions_of(number, all);
    } else if (number.is_tensor() && !NodeContext::is_known(number.tensor())) {
      throw UnknownValue(value);
    }
  }
  // The node is not recorded, because its results are strings or depend on strings.
  NodeContext::require_eager();
  NodeContext context(parsed, node, &numbers);
  const TensorList made = node.translator->translate(context);
  ValueList results;
  for (size_t i = 0; i < made.size(); ++i) {
    const bool text = made[i].defined() && node.schema != nullptr && gives_text(node, i, values);
    results.push_back(text ? strings_at(made[i], all) : Value(made[i]));
  }
  return results;
}

}  // namespace tenon::onnx
