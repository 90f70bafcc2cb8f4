#include "sdk/onnx/schema/schema.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <tuple>

#include "primitives/text/format.h"
#include "primitives/text/visible.h"
#include "sdk/onnx/tensors/tensor_data.h"

namespace tenon::onnx {
namespace {

struct Row {
  std::string_view domain = {};  // empty: ai.onnx
  std::string_view op_type;
  int64_t since;
  std::string_view inputs = {}, outputs = {}, types = {}, attributes = {};
};

constexpr Row kRows[] = {
#define OPERATOR(...) {__VA_ARGS__},
#include "sdk/onnx/schema/microsoft.def"
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

// Takes the text before the first `mark` and drops the mark; without a mark, takes all of the text.
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

constexpr TypeSet set_of(TypeId type) { return TypeSet{1} << type; }
template <class... Types>
constexpr TypeSet set_of(DType first, Types... others) {
  return (set_of(type_id(first)) | ... | set_of(type_id(others)));
}

// The groups of types in operators.def.
constexpr std::pair<Text, TypeSet> kGroups[] = {
    {"floats", set_of(DType::f16, DType::f32, DType::f64)},
    {"ints", set_of(DType::i8, DType::i16, DType::i32, DType::i64)},
    {"uints", set_of(DType::u8, DType::u16, DType::u32, DType::u64)},
    {"f8", set_of(DType::f8e4m3fn, DType::f8e5m2)},
};

// Types that are not dtypes: their word in operators.def and their name in messages.
struct KindRow {
  Text word, name;
  TypeId type;
};
constexpr KindRow kKinds[] = {{"string", "string", kStringType},
                              {"seq", "a sequence", kSequenceType},
                              {"optional", "an optional", kOptionalType},
                              {"map", "a map", kMapType}};

// The types that a word stands for. ONNX types that Tenon does not have are in no set.
TypeSet types_of_word(Text word) {
  for (const auto& [name, set] : kGroups) {
    if (name == word) return set;
  }
  for (const KindRow& kind : kKinds) {
    if (kind.word == word) return set_of(kind.type);
  }
  const std::optional<DType> dtype = dtype_from_name(word);
  return dtype ? set_of(*dtype) : 0;
}

// "floats|i32"
TypeSet read_types(Text text) {
  TypeSet set = 0;
  for (Text word : split(text, '|')) set |= types_of_word(word);
  return set;
}

std::vector<ParameterRule> read_parameters(Text text, const std::vector<std::pair<Text, TypeSet>>& letters) {
  std::vector<ParameterRule> rules;
  for (Text word : split(text, ' ')) {
    ParameterRule rule;
    rule.name = take_until(&word, ':');
    rule.mixed = take_mark(&rule.name, '~');
    rule.many = take_mark(&rule.name, '+');
    if (take_mark(&rule.name, '*')) rule.many = rule.optional = true;
    if (take_mark(&rule.name, '?')) rule.optional = true;
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
      {"float", Kind::number},  {"int", Kind::integer}, {"text", Kind::text},     {"floats", Kind::numbers},
      {"ints", Kind::integers}, {"texts", Kind::texts}, {"tensor", Kind::tensor}, {"graph", Kind::graph}};
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
  std::vector<std::pair<Text, TypeSet>> letters;
  for (Text word : split(row.types, ' ')) {
    const Text letter = take_until(&word, '=');
    letters.emplace_back(letter, read_types(word));
  }
  return {row.domain,
          row.op_type,
          row.since,
          read_parameters(row.inputs, letters),
          read_parameters(row.outputs, letters),
          read_attributes(row.attributes)};
}

// The rows by domain, name and version. A model names few of them, so each is read when it is first found.
class Schemas {
 public:
  Schemas() {
    for (const Row& row : kRows) rows_.push_back(&row);
    std::stable_sort(rows_.begin(), rows_.end(), [](const Row* a, const Row* b) { return key_of(*a) < key_of(*b); });
    read_.resize(rows_.size());
  }

  const Schema* find(Text domain, Text op_type, int64_t version) {
    const auto after = std::upper_bound(rows_.begin(), rows_.end(), std::tuple(domain, op_type, version),
                                        [](const auto& key, const Row* row) { return key < key_of(*row); });
    if (after == rows_.begin()) return nullptr;
    const Row& row = **std::prev(after);
    if (row.domain != domain || row.op_type != op_type) return nullptr;
    const std::lock_guard lock(mutex_);
    std::unique_ptr<const Schema>& schema = read_[static_cast<size_t>(after - rows_.begin() - 1)];
    if (schema == nullptr) schema = std::make_unique<const Schema>(read_row(row));
    return schema.get();
  }

 private:
  static std::tuple<Text, Text, int64_t> key_of(const Row& row) { return {row.domain, row.op_type, row.since}; }

  std::vector<const Row*> rows_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<const Schema>> read_;  // by position in rows_
};

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

// A sentence about a wrong number of `values`; empty if the number is right.
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

std::string type_list(TypeSet types) {
  std::vector<std::string> words;
  for (; types != 0; types &= types - 1) words.emplace_back(type_name(std::countr_zero(types)));
  return joined(words, " and ");
}

}  // namespace

std::string_view type_name(TypeId type) {
  for (const KindRow& kind : kKinds) {
    if (kind.type == type) return kind.name;
  }
  return dtype_name(dtype_of_type(type));
}

const Schema* find_schema(std::string_view domain, std::string_view op_type, int64_t version) {
  static Schemas schemas;
  return schemas.find(domain, op_type, version);
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

std::string broken_types(const Schema& schema, const Node& node, std::span<const TypeId> inputs) {
  if (schema.inputs.empty()) return {};
  const auto rule_of = [&](size_t i) -> const ParameterRule& {
    return schema.inputs[std::min(i, schema.inputs.size() - 1)];
  };
  const auto given = [&](size_t i) {
    return fmt::format("its input {}, {}, is of {}", i, quoted(rule_of(i).name), type_name(inputs[i]));
  };
  std::map<std::string_view, size_t> first;  // by letter: the first input, which decides the type of the others
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == 0) continue;
    const ParameterRule& rule = rule_of(i);
    if ((rule.types & set_of(kOptionalType)) != 0) continue;  // an optional that holds a value is that value
    if ((rule.types & set_of(inputs[i])) == 0)
      return fmt::format("{}; {} takes {}{}", given(i), node.op_type, type_list(rule.types), in_version(schema));
    if (rule.letter.empty() || rule.mixed) continue;
    const size_t before = first.try_emplace(rule.letter, i).first->second;
    if (inputs[before] == inputs[i]) continue;
    return fmt::format("{}, but {}; both must be of one type", given(i), given(before));
  }
  return {};
}

TypeId output_type(const Schema& schema, const Node& node, std::span<const TypeId> inputs, size_t i) {
  if (schema.outputs.empty()) return 0;
  const ParameterRule& rule = schema.outputs[std::min(i, schema.outputs.size() - 1)];
  if (rule.mixed) return 0;
  if (std::has_single_bit(rule.types)) return std::countr_zero(rule.types);
  for (size_t j = 0; j < inputs.size() && !rule.letter.empty(); ++j) {
    const ParameterRule& other = schema.inputs[std::min(j, schema.inputs.size() - 1)];
    if (other.letter == rule.letter && !other.mixed && inputs[j] != 0) return inputs[j];
  }
  // Then only an attribute can decide the type: a type, or a tensor of that type.
  for (const char* name : {"to", "dtype", "output_datatype", "output_dtype"}) {
    const auto found = node.attributes.find(name);
    if (found != node.attributes.end()) return type_id(dtype_of_onnx(static_cast<int32_t>(found->second.i)));
  }
  const auto value = node.attributes.find("value");
  return value != node.attributes.end() && value->second.tensor.defined() ? type_id(value->second.tensor.dtype()) : 0;
}

}  // namespace tenon::onnx
