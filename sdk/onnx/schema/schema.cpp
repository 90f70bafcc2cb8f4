#include "sdk/onnx/schema/schema.h"

#include <algorithm>
#include <bit>

#include "primitives/text/format.h"
#include "sdk/onnx/tensors/tensor_data.h"

namespace tenon::onnx {
namespace {

struct Row {
  std::string_view op_type;
  int64_t since;
  std::string_view inputs, outputs, types, attributes;
};

constexpr Row kRows[] = {
#define OPERATOR(op_type, since, inputs, outputs, types, attributes) \
  {#op_type, since, inputs, outputs, types, attributes},
#include "sdk/onnx/schema/operators.def"
#undef OPERATOR
};

using Text = std::string_view;

std::vector<Text> split(Text text, char by) {
  std::vector<Text> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(by), text.size());
    if (end != 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// Takes the text before the first `mark`, and drops the mark. Takes all of the text if it has no mark.
Text take_until(Text* text, char mark) {
  const size_t end = std::min(text->find(mark), text->size());
  const Text part = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return part;
}

bool take_mark(Text* text, char mark) {
  if (text->empty() || text->back() != mark) return false;
  text->remove_suffix(1);
  return true;
}

template <class... Types>
constexpr DTypeSet set_of(Types... types) {
  return (... | (DTypeSet{1} << static_cast<int32_t>(types)));
}

// The groups of types in operators.def.
constexpr std::pair<Text, DTypeSet> kGroups[] = {
    {"floats", set_of(DType::f16, DType::f32, DType::f64)},
    {"ints", set_of(DType::i8, DType::i16, DType::i32, DType::i64)},
    {"uints", set_of(DType::u8, DType::u16, DType::u32, DType::u64)},
    {"f8", set_of(DType::f8e4m3fn, DType::f8e5m2)},
};

// "floats|i32"
DTypeSet read_types(Text text) {
  DTypeSet set = 0;
  for (Text word : split(text, '|')) {
    const auto* group =
        std::find_if(std::begin(kGroups), std::end(kGroups), [&](const auto& each) { return each.first == word; });
    set |= group != std::end(kGroups) ? group->second : set_of(dtype_from_name(word).value_or(DType::none));
  }
  return set;
}

std::vector<ParameterRule> read_parameters(Text text, const std::vector<std::pair<Text, DTypeSet>>& letters) {
  std::vector<ParameterRule> rules;
  for (Text word : split(text, ' ')) {
    ParameterRule rule;
    rule.name = take_until(&word, ':');
    rule.optional = take_mark(&rule.name, '?');
    rule.many = take_mark(&rule.name, '+');
    const auto letter = std::find_if(letters.begin(), letters.end(), [&](const auto& l) { return l.first == word; });
    if (letter != letters.end()) rule.letter = word;
    rule.types = letter != letters.end() ? letter->second : read_types(word);
    rules.push_back(rule);
  }
  return rules;
}

Attribute::Kind read_kind(Text text) {
  using Kind = Attribute::Kind;
  constexpr std::pair<Text, Kind> kKinds[] = {
      {"float", Kind::number},  {"int", Kind::integer}, {"text", Kind::text},    {"floats", Kind::numbers},
      {"ints", Kind::integers}, {"texts", Kind::texts}, {"tensor", Kind::tensor}};
  const auto* found =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& k) { return k.first == text; });
  return found != std::end(kKinds) ? found->second : Kind::other;
}

std::vector<AttributeRule> read_attributes(Text text) {
  std::vector<AttributeRule> rules;
  for (Text word : split(text, ' ')) {
    AttributeRule rule;
    rule.name = take_until(&word, ':');
    Text kind = take_until(&word, '=');
    rule.required = take_mark(&kind, '!');
    rule.kind = read_kind(kind);
    rule.values = split(word, '|');
    rules.push_back(rule);
  }
  return rules;
}

Schema read_row(const Row& row) {
  std::vector<std::pair<Text, DTypeSet>> letters;
  for (Text word : split(row.types, ' ')) {
    const Text letter = take_until(&word, '=');
    letters.emplace_back(letter, read_types(word));
  }
  return {row.op_type, row.since, read_parameters(row.inputs, letters), read_parameters(row.outputs, letters),
          read_attributes(row.attributes)};
}

const std::vector<Schema>& schemas() {
  static const std::vector<Schema> all = [] {
    std::vector<Schema> list;
    for (const Row& row : kRows) list.push_back(read_row(row));
    return list;
  }();
  return all;
}

std::string quoted(Text text) { return fmt::format("'{}'", text); }
std::string in_version(const Schema& schema) { return fmt::format(" in version {}", schema.since); }

std::string joined(const std::vector<std::string>& words, const char* last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : i + 1 == words.size() ? last : ", ") + words[i];
  return text;
}

// "1 to 3", "2", "1 or more"
std::string range(size_t least, size_t most, bool many) {
  if (many) return fmt::format("{} or more", least);
  return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
}

// The sentence about a wrong number of `values`; empty if the number is right.
std::string broken_count(const Schema& schema, const std::vector<ParameterRule>& rules,
                         const std::vector<int32_t>& values, const char* what) {
  const bool many = !rules.empty() && rules.back().many;
  size_t least = 0;
  for (size_t i = 0; i < rules.size(); ++i) least = rules[i].optional ? least : i + 1;
  if (values.size() >= least && (many || values.size() <= rules.size())) return {};
  return fmt::format("it has {} {}s; the operator has {}{}", values.size(), what, range(least, rules.size(), many),
                     in_version(schema));
}

std::string broken_inputs(const Schema& schema, const Node& node) {
  if (std::string broken = broken_count(schema, schema.inputs, node.inputs, "input"); !broken.empty()) return broken;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ParameterRule& rule = schema.inputs[std::min(i, schema.inputs.size() - 1)];
    if (node.inputs[i] < 0 && !rule.optional)
      return fmt::format("its input {}, {}, is left out, but must be there", i, quoted(rule.name));
  }
  return broken_count(schema, schema.outputs, node.outputs, "output");
}

std::string broken_value(const AttributeRule& rule, const Attribute& attribute) {
  const std::string value = rule.kind == Attribute::Kind::integer ? fmt::format("{}", attribute.i) : attribute.s;
  if (rule.values.empty() || std::find(rule.values.begin(), rule.values.end(), value) != rule.values.end()) return {};
  std::vector<std::string> words;
  for (Text word : rule.values) words.push_back(quoted(word));
  return fmt::format("its attribute {} is {}; it may be {}", quoted(rule.name), quoted(value), joined(words, " or "));
}

std::string type_list(DTypeSet types) {
  std::vector<std::string> words;
  for (; types != 0; types &= types - 1) words.emplace_back(dtype_name(static_cast<DType>(std::countr_zero(types))));
  return joined(words, " and ");
}

}  // namespace

const Schema* find_schema(std::string_view op_type, int64_t version) {
  const Schema* found = nullptr;
  for (const Schema& schema : schemas()) {
    if (schema.op_type == op_type && schema.since <= version) found = &schema;  // the rows are ordered by version
  }
  return found;
}

std::string broken_form(const Schema& schema, const Node& node) {
  for (const auto& [name, attribute] : node.attributes) {
    const auto rule = std::find_if(schema.attributes.begin(), schema.attributes.end(),
                                   [&wanted = name](const AttributeRule& each) { return each.name == wanted; });
    if (rule == schema.attributes.end())
      return fmt::format("it has the attribute {}, which the operator does not have{}", quoted(name),
                         in_version(schema));
    if (rule->kind != attribute.kind) {
      return fmt::format("its attribute {} must be {}, not {}", quoted(name), attribute_kind_name(rule->kind),
                         attribute_kind_name(attribute.kind));
    }
    if (std::string broken = broken_value(*rule, attribute); !broken.empty()) return broken;
  }
  for (const AttributeRule& rule : schema.attributes) {
    if (rule.required && node.attributes.find(rule.name) == node.attributes.end())
      return fmt::format("its attribute {} is missing", quoted(rule.name));
  }
  return broken_inputs(schema, node);
}

std::string broken_types(const Schema& schema, const Node& node, std::span<const DType> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == DType::none) continue;
    const ParameterRule& rule = schema.inputs[std::min(i, schema.inputs.size() - 1)];
    const std::string given = fmt::format("its input {}, {}, is of {}", i, quoted(rule.name), dtype_name(inputs[i]));
    if ((rule.types & set_of(inputs[i])) == 0)
      return fmt::format("{}; {} takes {}{}", given, node.op_type, type_list(rule.types), in_version(schema));
    for (size_t j = 0; j < i && !rule.letter.empty(); ++j) {
      const ParameterRule& other = schema.inputs[std::min(j, schema.inputs.size() - 1)];
      if (inputs[j] == DType::none || inputs[j] == inputs[i] || other.letter != rule.letter) continue;
      return fmt::format("{}, but its input {}, {}, is of {}; both must be of one type", given, j, quoted(other.name),
                         dtype_name(inputs[j]));
    }
  }
  return {};
}

DType output_type(const Schema& schema, const Node& node, std::span<const DType> inputs, size_t i) {
  const ParameterRule& rule = schema.outputs[std::min(i, schema.outputs.size() - 1)];
  if (std::has_single_bit(rule.types)) return static_cast<DType>(std::countr_zero(rule.types));
  for (size_t j = 0; j < inputs.size() && !rule.letter.empty(); ++j) {
    if (schema.inputs[std::min(j, schema.inputs.size() - 1)].letter == rule.letter && inputs[j] != DType::none)
      return inputs[j];
  }
  // Then only an attribute can give the type: a type, or a tensor of that type.
  for (const char* name : {"to", "dtype", "output_datatype"}) {
    const auto found = node.attributes.find(name);
    if (found != node.attributes.end()) return dtype_of_onnx(static_cast<int32_t>(found->second.i));
  }
  const auto value = node.attributes.find("value");
  return value != node.attributes.end() && value->second.tensor.defined() ? value->second.tensor.dtype() : DType::none;
}

}  // namespace tenon::onnx
