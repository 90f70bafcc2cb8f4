#include "sdk/onnx/schema/constraints.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "primitives/text/format.h"
#include "primitives/text/visible.h"
#include "sdk/onnx/schema/schema.h"

namespace tenon::onnx {
namespace {

using Text = std::string_view;

struct Row {
  Text domain = {};  // empty: ai.onnx
  Text op_type;
  int64_t since = 1, until = INT64_MAX;
  Text inputs = {}, attributes = {};
};

constexpr Row kRows[] = {
#define CONSTRAINTS(...) {__VA_ARGS__},
#include "sdk/onnx/schema/constraints.def"
#undef CONSTRAINTS
};

// ---- reading rows ----

std::vector<Text> split(Text text, char by) {
  std::vector<Text> parts;
  while (true) {
    const size_t end = text.find(by);
    Text part = text.substr(0, end);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    parts.push_back(part);
    if (end == Text::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<int64_t> number_of(Text text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

SizeTerm read_term(Text text) {
  SizeTerm term;
  term.text = text;
  if (text.back() == '*') {
    term.list = true;
    text.remove_suffix(1);
  }
  if (text == "_") {
    term.any = true;
    return term;
  }
  for (const Text factor : split(text, '.')) {
    if (const std::optional<int64_t> number = number_of(factor)) {
      term.factor *= *number;
    } else {
      term.letters.push_back(factor);
    }
  }
  return term;
}

std::vector<SizeTerm> read_terms(Text text) {
  std::vector<SizeTerm> terms;
  if (text.empty()) return terms;
  for (const Text term : split(text, ',')) terms.push_back(read_term(term));
  return terms;
}

ShapeRule read_shape(Text text) {
  ShapeRule rule;
  if (text.empty()) return rule;
  rule.form = ShapeRule::Form::exact;
  if (text.front() == '<') {
    rule.form = ShapeRule::Form::broadcasts;
    text.remove_prefix(1);
  } else if (text.front() == '(') {
    rule.form = ShapeRule::Form::one_element;
    text = text.substr(1, text.size() - 2);
  } else if (const size_t flag = text.find('?'); flag != Text::npos) {
    rule.flag = text.substr(0, flag);
    text.remove_prefix(flag + 1);
    const std::vector<Text> shapes = split(text, ':');
    rule.otherwise = read_terms(shapes[1]);
    text = shapes[0];
  }
  rule.terms = read_terms(text);
  return rule;
}

// Removes `mark` and the text after it from `text`, and returns that text; none if there is no mark.
std::optional<Text> cut(Text* text, Text mark) {
  const size_t at = text->find(mark);
  if (at == Text::npos) return std::nullopt;
  const Text rest = text->substr(at + mark.size());
  *text = text->substr(0, at);
  return rest;
}

void read_value(Text text, NumberRule* rule) {
  if (!text.empty() && text.front() == '=') {
    rule->form = NumberRule::Form::equals;
    rule->letter = text.substr(1);
  } else if (text.find_first_of("*,") != Text::npos) {
    rule->form = NumberRule::Form::sizes;
    rule->terms = read_terms(text);
  } else if (const std::optional<Text> word = cut(&text, "(")) {
    rule->form = NumberRule::Form::word;
    rule->letter = text;
    rule->word = word->substr(0, word->size() - 1);
  } else {
    rule->form = NumberRule::Form::gives;
    if (const std::optional<Text> absent = cut(&text, ":")) rule->absent = number_of(*absent);
    rule->letter = text;
  }
}

NumberRule read_number(Text text) {
  NumberRule rule;
  if (std::optional<Text> limits = cut(&text, ">=")) {
    if (const std::optional<Text> most = cut(&*limits, "<=")) rule.most = *number_of(*most);
    rule.least = number_of(*limits);
  }
  if (std::optional<Text> count = cut(&text, "[")) {
    rule.form = NumberRule::Form::count;
    count->remove_suffix(1);
    const size_t letter = count->find_first_not_of("0123456789");
    rule.times = number_of(count->substr(0, letter)).value_or(1);
    if (letter != Text::npos) rule.letter = count->substr(letter);
  } else if (const std::optional<Text> value = cut(&text, "=")) {
    read_value(*value, &rule);
  }
  rule.attribute = text;
  return rule;
}

Constraints read_row(const Row& row) {
  Constraints read{row.domain, row.op_type, row.since, row.until, {}, {}};
  for (const Text shape : split(row.inputs, ';')) read.inputs.push_back(read_shape(shape));
  for (const Text word : split(row.attributes, ' ')) {
    if (!word.empty()) read.attributes.push_back(read_number(word));
  }
  return read;
}

// ---- checking a node ----

const Attribute* find_attribute(const Node& node, Text name) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() ? nullptr : &found->second;
}

// "[2, 3]"
template <class List>
std::string text_of(const List& values) {
  std::string text;
  for (const auto& value : values) text += fmt::format("{}{}", text.empty() ? "" : ", ", value);
  return fmt::format("[{}]", text);
}

class Asked {
 public:
  Asked(const Node& node, const Constraints& rules) : node_(node), rules_(rules) {
    for (const NumberRule& rule : rules_.attributes) give_letter(rule);
  }

  std::string broken(std::span<const std::optional<SymDims>> shapes) {
    // The first pass may give a size to a letter that a product needs in the second one.
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t i = 0; i < std::min(shapes.size(), rules_.inputs.size()); ++i) {
        if (!shapes[i]) continue;
        std::string sentence = broken_shape(i, *shapes[i]);
        if (!sentence.empty()) return sentence;
      }
    }
    for (const NumberRule& rule : rules_.attributes) {
      std::string sentence = broken_number(rule);
      if (!sentence.empty()) return sentence;
    }
    return {};
  }

 private:
  void give_letter(const NumberRule& rule) {
    const Attribute* given = find_attribute(node_, rule.attribute);
    if (rule.form == NumberRule::Form::word) {
      letters_[rule.letter] = given != nullptr && given->s == rule.word ? 2 : 1;
    } else if (rule.form == NumberRule::Form::gives && (given != nullptr || rule.absent)) {
      letters_[rule.letter] = given != nullptr ? given->i : *rule.absent;
    }
  }

  std::string broken_shape(size_t i, const SymDims& shape) {
    const ShapeRule& rule = rules_.inputs[i];
    const Attribute* flag = rule.flag.empty() ? nullptr : find_attribute(node_, rule.flag);
    const std::vector<SizeTerm>& terms =
        rule.flag.empty() || (flag != nullptr && flag->i != 0) ? rule.terms : rule.otherwise;
    const char* wanted = "";
    switch (rule.form) {
      case ShapeRule::Form::any: return {};
      case ShapeRule::Form::exact:
        if (has_sizes(terms, shape)) return {};
        break;
      case ShapeRule::Form::broadcasts:
        if (broadcasts(terms, shape)) return {};
        wanted = "a shape that broadcasts to ";
        break;
      case ShapeRule::Form::one_element:
        if (is_one(shape) || (!terms.empty() && has_sizes(terms, shape))) return {};
        wanted = terms.empty() ? "one element" : "one element or the shape ";
        break;
    }
    const bool bare = rule.form == ShapeRule::Form::one_element && terms.empty();
    const Text name = node_.schema != nullptr && i < node_.schema->inputs.size() ? node_.schema->inputs[i].name : "";
    return fmt::format("its input {}, {}, has the shape {}; {}{} is expected", i, quoted(name), shape, wanted,
                       bare ? "" : described(terms));
  }

  static bool is_one(const SymDims& shape) {
    return shape.rank() == 0 || (shape.rank() == 1 && shape[0].is_number() && shape[0].number() == 1);
  }

  // True if `shape` fits `terms`. Letters without a size get one from `shape`.
  bool has_sizes(const std::vector<SizeTerm>& terms, const SymDims& shape) {
    const auto list = std::find_if(terms.begin(), terms.end(), [](const SizeTerm& term) { return term.list; });
    const auto before = static_cast<int32_t>(list - terms.begin());
    const auto after = static_cast<int32_t>(terms.end() - list) - (list == terms.end() ? 0 : 1);
    if (list == terms.end() ? shape.rank() != before : shape.rank() < before + after) return false;
    for (int32_t at = 0; at < before; ++at) {
      if (!is_size(terms[static_cast<size_t>(at)], shape[at])) return false;
    }
    for (int32_t at = 0; at < after; ++at) {
      if (!is_size(terms[terms.size() - 1 - static_cast<size_t>(at)], shape[shape.rank() - 1 - at])) return false;
    }
    if (list == terms.end() || list->any) return true;
    const SymDims rest(std::span<const SymDim>(shape.begin() + before, shape.end() - after));
    const auto [known, fresh] = lists_.emplace(list->letters[0], rest);
    return fresh || equal(known->second, rest);
  }

  static bool equal(const SymDims& a, const SymDims& b) {
    if (a.rank() != b.rank()) return false;
    for (int32_t axis = 0; axis < a.rank(); ++axis) {
      if (!identical(a[axis], b[axis]) && !expect(a[axis] == b[axis])) return false;
    }
    return true;
  }

  // True if `size` fits `term`. If one letter has no size, it gets one from `size`; if several have none, any size
  // fits.
  bool is_size(const SizeTerm& term, SymDim size) {
    if (term.any) return true;
    SymDim product = term.factor;
    std::optional<Text> open;
    for (const Text letter : term.letters) {
      const auto known = letters_.find(letter);
      if (known != letters_.end()) {
        product *= known->second;
      } else if (open) {
        return true;
      } else {
        open = letter;
      }
    }
    if (!open) return identical(product, size) || expect(product == size);
    if (identical(product, 1)) {
      letters_[*open] = size;
    } else if (identical(product, 0)) {
      return expect(size == 0);
    } else {
      if (!expect(modulo(size, product) == 0)) return false;
      letters_[*open] = floor_div(size, product);
    }
    return true;
  }

  // The size of `term` if all its letters are known.
  std::optional<SymDim> size_of(const SizeTerm& term) const {
    if (term.any) return std::nullopt;
    SymDim product = term.factor;
    for (const Text letter : term.letters) {
      const auto known = letters_.find(letter);
      if (known == letters_.end()) return std::nullopt;
      product *= known->second;
    }
    return product;
  }

  // The sizes of `terms`, if all are known.
  std::optional<std::vector<SymDim>> sizes_of(const std::vector<SizeTerm>& terms) const {
    std::vector<SymDim> sizes;
    for (const SizeTerm& term : terms) {
      if (!term.list) {
        const std::optional<SymDim> size = size_of(term);
        if (!size) return std::nullopt;
        sizes.push_back(*size);
        continue;
      }
      const auto known = lists_.find(term.letters[0]);
      if (known == lists_.end()) return std::nullopt;
      sizes.insert(sizes.end(), known->second.begin(), known->second.end());
    }
    return sizes;
  }

  bool broadcasts(const std::vector<SizeTerm>& terms, const SymDims& shape) const {
    const std::optional<std::vector<SymDim>> to = sizes_of(terms);
    if (!to) return true;
    if (shape.rank() > static_cast<int32_t>(to->size())) return false;
    for (int32_t back = 1; back <= shape.rank(); ++back) {
      const SymDim have = shape[shape.rank() - back], want = (*to)[to->size() - static_cast<size_t>(back)];
      if (!identical(have, 1) && !identical(have, want) && !expect(have == want)) return false;
    }
    return true;
  }

  std::string broken_number(const NumberRule& rule) {
    const Attribute* given = find_attribute(node_, rule.attribute);
    if (given == nullptr) return {};
    if (rule.form == NumberRule::Form::equals) {
      const auto known = letters_.find(rule.letter);
      if (known == letters_.end() || expect(known->second == given->i)) return {};
      return fmt::format("its attribute {} is {}, but its inputs have the shapes for {}", quoted(rule.attribute),
                         given->i, known->second);
    }
    if (rule.form == NumberRule::Form::count) return broken_count(rule, given->ints);
    return rule.form == NumberRule::Form::sizes ? broken_sizes(rule, given->ints) : std::string();
  }

  std::string broken_count(const NumberRule& rule, const std::vector<int64_t>& numbers) const {
    auto wanted = static_cast<size_t>(rule.times);
    if (!rule.letter.empty()) {
      const auto list = lists_.find(rule.letter);
      if (list == lists_.end()) return {};
      wanted *= static_cast<size_t>(list->second.rank());
    }
    if (numbers.size() == wanted) return {};
    return fmt::format("its attribute {} is {}; {} numbers are expected", quoted(rule.attribute), text_of(numbers),
                       wanted);
  }

  std::string broken_sizes(const NumberRule& rule, const std::vector<int64_t>& numbers) const {
    const std::optional<std::vector<SymDim>> wanted = sizes_of(rule.terms);
    if (!wanted) return {};
    bool same = numbers.size() == wanted->size();
    for (size_t i = 0; same && i < numbers.size(); ++i) same = expect((*wanted)[i] == SymDim::saturated(numbers[i]));
    if (same) return {};
    return fmt::format("its attribute {} is {}; {} is expected, as in the shapes of its inputs", quoted(rule.attribute),
                       text_of(numbers), text_of(*wanted));
  }

  // "[2, c, ..]": the sizes that are known, and the letters of the others.
  std::string described(const std::vector<SizeTerm>& terms) const {
    std::vector<std::string> words;
    for (const SizeTerm& term : terms) {
      if (!term.list) {
        const std::optional<SymDim> size = size_of(term);
        words.push_back(size ? to_string(*size) : std::string(term.any ? "any" : term.text));
      } else if (const auto known = term.any ? lists_.end() : lists_.find(term.letters[0]); known != lists_.end()) {
        for (const SymDim size : known->second) words.push_back(to_string(size));
      } else {
        words.emplace_back("..");
      }
    }
    return text_of(words);
  }

  const Node& node_;
  const Constraints& rules_;
  std::map<Text, SymDim> letters_;
  std::map<Text, SymDims> lists_;
};

std::string broken_limit(const NumberRule& rule, const Attribute& given) {
  const auto inside = [&](int64_t number) { return number >= *rule.least && number <= rule.most; };
  const bool one = given.kind == Attribute::Kind::integer;
  if (one ? inside(given.i) : std::all_of(given.ints.begin(), given.ints.end(), inside)) return {};
  return fmt::format("its attribute {} is {}; {} from {} to {} {} expected", quoted(rule.attribute),
                     one ? fmt::format("{}", given.i) : text_of(given.ints), one ? "a number" : "numbers", *rule.least,
                     rule.most, one ? "is" : "are");
}

}  // namespace

const std::vector<Constraints>& all_constraints() {
  static const std::vector<Constraints> all = [] {
    std::vector<Constraints> list;
    for (const Row& row : kRows) list.push_back(read_row(row));
    return list;
  }();
  return all;
}

const Constraints* find_constraints(const Node& node) {
  using Rows = std::multimap<std::pair<Text, Text>, const Constraints*>;
  static const Rows rows = [] {
    Rows made;
    for (const Constraints& row : all_constraints()) made.emplace(std::pair(row.domain, row.op_type), &row);
    return made;
  }();
  const auto [begin, end] = rows.equal_range({node.domain, node.op_type});
  const auto found = std::find_if(begin, end, [&](const auto& row) {
    return node.version >= row.second->since && node.version <= row.second->until;
  });
  return found == end ? nullptr : found->second;
}

std::string broken_limits(const Node& node) {
  const Constraints* rules = find_constraints(node);
  if (rules == nullptr) return {};
  for (const NumberRule& rule : rules->attributes) {
    const Attribute* given = rule.least ? find_attribute(node, rule.attribute) : nullptr;
    std::string sentence = given == nullptr ? std::string() : broken_limit(rule, *given);
    if (!sentence.empty()) return sentence;
  }
  return {};
}

std::string broken_constraints(const Node& node, std::span<const std::optional<SymDims>> shapes) {
  const Constraints* rules = find_constraints(node);
  return rules == nullptr ? std::string() : Asked(node, *rules).broken(shapes);
}

}  // namespace tenon::onnx
