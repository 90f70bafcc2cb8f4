// ai.onnx.ml: features and linear models. Trees are in trees.cpp, support vector machines in svm.cpp.
#include "sdk/onnx/translate/ml.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "primitives/text/format.h"
#include "sdk/onnx/tensors/tensor_data.h"

namespace tenon::onnx {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;

Strings texts(NodeContext& n, std::string_view name) {
  return n.find(name) == nullptr ? Strings() : n.require(name, Attribute::Kind::texts).strings;
}
int64_t length(const Floats& values) { return static_cast<int64_t>(values.size()); }

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
  Floats values = numbers_of(n, "imputed_value_floats");
  const Ints ints = n.integers("imputed_value_int64s").value_or(Ints());
  const int64_t count = whole ? static_cast<int64_t>(ints.size()) : length(values);
  if (x.rank() == 0 || count == 0 || (count != 1 && count != x.dim(-1)))
    n.invalid(fmt::format("{} imputed values do not fit shape {}", count, x.dims()));
  const Tensor imputed =
      whole ? Tensor::copy_from_host(ints.data(), {count}, DType::i64, n.device()) : on_device(n, values, {count});
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
  const Floats offset = numbers_of(n, "offset"), scale = numbers_of(n, "scale");
  for (const Floats* values : {&offset, &scale}) {
    if (x.rank() == 0 || (values->size() > 1 && length(*values) != x.dim(-1)))
      n.invalid(fmt::format("{} numbers do not fit shape {}", values->size(), x.dims()));
  }
  const Tensor moved = offset.empty() ? x : sub(x, on_device(n, offset, {length(offset)}));
  return {scale.empty() ? moved : mul(moved, on_device(n, scale, {length(scale)}))};
}

ValueList one_hot_encoder(NodeContext& n) {
  const Strings words = texts(n, "cats_strings");
  const Ints numbers = n.integers("cats_int64s").value_or(Ints());
  const bool zeros_allowed = n.flag("zeros", true);
  Ints places;
  if (!words.empty()) {
    if (n.value(0).kind() != Value::Kind::strings) n.invalid("its categories are strings, but its input is not");
    for (const std::string& word : n.value(0).strings())
      places.push_back(std::find(words.begin(), words.end(), word) - words.begin());
  } else {
    for (int64_t number : n.elements<int64_t>(0))
      places.push_back(std::find(numbers.begin(), numbers.end(), number) - numbers.begin());
  }
  const size_t categories = std::max(words.size(), numbers.size());
  Floats result(places.size() * categories, 0.0f);
  for (size_t i = 0; i < places.size(); ++i) {
    const auto place = static_cast<size_t>(places[i]);
    if (place == categories && !zeros_allowed) n.invalid("an element is in no category");
    if (place < categories) result[i * categories + place] = 1.0f;
  }
  Dims dims = n.value(0).dims();
  if (dims.rank() == EP_MAX_RANK) n.invalid(fmt::format("the result would have more than {} axes", EP_MAX_RANK));
  dims.push_back(static_cast<int64_t>(categories));
  return {on_device(n, result, dims)};
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
    column.words = texts(n, name + "_strings");
  } else if (const std::optional<Ints> ints = n.integers(name + "_int64s")) {
    column.numbers.assign(ints->begin(), ints->end());
    column.dtype = DType::i64;
  } else if (n.find(name + "_floats") != nullptr) {
    const Floats values = numbers_of(n, name + "_floats");
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

Value look_up(NodeContext& n, const Column& keys, const Column& values, const Column& initial) {
  if (keys.size() != values.size()) n.invalid(fmt::format("it has {} keys and {} values", keys.size(), values.size()));
  if (initial.size() != 1) n.invalid("its default is of another type than its values");
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> places;
  if (keys.dtype == DType::none) {
    if (n.value(0).kind() != Value::Kind::strings) n.invalid("its keys are strings, but its input is not");
    std::map<std::string_view, size_t> place;
    for (size_t i = 0; i < keys.words.size(); ++i) place.emplace(keys.words[i], i);
    for (const std::string& word : n.value(0).strings()) {
      const auto found = place.find(word);
      places.push_back(found == place.end() ? kNone : found->second);
    }
  } else {
    std::map<double, size_t> place;
    size_t of_nan = kNone;
    for (size_t i = 0; i < keys.numbers.size(); ++i) {
      if (std::isnan(keys.numbers[i])) of_nan = std::min(of_nan, i);
      if (!std::isnan(keys.numbers[i])) place.emplace(keys.numbers[i], i);
    }
    for (double number : n.elements<double>(0)) {
      const auto found = std::isnan(number) ? place.end() : place.find(number);
      places.push_back(found != place.end() ? found->second : std::isnan(number) ? of_nan : kNone);
    }
  }
  const Dims& dims = n.value(0).dims();
  Strings words;
  std::vector<double> numbers;
  for (size_t place : places) {
    if (values.dtype == DType::none) {
      words.push_back(place == kNone ? initial.words[0] : values.words[place]);
    } else {
      numbers.push_back(place == kNone ? initial.numbers[0] : values.numbers[place]);
    }
  }
  if (values.dtype == DType::none) return Value::strings(dims, std::move(words));
  NodeContext::require_eager();
  return cast(Tensor::copy_from_host(numbers.data(), dims, DType::f64, Device::host()), values.dtype).to(n.device());
}

ValueList label_encoder(NodeContext& n) {
  if (n.version() >= 2) {
    const Column values = column(n, "values");
    return {look_up(n, column(n, "keys"), values, initial_value(n, values))};
  }
  Column words, numbers;
  words.words = texts(n, "classes_strings");
  numbers.dtype = DType::i64;
  for (size_t i = 0; i < words.words.size(); ++i) numbers.numbers.push_back(static_cast<double>(i));
  const bool from_text = n.value(0).kind() == Value::Kind::strings;
  return {from_text ? look_up(n, words, numbers, initial_value(n, numbers))
                    : look_up(n, numbers, words, initial_value(n, words))};
}

ValueList category_mapper(NodeContext& n) {
  Column words, numbers;
  words.words = texts(n, "cats_strings");
  numbers.dtype = DType::i64;
  for (int64_t number : n.integers("cats_int64s").value_or(Ints()))
    numbers.numbers.push_back(static_cast<double>(number));
  const bool from_text = n.value(0).kind() == Value::Kind::strings;
  return {from_text ? look_up(n, words, numbers, initial_value(n, numbers))
                    : look_up(n, numbers, words, initial_value(n, words))};
}

// ---- linear models ----

TensorList linear_regressor(NodeContext& n) {
  const Tensor x = feature_matrix(n);
  const Floats coefficients = numbers_of(n, "coefficients"), intercepts = numbers_of(n, "intercepts");
  const int64_t targets = n.integer("targets", 1);
  if (targets < 1 || x.dim(1) * targets != length(coefficients) ||
      (!intercepts.empty() && length(intercepts) != targets))
    n.invalid(fmt::format("{} coefficients and {} intercepts do not fit {} targets of {} features", coefficients.size(),
                          intercepts.size(), targets, x.dim(1)));
  Tensor y = matmul(x, t(on_device(n, coefficients, {targets, x.dim(1)})));
  if (!intercepts.empty()) y = add(y, on_device(n, intercepts, {targets}));
  return {post_transformed(n, y, n.text("post_transform", "NONE"))};
}

ValueList linear_classifier(NodeContext& n) {
  const Tensor x = feature_matrix(n);
  const Floats coefficients = numbers_of(n, "coefficients"), intercepts = numbers_of(n, "intercepts");
  const int64_t rows = x.dim(1) == 0 ? 0 : length(coefficients) / x.dim(1);
  if (rows < 1 || rows * x.dim(1) != length(coefficients) || (!intercepts.empty() && length(intercepts) != rows))
    n.invalid(fmt::format("{} coefficients and {} intercepts do not fit {} features", coefficients.size(),
                          intercepts.size(), x.dim(1)));
  Tensor scores = matmul(x, t(on_device(n, coefficients, {rows, x.dim(1)})));
  if (!intercepts.empty()) scores = add(scores, on_device(n, intercepts, {rows}));
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

std::vector<float> numbers_of(NodeContext& n, std::string_view name) {
  return n.find(name) == nullptr ? Floats() : n.require(name, Attribute::Kind::numbers).floats;
}

Tensor on_device(NodeContext& n, const std::vector<float>& values, const Dims& dims) {
  return Tensor::copy_from_host(values.data(), dims, DType::f32, n.device());
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
  for (const char* name : {"classlabels_strings", "classlabels_int64s", "classlabels_ints"}) {
    const Attribute* found = n.find(name);
    if (found == nullptr) continue;
    words_ = found->strings;
    if (words_.empty()) numbers_ = found->ints;
    if (count() != 0) return;
  }
  n.invalid("it has no class labels");
}

Value ClassLabels::of(NodeContext& n, const Tensor& places) const {
  if (words_.empty()) {
    const auto count = static_cast<int64_t>(numbers_.size());
    return gather_slices(Tensor::copy_from_host(numbers_.data(), {count}, DType::i64, n.device()), 0, places);
  }
  if (!NodeContext::is_known(places)) throw UnknownValue(-1);
  Strings labels;
  for (int64_t place : contiguous(places.to(Device::host())).to_host<int64_t>())
    labels.push_back(words_.at(static_cast<size_t>(place)));
  return Value::strings(places.dims(), std::move(labels));
}

std::span<const Translator> ml_translators() { return kMlRows; }

}  // namespace tenon::onnx
