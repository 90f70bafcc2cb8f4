// Tokenizer of com.microsoft: splits strings at separators, or takes the matches of a pattern.
#include <algorithm>

#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/text/text.h"
#include "sdk/onnx/translate/microsoft.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

using Strings = std::vector<std::string>;
using Patterns = std::vector<std::unique_ptr<text::Pattern>>;

// The parts of `whole` between matches of `separator`.
Strings parts_between(NodeContext& n, const std::string& whole, const text::Pattern& separator) {
  Strings parts;
  size_t at = 0;
  while (const auto match = separator.find(whole, at)) {
    if (match->size == 0) n.invalid("one of its separators matches the empty string, so it cannot split");
    parts.push_back(whole.substr(at, match->begin - at));
    at = match->begin + match->size;
  }
  parts.push_back(whole.substr(at));
  return parts;
}

Strings matches_of(const std::string& whole, const text::Pattern& pattern) {
  Strings found;
  size_t at = 0;
  while (const auto match = pattern.find(whole, at)) {
    if (match->size == 0) {  // continue after the next character
      at = match->begin + text::characters(std::string_view(whole).substr(match->begin)).front().size();
    } else {
      found.push_back(whole.substr(match->begin, match->size));
      at = match->begin + match->size;
    }
    if (at >= whole.size()) break;
  }
  return found;
}

// Splits strings as the node's attributes say.
class Cutter {
 public:
  explicit Cutter(NodeContext& n) : least_(n.require("mincharnum", Attribute::Kind::integer).i) {
    const Strings separators =
        n.find("separators") == nullptr ? Strings() : n.require("separators", Attribute::Kind::texts).strings;
    const std::string pattern = n.text("tokenexp", "");
    if (separators.empty() == pattern.empty()) n.invalid("it must have either separators or tokenexp");
    if (least_ < 1) n.invalid(fmt::format("its mincharnum is {}; it must be at least 1", least_));
    by_character_ = pattern == "." || (separators.size() == 1 && separators[0].empty());
    if (by_character_) {
      if (least_ > 1) n.invalid(fmt::format("its tokens are characters, so its mincharnum must be 1, not {}", least_));
      return;
    }
    if (!pattern.empty()) pattern_ = std::make_unique<text::Pattern>(pattern);
    for (const std::string& each : separators) separators_.push_back(std::make_unique<text::Pattern>(each));
  }

  Strings tokens_of(NodeContext& n, const std::string& whole) const {
    if (by_character_) return text::characters(whole);
    Strings tokens = {whole};
    if (pattern_ != nullptr) tokens = matches_of(whole, *pattern_);
    for (const auto& separator : separators_) {
      Strings next;
      for (const std::string& token : tokens) {
        for (std::string& part : parts_between(n, token, *separator)) next.push_back(std::move(part));
      }
      tokens = std::move(next);
    }
    std::erase_if(tokens, [&](const std::string& token) {
      return static_cast<int64_t>(text::characters(token).size()) < least_;
    });
    return tokens;
  }

 private:
  int64_t least_;
  bool by_character_ = false;
  std::unique_ptr<text::Pattern> pattern_;
  Patterns separators_;
};

constexpr size_t kMostTokens = size_t{1} << 26;

ValueList tokenizer(NodeContext& n) {
  if (n.value(0).kind() != Value::Kind::strings)
    n.invalid(fmt::format("its input must be a tensor of strings, not {}", to_string(n.value(0))));
  const Strings& strings = n.value(0).strings();
  Dims dims = n.value(0).dims();
  if (dims.rank() < 1 || dims.rank() > 2)
    n.invalid(fmt::format("its input has shape {}; one or two axes are needed", dims));
  const Cutter& cutter = n.kept<Cutter>("cutter", [&] { return Cutter(n); });
  const bool marks = n.require("mark", Attribute::Kind::integer).i != 0;
  std::vector<Strings> rows;
  size_t longest = 0;
  for (const std::string& text : strings) {
    Strings& row = rows.emplace_back(cutter.tokens_of(n, text));
    longest = std::max(longest, row.size());
  }
  if (strings.empty()) return {Value::strings(dims, {})};
  if (longest != 0 && marks) longest += 2;
  if (longest > kMostTokens / strings.size())
    n.unsupported(fmt::format("its result would have {} rows of {} tokens", strings.size(), longest));
  const std::string padding = n.require("pad_value", Attribute::Kind::text).s;
  Strings all;
  for (Strings& row : rows) {
    const size_t end = all.size() + longest;
    if (marks && longest != 0) all.emplace_back(1, '\x02');
    for (std::string& token : row) all.push_back(std::move(token));
    if (marks && longest != 0) all.emplace_back(1, '\x03');
    all.resize(end, padding);
  }
  dims.push_back(static_cast<int64_t>(longest));
  return {Value::strings(dims, std::move(all))};
}

constexpr Translator kTokenizerRows[] = {
    {.domain = kMicrosoft, .op_type = "Tokenizer", .since = 1, .translate_values = tokenizer},
};

}  // namespace

std::span<const Translator> tokenizer_translators() { return kTokenizerRows; }

}  // namespace tenon::onnx
