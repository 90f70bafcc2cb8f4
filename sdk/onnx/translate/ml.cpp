// ai.onnx.ml: features and linear models. Trees are in trees.cpp, support vector machines in svm.cpp.
#include "sdk/onnx/translate/ml.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "primitives/text/format.h"
#include "sdk/onnx/tensors/tensor_data.h"

namespace tenon::onnx {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;

int64_t length(std::span<const float> values) { return static_cast<int64_t>(values.size()); }

TensorList array_feature_extractor(NodeContext& n) {
  const Tensor x = n.rank(0) == 1 ? unsqueeze(n.input(0), 0) : n.input(0);
  if (x.rank() == 0) n.invalid("its input is a scalar");
  return {gather_slices(x, -1, reshape(n.input(1), {-1}))};
}

TensorList binarizer(NodeContext& n) { return {cast(gt(n.input(0), Scalar(n.number("threshold", 0.0))), n.dtype(0))}; }

TensorList feature_vectorizer(NodeContext& n) {
  const std::optional<Ints> widths = n.integers("inputdimensions");
  TensorList parts;
  for (size_t i = 0; i < n.input_count(); ++i) {
    Tensor part = cast(n.input(i), DType::f32);
    if (part.rank() == 1) part = unsqueeze(part, 0);
    if (part.rank() != 2 || (widths && (widths->size() != n.input_count() || (*widths)[i] != part.dim(1))))
      n.invalid(fmt::format("input {} has shape {}, which does not fit inputdimensions", i, n.dims(i)));
    parts.push_back(part);
  }
  return {parts.size() == 1 ? parts[0] : concat(parts, 1)};
}

TensorList imputer(NodeContext& n) {
  const Tensor& x = n.input(0);
  const bool whole = is_integer(x.dtype());
  const std::span<const float> values = n.float_list("imputed_value_floats");
  const std::span<const int64_t> ints = n.integer_list("imputed_value_int64s");
  const int64_t count = whole ? static_cast<int64_t>(ints.size()) : length(values);
  if (x.rank() == 0 || count == 0 || (count != 1 && count != x.dim(-1)))
    n.invalid(fmt::format("{} imputed values do not fit shape {}", count, x.dims()));
  const Tensor imputed = kept_tensor(n, whole ? "imputed_value_int64s" : "imputed_value_floats", {count});
  if (whole) return {where(eq(x, Scalar(n.integer("replaced_value_int64", 0))), cast(imputed, x.dtype()), x)};
  const double replaced = n.number("replaced_value_float", 0.0);
  return {where(std::isnan(replaced) ? isnan(x) : eq(x, Scalar(replaced)), cast(imputed, x.dtype()), x)};
}

TensorList normalizer(NodeContext& n) {
  const Tensor x = n.dtype(0) == DType::f32 ? n.input(0) : cast(n.input(0), DType::f32);
  if (x.rank() == 0) n.invalid("its input is a scalar");
  const std::string norm = n.text("norm", "MAX");
  const Tensor size = norm == "L1"   ? l1_norm(x, -1, true)
                      : norm == "L2" ? l2_norm(x, -1, true)
                                     : amax(tenon::abs(x), -1, true);
  return {where(eq(size, Scalar(0.0)), x, div(x, size))};
}

TensorList scaler(NodeContext& n) {
  const Tensor x = cast(n.input(0), DType::f32);
  const std::span<const float> offset = n.float_list("offset"), scale = n.float_list("scale");
  for (const std::span<const float> values : {offset, scale}) {
    if (x.rank() == 0 || (values.size() > 1 && length(values) != x.dim(-1)))
      n.invalid(fmt::format("{} numbers do not fit shape {}", values.size(), x.dims()));
  }
  const Tensor moved = offset.empty() ? x : sub(x, kept_tensor(n, "offset", {length(offset)}));
  return {scale.empty() ? moved : mul(moved, kept_tensor(n, "scale", {length(scale)}))};
}

// The first position of each key; NaN is a key, too.
template <class Key>
class Places {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  explicit Places(std::span<const Key> keys) {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] != keys[i]) {
        nan_ = std::min(nan_, i);
      } else {
        places_.emplace(keys[i], i);
      }
    }
  }
  // The position of `key`; kNone if the table lacks it.
  size_t operator[](const Key& key) const {
    if (key != key) return nan_;
    const auto found = places_.find(key);
    return found == places_.end() ? kNone : found->second;
  }

 private:
  std::unordered_map<Key, size_t> places_;
  size_t nan_ = kNone;
};

ValueList one_hot_encoder(NodeContext& n) {
  const std::span<const std::string> words = n.text_list("cats_strings");
  const std::span<const int64_t> numbers = n.integer_list("cats_int64s");
  const bool zeros_allowed = n.flag("zeros", true);
  std::vector<size_t> places;
  if (!words.empty()) {
    if (n.value(0).kind() != Value::Kind::strings) n.invalid("its categories are strings, but its input is not");
    const auto& place = n.kept<Places<std::string>>("categories", [&] { return Places(words); });
    for (const std::string& word : n.value(0).strings()) places.push_back(place[word]);
  } else {
    const auto& place = n.kept<Places<int64_t>>("categories", [&] { return Places(numbers); });
    for (const int64_t number : n.elements<int64_t>(0)) places.push_back(place[number]);
  }
  const size_t categories = std::max(words.size(), numbers.size());
  Floats result(places.size() * categories, 0.0f);
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < categories) {
      result[i * categories + places[i]] = 1.0f;
    } else if (!zeros_allowed) {
      n.invalid("an element is in no category");
    }
  }
  Dims dims = n.value(0).dims();
  if (dims.rank() == EP_MAX_RANK) n.invalid(fmt::format("the result would have more than {} axes", EP_MAX_RANK));
  dims.push_back(static_cast<int64_t>(categories));
  return {Tensor::copy_from_host(result.data(), dims, DType::f32, n.device())};
}

// ---- dictionaries: strings or numbers to strings or numbers ----

// One side of a dictionary.
struct Column {
  Strings words;                // if the keys are strings
  std::vector<double> numbers;  // otherwise; no model uses int64 keys beyond 2^53
  DType dtype = DType::none;    // dtype of `numbers`
  size_t size() const { return dtype == DType::none ? words.size() : numbers.size(); }
};

Column column(NodeContext& n, const std::string& name) {
  Column column;
  if (n.find(name + "_strings") != nullptr) {
    const std::span<const std::string> words = n.text_list(name + "_strings");
    column.words.assign(words.begin(), words.end());
  } else if (n.find(name + "_int64s") != nullptr) {
    const std::span<const int64_t> ints = n.integer_list(name + "_int64s");
    column.numbers.assign(ints.begin(), ints.end());
    column.dtype = DType::i64;
  } else if (n.find(name + "_floats") != nullptr) {
    const std::span<const float> values = n.float_list(name + "_floats");
    column.numbers.assign(values.begin(), values.end());
    column.dtype = DType::f32;
  } else if (n.find(name + "_tensor") != nullptr) {
    const Attribute& tensor = n.require(name + "_tensor", Attribute::Kind::tensor);
    if (tensor.text_tensor.defined()) {
      column.words = tensor.text_tensor.strings();
    } else {
      NodeContext::require_eager();
      column.numbers = cast(tensor.tensor, DType::f64).to_host<double>();
      column.dtype = tensor.tensor.dtype();
    }
  } else {
    n.invalid(fmt::format("it has no {}_strings, {}_int64s, {}_floats or {}_tensor", name, name, name, name));
  }
  return column;
}

// The value for strings and numbers that are not in the dictionary.
Column initial_value(NodeContext& n, const Column& values) {
  Column initial;
  initial.dtype = values.dtype;
  if (n.find("default_tensor") != nullptr) {
    const Attribute& tensor = n.require("default_tensor", Attribute::Kind::tensor);
    if (tensor.text_tensor.defined()) {
      initial.words = tensor.text_tensor.strings();
    } else {
      initial.numbers = {tensor.tensor.item().to_double()};
    }
  } else if (values.dtype == DType::none) {
    initial.words = {n.text("default_string", "_Unused")};
  } else if (values.dtype == DType::i64) {
    initial.numbers = {static_cast<double>(n.integer("default_int64", -1))};
  } else {
    initial.numbers = {n.number("default_float", -0.0)};
  }
  return initial;
}

// A dictionary in the form in which keys are looked up.
class Dictionary {
 public:
  // Errors: invalid, if the columns or the initial value do not fit together.
  Dictionary(NodeContext& n, const Column& keys, Column values, Column initial)
      : of_words_(keys.dtype == DType::none),
        words_(keys.words),
        numbers_(keys.numbers),
        values_(std::move(values)),
        initial_(std::move(initial)) {
    if (keys.size() != values_.size())
      n.invalid(fmt::format("it has {} keys and {} values", keys.size(), values_.size()));
    if (initial_.size() != 1) n.invalid("its default is of another type than its values");
  }

  Value look_up(NodeContext& n) const {
    std::vector<size_t> places;
    if (of_words_) {
      if (n.value(0).kind() != Value::Kind::strings) n.invalid("its keys are strings, but its input is not");
      for (const std::string& word : n.value(0).strings()) places.push_back(words_[word]);
    } else {
      for (const double number : n.elements<double>(0)) places.push_back(numbers_[number]);
    }
    const Dims& dims = n.value(0).dims();
    if (values_.dtype == DType::none) return Value::strings(dims, at(values_.words, initial_.words[0], places));
    NodeContext::require_eager();
    const std::vector<double> found = at(values_.numbers, initial_.numbers[0], places);
    return cast(Tensor::copy_from_host(found.data(), dims, DType::f64, Device::host()), values_.dtype).to(n.device());
  }

 private:
  template <class T>
  static std::vector<T> at(const std::vector<T>& values, const T& initial, const std::vector<size_t>& places) {
    std::vector<T> found;
    found.reserve(places.size());
    for (const size_t place : places) found.push_back(place < values.size() ? values[place] : initial);
    return found;
  }

  bool of_words_;
  Places<std::string> words_;
  Places<double> numbers_;
  Column values_, initial_;
};

// The dictionary of words and their numbers, in both directions.
ValueList word_or_number(NodeContext& n, std::string_view words_name, const auto& numbers_of_words) {
  const bool from_text = n.value(0).kind() == Value::Kind::strings;
  const auto make = [&] {
    const std::span<const std::string> list = n.text_list(words_name);
    Column words, numbers;
    words.words.assign(list.begin(), list.end());
    numbers.dtype = DType::i64;
    numbers.numbers = numbers_of_words(list.size());
    return from_text ? Dictionary(n, words, numbers, initial_value(n, numbers))
                     : Dictionary(n, numbers, words, initial_value(n, words));
  };
  return {n.kept<Dictionary>(from_text ? "of words" : "of numbers", make).look_up(n)};
}

ValueList label_encoder(NodeContext& n) {
  if (n.version() >= 2) {
    const auto make = [&] {
      const Column values = column(n, "values");
      return Dictionary(n, column(n, "keys"), values, initial_value(n, values));
    };
    return {n.kept<Dictionary>("keys", make).look_up(n)};
  }
  return word_or_number(n, "classes_strings", [](size_t count) {
    std::vector<double> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0.0);
    return numbers;
  });
}

ValueList category_mapper(NodeContext& n) {
  return word_or_number(n, "cats_strings", [&](size_t) {
    const std::span<const int64_t> numbers = n.integer_list("cats_int64s");
    return std::vector<double>(numbers.begin(), numbers.end());
  });
}

// ---- linear models ----

TensorList linear_regressor(NodeContext& n) {
  const Tensor x = feature_matrix(n);
  const std::span<const float> coefficients = n.float_list("coefficients"), intercepts = n.float_list("intercepts");
  const int64_t targets = n.integer("targets", 1);
  if (targets < 1 || x.dim(1) * targets != length(coefficients) ||
      (!intercepts.empty() && length(intercepts) != targets))
    n.invalid(fmt::format("{} coefficients and {} intercepts do not fit {} targets of {} features", coefficients.size(),
                          intercepts.size(), targets, x.dim(1)));
  Tensor y = matmul(x, t(kept_tensor(n, "coefficients", {targets, x.dim(1)})));
  if (!intercepts.empty()) y = add(y, kept_tensor(n, "intercepts", {targets}));
  return {post_transformed(n, y, n.text("post_transform", "NONE"))};
}

ValueList linear_classifier(NodeContext& n) {
  const Tensor x = feature_matrix(n);
  const std::span<const float> coefficients = n.float_list("coefficients"), intercepts = n.float_list("intercepts");
  const int64_t rows = x.dim(1) == 0 ? 0 : length(coefficients) / x.dim(1);
  if (rows < 1 || rows * x.dim(1) != length(coefficients) || (!intercepts.empty() && length(intercepts) != rows))
    n.invalid(fmt::format("{} coefficients and {} intercepts do not fit {} features", coefficients.size(),
                          intercepts.size(), x.dim(1)));
  Tensor scores = matmul(x, t(kept_tensor(n, "coefficients", {rows, x.dim(1)})));
  if (!intercepts.empty()) scores = add(scores, kept_tensor(n, "intercepts", {rows}));
  const ClassLabels labels(n);
  if (rows == 1 && labels.count() == 2) {
    const Tensor second = gt(scores, Scalar(0.0));
    const bool logistic = n.text("post_transform", "NONE") == "LOGISTIC";
    const Tensor both =
        logistic ? concat({sigmoid(neg(scores)), sigmoid(scores)}, 1) : concat({neg(scores), scores}, 1);
    return {labels.of(n, cast(squeeze(second, 1), DType::i64)), both};
  }
  if (labels.count() != rows) n.invalid(fmt::format("it has {} labels for {} classes", labels.count(), rows));
  return {labels.of(n, argmax(scores, 1)), post_transformed(n, scores, n.text("post_transform", "NONE"))};
}

constexpr Translator kMlRows[] = {
    {.domain = kMlDomain, .op_type = "ArrayFeatureExtractor", .since = 1, .translate = array_feature_extractor},
    {.domain = kMlDomain, .op_type = "Binarizer", .since = 1, .translate = binarizer},
    {.domain = kMlDomain, .op_type = "CategoryMapper", .since = 1, .translate_values = category_mapper},
    {.domain = kMlDomain, .op_type = "FeatureVectorizer", .since = 1, .translate = feature_vectorizer},
    {.domain = kMlDomain, .op_type = "Imputer", .since = 1, .translate = imputer},
    {.domain = kMlDomain, .op_type = "LabelEncoder", .since = 1, .translate_values = label_encoder},
    {.domain = kMlDomain, .op_type = "LinearClassifier", .since = 1, .translate_values = linear_classifier},
    {.domain = kMlDomain, .op_type = "LinearRegressor", .since = 1, .translate = linear_regressor},
    {.domain = kMlDomain, .op_type = "Normalizer", .since = 1, .translate = normalizer},
    {.domain = kMlDomain, .op_type = "OneHotEncoder", .since = 1, .translate_values = one_hot_encoder},
    {.domain = kMlDomain, .op_type = "Scaler", .since = 1, .translate = scaler},
};

}  // namespace

Tensor kept_tensor(NodeContext& n, std::string_view name, const Dims& dims) {
  const Attribute& list = *n.find(name);
  const Tensor& kept = n.kept<Tensor>(name, [&] {
    const bool whole = list.kind == Attribute::Kind::integers;
    const void* const data = whole ? static_cast<const void*>(list.ints.data()) : list.floats.data();
    return Tensor::copy_from_host(data, dims, whole ? DType::i64 : DType::f32, n.device());
  });
  return kept.dims() == dims ? kept : reshape(kept, dims);
}

Tensor feature_matrix(NodeContext& n) {
  const Tensor x = cast(n.input(0), DType::f32);
  if (x.rank() == 1) return unsqueeze(x, 0);
  if (x.rank() != 2) n.invalid(fmt::format("its input has shape {}; [rows, features] is needed", n.dims(0)));
  return x;
}

Tensor post_transformed(NodeContext& n, const Tensor& scores, const std::string& name) {
  if (name == "NONE") return scores;
  if (name == "SOFTMAX") return softmax(scores, -1);
  if (name == "LOGISTIC") return sigmoid(scores);
  if (name == "SOFTMAX_ZERO") {  // zeros stay 0 and are not part of the sum
    const Tensor zero = eq(scores, Scalar(0.0));
    const double least = -std::numeric_limits<double>::infinity();
    return where(zero, scores, softmax(where(zero, Scalar(least), scores), -1));
  }
  n.unsupported(fmt::format("its post_transform is {}; NONE, SOFTMAX, LOGISTIC and SOFTMAX_ZERO are known", name));
}

ClassLabels::ClassLabels(NodeContext& n) {
  words_ = n.text_list("classlabels_strings");
  for (const char* name : {"classlabels_int64s", "classlabels_ints"}) {
    if (count() == 0) numbers_ = n.integer_list(name);
  }
  if (count() == 0) n.invalid("it has no class labels");
}

Value ClassLabels::of(NodeContext& n, const Tensor& places) const {
  if (words_.empty()) {
    const Tensor& all = n.kept<Tensor>(
        "labels", [&] { return Tensor::copy_from_host(numbers_.data(), {count()}, DType::i64, n.device()); });
    return gather_slices(all, 0, places.to(n.device()));
  }
  if (!NodeContext::is_known(places)) throw UnknownValue(-1);
  return of(n, contiguous(places.to(Device::host())).to_host<int64_t>());
}

Value ClassLabels::of(NodeContext& n, const std::vector<int64_t>& places) const {
  const Dims dims{static_cast<int64_t>(places.size())};
  Strings words;
  std::vector<int64_t> numbers;
  for (const int64_t place : places) {
    if (place < 0 || place >= count()) n.invalid(fmt::format("a row has class {} of {}", place, count()));
    if (words_.empty()) {
      numbers.push_back(numbers_[static_cast<size_t>(place)]);
    } else {
      words.push_back(words_[static_cast<size_t>(place)]);
    }
  }
  if (!words_.empty()) return Value::strings(dims, std::move(words));
  return Tensor::copy_from_host(numbers.data(), dims, DType::i64, n.device());
}

std::span<const Translator> ml_translators() { return kMlRows; }

}  // namespace tenon::onnx
