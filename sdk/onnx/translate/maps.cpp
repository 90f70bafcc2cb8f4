// ai.onnx.ml: maps from strings or numbers to strings or numbers, on the host.
#include <algorithm>
#include <map>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/text/text.h"
#include "sdk/onnx/translate/ml.h"

namespace tenon::onnx {
namespace {

using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;

Value list_of(std::span<const int64_t> numbers) {
  return Tensor::copy_from_host(numbers.data(), {static_cast<int64_t>(numbers.size())}, DType::i64, Device::host());
}
Value list_of(Strings words) {
  const auto count = static_cast<int64_t>(words.size());
  return Value::strings({count}, std::move(words));
}

// One map for each row of the matrix. A list is a matrix with one row.
ValueList zip_map(NodeContext& n) {
  const std::span<const std::string> words = n.text_list("classlabels_strings");
  const std::span<const int64_t> numbers = n.integer_list("classlabels_int64s");
  if (words.empty() == numbers.empty()) n.invalid("it must have labels of one type, strings or integers");
  const Tensor x = n.rank(0) == 1 ? unsqueeze(n.input(0), 0) : n.input(0);
  const Value& keys = n.kept<Value>(
      "keys", [&] { return words.empty() ? list_of(numbers) : list_of(Strings(words.begin(), words.end())); });
  if (x.rank() != 2 || x.dim(1) != keys.dims()[0])
    n.invalid(fmt::format("its input of shape {} does not fit {} labels", n.dims(0), keys.dims()[0]));
  return {Value::maps(keys, x)};
}

const Value& given_map(NodeContext& n) {
  if (n.value(0).kind() != Value::Kind::map)
    n.invalid(fmt::format("its input must be a map, not {}", to_string(n.value(0))));
  return n.value(0);
}

// The numbers of a list on the host. Throws UnknownValue if the model is being recorded and they are not known.
template <class T>
std::vector<T> numbers_in(const Value& list) {
  if (!NodeContext::is_known(list.tensor())) throw UnknownValue(-1);
  return cast(contiguous(list.tensor().to(Device::host())), dtype_of<T>()).template to_host<T>();
}

// For each key of `wanted`, its position among the keys; -1 if it is missing.
template <class Key>
Ints places(const std::vector<Key>& keys, std::span<const Key> wanted) {
  std::map<Key, int64_t> place;
  for (size_t i = 0; i < keys.size(); ++i) place.emplace(keys[i], static_cast<int64_t>(i));
  Ints found;
  for (const Key& each : wanted) {
    const auto at = place.find(each);
    found.push_back(at == place.end() ? -1 : at->second);
  }
  return found;
}

// A row of the values at `at`, with zeros or empty strings for -1.
Value values_at(NodeContext& n, const Value& values, const Ints& at) {
  const Dims dims{1, static_cast<int64_t>(at.size())};
  if (values.kind() == Value::Kind::strings) {
    Strings words;
    for (const int64_t place : at) words.push_back(place < 0 ? "" : values.strings()[static_cast<size_t>(place)]);
    return Value::strings(dims, std::move(words));
  }
  if (!NodeContext::is_known(values.tensor())) throw UnknownValue(-1);
  NodeContext::require_eager();
  const Tensor host = contiguous(values.tensor().to(Device::host()));
  // Missing keys get the zero before all values.
  const Tensor padded = pad(host, {1, 0});
  Ints from;
  for (const int64_t place : at) from.push_back(place + 1);
  return reshape(gather_slices(padded, 0, list_of(from).tensor()), dims).to(n.device());
}

ValueList dict_vectorizer(NodeContext& n) {
  const Value& map = given_map(n);
  const std::span<const std::string> words = n.text_list("string_vocabulary");
  const std::span<const int64_t> numbers = n.integer_list("int64_vocabulary");
  if (words.empty() == numbers.empty()) n.invalid("it must have either string_vocabulary or int64_vocabulary");
  const bool of_words = map.keys().kind() == Value::Kind::strings;
  if (of_words == words.empty()) n.invalid("the keys of its map are not of the type of its vocabulary");
  return {values_at(n, map.values(),
                    of_words ? places(map.keys().strings(), words) : places(numbers_in<int64_t>(map.keys()), numbers))};
}

// The values of a CastMap, converted to the type of its attribute cast_to.
Value cast_values(NodeContext& n, const Value& values) {
  const std::string to = n.text("cast_to", "TO_FLOAT");
  const bool of_words = values.kind() == Value::Kind::strings;
  if (to == "TO_STRING") {
    if (of_words) return values;
    Strings words;
    for (const double number : numbers_in<double>(values)) words.push_back(text::to_text(number, true));
    return list_of(std::move(words));
  }
  if (to != "TO_FLOAT" && to != "TO_INT64")
    n.invalid(fmt::format("its cast_to is '{}'; TO_FLOAT and TO_INT64 are translated", to));
  const DType dtype = to == "TO_FLOAT" ? DType::f32 : DType::i64;
  NodeContext::require_eager();
  std::vector<double> numbers;
  if (!of_words) numbers = numbers_in<double>(values);
  for (const std::string& word : of_words ? values.strings() : Strings()) {
    const std::optional<double> number = text::to_number(word);
    if (!number) n.invalid(fmt::format("'{}' is not a number", word));
    numbers.push_back(*number);
  }
  const auto count = static_cast<int64_t>(numbers.size());
  return cast(Tensor::copy_from_host(numbers.data(), {count}, DType::f64, Device::host()), dtype);
}

constexpr int64_t kMostPlaces = int64_t{1} << 26;

// The values in the order of their keys. In the form SPARSE, the keys are positions in a row of max_map elements.
ValueList cast_map(NodeContext& n) {
  const Value& map = given_map(n);
  if (map.keys().kind() == Value::Kind::strings) n.invalid("the keys of its map must be integers");
  Ints keys = numbers_in<int64_t>(map.keys()), order = keys;
  std::sort(order.begin(), order.end());
  if (n.text("map_form", "DENSE") == "SPARSE") {
    const int64_t length = n.integer("max_map", 1);
    if (length < 1 || length > kMostPlaces) n.invalid(fmt::format("its max_map is {}", length));
    if (!order.empty() && (order.front() < 0 || order.back() >= length))
      n.invalid(
          fmt::format("its keys {} to {} are not all positions in a row of {}", order.front(), order.back(), length));
    order.clear();
    for (int64_t i = 0; i < length; ++i) order.push_back(i);
  }
  return {values_at(n, cast_values(n, map.values()), places(keys, std::span<const int64_t>(order)))};
}

constexpr Translator kMapsRows[] = {
    {.domain = kMlDomain, .op_type = "CastMap", .since = 1, .translate_values = cast_map},
    {.domain = kMlDomain, .op_type = "DictVectorizer", .since = 1, .translate_values = dict_vectorizer},
    {.domain = kMlDomain, .op_type = "ZipMap", .since = 1, .translate_values = zip_map},
};

}  // namespace

std::span<const Translator> map_translators() { return kMapsRows; }

}  // namespace tenon::onnx
