// Operators on strings, which run on the host.
#include "sdk/onnx/text/text.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

using Strings = std::vector<std::string>;

// The strings of input i. Throws UnknownValue if the check of a model does not know the value.
const Strings& strings(NodeContext& n, size_t i) {
  if (n.value(i).kind() != Value::Kind::strings)
    n.invalid(fmt::format("input {} must be a tensor of strings, not {}", i, to_string(n.value(i))));
  return n.value(i).strings();
}

ValueList string_normalizer(NodeContext& n) {
  const Dims& dims = n.value(0).dims();
  if (dims.rank() < 1 || dims.rank() > 2 || (dims.rank() == 2 && dims[0] != 1))
    n.invalid(fmt::format("its input has shape {}; [c] or [1, c] is needed", dims));
  const std::string action = n.text("case_change_action", "NONE"), locale = n.text("locale", "");
  const bool sensitive = n.flag("is_case_sensitive", false);
  const auto compared = [&](const std::string& text) {
    return sensitive ? text : text::in_case(text, text::Case::lower, locale);
  };
  using Words = std::set<std::string>;
  const Words& stopwords = n.kept<Words>("stopwords", [&] {
    Words words;
    for (const std::string& word : n.text_list("stopwords")) words.insert(compared(word));
    return words;
  });
  const text::Case wanted = action == "LOWER"   ? text::Case::lower
                            : action == "UPPER" ? text::Case::upper
                                                : text::Case::keep;
  Strings kept;
  for (const std::string& word : strings(n, 0)) {
    if (stopwords.count(compared(word)) == 0) kept.push_back(text::in_case(word, wanted, locale));
  }
  if (kept.empty()) kept.emplace_back();
  const auto count = static_cast<int64_t>(kept.size());
  return {Value::strings(dims.rank() == 2 ? Dims{1, count} : Dims{count}, std::move(kept))};
}

// Positions of the elements of input i after broadcasting to `dims`.
std::vector<int64_t> broadcast(const Dims& from, const Dims& dims) {
  const Tensor positions = reshape(arange(Scalar(element_count(from)), DType::i64, Device::host()), from);
  return contiguous(expand(positions, dims)).to_host<int64_t>();
}

ValueList string_concat(NodeContext& n) {
  const Strings &a = strings(n, 0), &b = strings(n, 1);
  const Dims &x = n.value(0).dims(), &y = n.value(1).dims();
  Dims dims = Dims::filled(std::max(x.rank(), y.rank()), 1);
  for (int32_t i = 0; i < dims.rank(); ++i) {
    const int32_t at_x = i - (dims.rank() - x.rank()), at_y = i - (dims.rank() - y.rank());
    const int64_t p = at_x < 0 ? 1 : x[at_x], q = at_y < 0 ? 1 : y[at_y];
    if (p != q && p != 1 && q != 1) n.invalid(fmt::format("shapes {} and {} do not broadcast", x, y));
    dims[i] = p == 1 ? q : p;
  }
  NodeContext::require_eager();
  const std::vector<int64_t> from_a = broadcast(x, dims), from_b = broadcast(y, dims);
  Strings joined;
  for (size_t i = 0; i < from_a.size(); ++i)
    joined.push_back(a[static_cast<size_t>(from_a[i])] + b[static_cast<size_t>(from_b[i])]);
  return {Value::strings(dims, std::move(joined))};
}

ValueList string_split(NodeContext& n) {
  const Attribute* most = n.find("maxsplit");
  if (most != nullptr && most->i < 0) n.invalid(fmt::format("its maxsplit is {}; it must be at least 0", most->i));
  const std::string delimiter = n.text("delimiter", "");
  std::vector<Strings> rows;
  size_t longest = 0, made = 0;
  for (const std::string& text : strings(n, 0)) {
    rows.push_back(text::split(text, delimiter, most == nullptr ? std::nullopt : std::optional(most->i)));
    longest = std::max(longest, rows.back().size());
    made += rows.back().size();
  }
  const double whole = static_cast<double>(rows.size()) * static_cast<double>(longest);
  n.require_host_work(whole * sizeof(std::string), whole + static_cast<double>(made));
  Dims dims = n.value(0).dims();
  if (dims.rank() == EP_MAX_RANK) n.invalid(fmt::format("the result would have more than {} axes", EP_MAX_RANK));
  std::vector<int64_t> counts;
  Strings parts(rows.size() * longest);
  for (size_t i = 0; i < rows.size(); ++i) {
    counts.push_back(static_cast<int64_t>(rows[i].size()));
    std::move(rows[i].begin(), rows[i].end(), parts.begin() + static_cast<ptrdiff_t>(i * longest));
  }
  const Tensor lengths = Tensor::copy_from_host(counts.data(), dims, DType::i64, n.device());
  dims.push_back(static_cast<int64_t>(longest));
  return {Value::strings(dims, std::move(parts)), lengths};
}

ValueList regex_full_match(NodeContext& n) {
  using Kept = std::unique_ptr<const text::Pattern>;
  const text::Pattern& pattern =
      *n.kept<Kept>("pattern", [&] { return std::make_unique<const text::Pattern>(n.text("pattern", "")); });
  std::vector<uint8_t> matches;
  for (const std::string& text : strings(n, 0)) matches.push_back(pattern.matches(text) ? 1 : 0);
  return {Tensor::copy_from_host(matches.data(), n.value(0).dims(), DType::boolean, n.device())};
}

// The n-grams of a node: sequences of words or numbers, each with its position in the result and its weight.
class Grams {
 public:
  explicit Grams(NodeContext& n) {
    shortest_ = n.integer("min_gram_length", 1);
    longest_ = n.integer("max_gram_length", 1);
    skips_ = n.integer("max_skip_count", 0);
    if (shortest_ < 1 || longest_ < shortest_ || skips_ < 0)
      n.invalid(
          fmt::format("its grams have {} to {} words and skip {}; at least 1 word and no negative skip are possible",
                      shortest_, longest_, skips_));
    mode_ = n.text("mode", "TF");
    places_ = n.integers("ngram_indexes").value_or(std::vector<int64_t>());
    if (n.find("weights") != nullptr) weights_ = n.require("weights", Attribute::Kind::numbers).floats;
    if (!weights_.empty() && weights_.size() != places_.size())
      n.invalid(fmt::format("it has {} weights for {} grams", weights_.size(), places_.size()));
    for (int64_t place : places_) {
      if (place < 0 || place >= kMostPlaces)
        n.invalid(fmt::format("a gram has the place {}, which is outside the result", place));
      width_ = std::max(width_, place + 1);
    }
    const auto starts = n.integers("ngram_counts").value_or(std::vector<int64_t>());
    read_pool(n, starts);
    longest_ = std::min(longest_, static_cast<int64_t>(starts.size()));  // the pool has no longer ones
  }

  int64_t width() const { return width_; }

  // Adds the counts or weights of the n-grams in `words` to `out`.
  void count(const std::vector<int64_t>& words, float* out) const {
    std::vector<float> counts(static_cast<size_t>(width_), 0.0f);
    const auto size = static_cast<int64_t>(words.size());
    for (int64_t length = shortest_; length <= std::min(longest_, size); ++length) {
      // A greater step would go beyond the last word.
      const int64_t most = length == 1 ? 1 : std::min(skips_, (size - 1) / (length - 1) - 1) + 1;
      for (int64_t step = 1; step <= most; ++step) {
        for (int64_t at = 0; at + (length - 1) * step < size; ++at) {
          std::vector<int64_t> gram;
          for (int64_t i = 0; i < length; ++i) gram.push_back(words[static_cast<size_t>(at + i * step)]);
          const auto found = grams_.find(gram);
          if (found == grams_.end()) continue;
          for (size_t which : found->second) counts[static_cast<size_t>(places_[which])] += 1.0f;
        }
      }
    }
    for (size_t i = 0; i < places_.size(); ++i) {
      const auto at = static_cast<size_t>(places_[i]);
      const float weight = weights_.empty() ? 1.0f : weights_[i];
      out[at] = mode_ == "TF" ? counts[at] : (mode_ == "IDF" ? (counts[at] > 0 ? 1.0f : 0.0f) : counts[at]) * weight;
    }
  }

  // The number of a word of the pool; -1 if no n-gram contains it.
  int64_t number_of(const std::string& word) const {
    const auto found = numbers_.find(word);
    return found == numbers_.end() ? -1 : found->second;
  }

 private:
  static constexpr int64_t kMostPlaces = 1 << 24;

  void read_pool(NodeContext& n, const std::vector<int64_t>& starts) {
    const std::span<const std::string> words = n.text_list("pool_strings");
    std::vector<int64_t> pool = n.integers("pool_int64s").value_or(std::vector<int64_t>());
    if (words.empty() == pool.empty()) n.invalid("it must have either pool_strings or pool_int64s");
    for (const std::string& word : words)
      pool.push_back(numbers_.emplace(word, static_cast<int64_t>(numbers_.size())).first->second);
    size_t gram = 0;
    for (size_t length = 1; length <= starts.size(); ++length) {
      const int64_t begin = starts[length - 1];
      const int64_t end = length == starts.size() ? static_cast<int64_t>(pool.size()) : starts[length];
      if (begin < 0 || end < begin || end > static_cast<int64_t>(pool.size()) ||
          (end - begin) % static_cast<int64_t>(length) != 0)
        n.invalid(fmt::format("its ngram_counts do not divide {} words: words {} to {} must be whole grams of {}",
                              pool.size(), begin, end, length));
      for (int64_t at = begin; at < end; at += static_cast<int64_t>(length), ++gram) {
        if (gram >= places_.size()) n.invalid(fmt::format("it has more grams than its {} ngram_indexes", gram));
        grams_[{pool.begin() + at, pool.begin() + at + static_cast<ptrdiff_t>(length)}].push_back(gram);
      }
    }
  }

  int64_t shortest_ = 1, longest_ = 1, skips_ = 0, width_ = 0;
  std::string mode_;
  std::vector<int64_t> places_;
  std::vector<float> weights_;
  std::map<std::string, int64_t> numbers_;
  std::map<std::vector<int64_t>, std::vector<size_t>> grams_;
};

ValueList tf_idf_vectorizer(NodeContext& n) {
  const Grams& grams = n.kept<Grams>("grams", [&] { return Grams(n); });
  std::vector<int64_t> words;
  if (n.value(0).kind() == Value::Kind::strings) {
    for (const std::string& word : strings(n, 0)) words.push_back(grams.number_of(word));
  } else {
    words = n.elements<int64_t>(0);
  }
  const Dims& dims = n.value(0).dims();
  if (dims.rank() < 1 || dims.rank() > 2)
    n.invalid(fmt::format("its input has shape {}; one or two axes are needed", dims));
  const int64_t rows = dims.rank() == 2 ? dims[0] : 1, length = dims[dims.rank() - 1];
  const Dims result = dims.rank() == 2 ? Dims{rows, grams.width()} : Dims{grams.width()};
  if (!checked_count(result)) n.invalid(fmt::format("its result would have the impossible shape {}", result));
  const auto made = static_cast<double>(element_count(result));
  n.require_host_work(made * sizeof(float), made + static_cast<double>(words.size()));
  std::vector<float> counts(static_cast<size_t>(element_count(result)), 0.0f);
  for (int64_t row = 0; row < rows; ++row) {
    const auto begin = words.begin() + row * length;
    grams.count({begin, begin + length}, counts.data() + row * grams.width());
  }
  return {Tensor::copy_from_host(counts.data(), result, DType::f32, n.device())};
}

// ---- casts ----

// The dtype that a Cast or CastLike gives; none for strings.
DType wanted_type(NodeContext& n) {
  if (n.node().op_type == "CastLike") return n.value(1).is_tensor() ? n.dtype(1) : DType::none;
  return dtype_of_onnx(static_cast<int32_t>(n.require("to", Attribute::Kind::integer).i));
}

Strings texts_of(NodeContext& n) {
  const DType dtype = n.dtype(0);
  Strings list;
  if (dtype == DType::boolean) {
    for (int64_t value : n.elements<int64_t>(0)) list.emplace_back(value != 0 ? "True" : "False");
  } else if (dtype == DType::u64) {
    for (int64_t value : n.elements<int64_t>(0)) list.push_back(fmt::format("{}", static_cast<uint64_t>(value)));
  } else if (is_integer(dtype)) {
    for (int64_t value : n.elements<int64_t>(0)) list.push_back(fmt::format("{}", value));
  } else {
    for (double value : n.elements<double>(0)) list.push_back(text::to_text(value, dtype != DType::f64));
  }
  return list;
}

ValueList cast_text(NodeContext& n) {
  const DType dtype = wanted_type(n);
  const bool from_text = n.value(0).kind() == Value::Kind::strings;
  if (from_text && dtype == DType::none) return {n.value(0)};
  if (!from_text) return {Value::strings(n.value(0).dims(), texts_of(n))};
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  for (const std::string& text : strings(n, 0)) {
    const std::optional<int64_t> integer = is_integer(dtype) ? text::to_integer(text) : std::nullopt;
    const std::optional<double> number = integer ? static_cast<double>(*integer) : text::to_number(text);
    if (!number) n.invalid(fmt::format("'{}' is not a number", text));
    numbers.push_back(*number);
    integers.push_back(integer.value_or(Scalar(*number).to_int()));
  }
  const Dims& dims = n.value(0).dims();
  NodeContext::require_eager();
  const Tensor read = is_integer(dtype) ? Tensor::copy_from_host(integers.data(), dims, DType::i64, Device::host())
                                        : Tensor::copy_from_host(numbers.data(), dims, DType::f64, Device::host());
  return {cast(read, dtype).to(n.device())};
}

constexpr Translator kTextRows[] = {
    {.op_type = "RegexFullMatch", .since = 20, .translate_values = regex_full_match},
    {.op_type = "StringConcat", .since = 20, .translate_values = string_concat},
    {.op_type = "StringNormalizer", .since = 10, .translate_values = string_normalizer},
    {.op_type = "StringSplit", .since = 20, .translate_values = string_split},
    {.op_type = "TfIdfVectorizer", .since = 9, .translate_values = tf_idf_vectorizer},
};

constexpr Translator kForms[] = {
    {.op_type = "Cast", .since = 6, .translate_values = cast_text},
    {.op_type = "CastLike", .since = 15, .translate_values = cast_text},
};

}  // namespace

std::span<const Translator> text_translators() { return kTextRows; }
std::span<const Translator> text_forms() { return kForms; }

}  // namespace tenon::onnx
