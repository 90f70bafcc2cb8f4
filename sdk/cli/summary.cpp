#include "sdk/cli/summary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "primitives/text/visible.h"
#include "sdk/report/json_text.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

constexpr int64_t kFew = 8;
constexpr int64_t kBlock = int64_t{1} << 20;  // elements converted at a time

template <class T>
json json_value(T value) {
  if constexpr (std::is_floating_point_v<T>) return report::json_number(value);
  return value;
}

template <class T>
struct Range {
  T least = 0, greatest = 0;
  double sum = 0;
  int64_t counted = 0, nan = 0;
  std::vector<T> few;

  void add(T value) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(value)) {
        ++nan;
        return;
      }
      sum += value;
    }
    least = counted == 0 ? value : std::min(least, value);
    greatest = counted == 0 ? value : std::max(greatest, value);
    ++counted;
  }
};

// Calls visit with the elements of `tensor` as T, one block at a time.
template <class T>
Range<T> range_of(const Tensor& tensor) {
  Range<T> range;
  const int64_t count = tensor.elements();
  const Tensor flat = reshape(contiguous(tensor.to(Device::host())), {count});
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const Tensor block = slice(flat, 0, begin, std::min(begin + kBlock, count));
    const std::vector<T> values = cast(block, dtype_of<T>()).template to_host<T>();
    for (T value : values) range.add(value);
    if (count <= kFew) range.few = values;
  }
  return range;
}

template <class T>
json summary_of(const Tensor& tensor) {
  const Range<T> range = range_of<T>(tensor);
  json summary = {{"least", json()}, {"greatest", json()}};
  if (range.counted > 0) {
    summary["least"] = json_value(range.least);
    summary["greatest"] = json_value(range.greatest);
  }
  if constexpr (std::is_floating_point_v<T>) {
    summary["mean"] = range.counted > 0 ? report::json_number(range.sum / static_cast<double>(range.counted)) : json();
    summary["nan"] = range.nan;
  }
  if (tensor.elements() > kFew) return summary;
  summary["values"] = json::array();
  for (T value : range.few) summary["values"].push_back(json_value(value));
  return summary;
}

json summary_of_strings(const std::vector<std::string>& strings) {
  json values = json::array();
  for (size_t i = 0; i < std::min(strings.size(), static_cast<size_t>(kFew)); ++i) values.push_back(strings[i]);
  return {{"values", values}};
}

// "'a', 'b' and 3 more"
std::string strings_text(const std::vector<std::string>& strings) {
  std::string text;
  const size_t shown = std::min(strings.size(), static_cast<size_t>(kFew));
  for (size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + tenon::quoted(strings[i]);
  if (shown < strings.size()) text += fmt::format(" and {} more", strings.size() - shown);
  return strings.empty() ? "no elements" : text;
}

std::string text_of(const json& number) {
  if (number.is_string()) return number.get<std::string>();
  if (!number.is_number_float()) return number.dump();
  return fmt::format("{:.6g}", number.get<double>());
}

}  // namespace

json summarize(const Tensor& tensor) {
  if (is_floating(tensor.dtype())) return summary_of<double>(tensor);
  if (tensor.dtype() == DType::u64) return summary_of<uint64_t>(tensor);
  json summary = summary_of<int64_t>(tensor);
  if (tensor.dtype() == DType::boolean) {
    const auto as_bool = [](json* number) { *number = number->is_null() ? json() : json(*number != 0); };
    as_bool(&summary["least"]);
    as_bool(&summary["greatest"]);
    if (summary.contains("values")) {
      for (json& value : summary["values"]) as_bool(&value);
    }
  }
  return summary;
}

json summarize(const onnx::Value& value) {
  using Kind = onnx::Value::Kind;
  if (value.is_tensor()) return summarize(value.tensor());
  if (value.kind() == Kind::strings) return summary_of_strings(value.strings());
  if (value.kind() == Kind::map) return {{"keys", summarize(value.keys())}, {"values", summarize(value.values())}};
  json summary = json::object();
  if (value.kind() != Kind::sequence) return summary;
  summary["elements"] = json::array();
  const size_t shown = std::min(value.elements().size(), static_cast<size_t>(kFew));
  for (size_t i = 0; i < shown; ++i) summary["elements"].push_back(summarize(value.elements()[i]));
  return summary;
}

std::string summary_text(const onnx::Value& value) {
  using Kind = onnx::Value::Kind;
  if (value.is_tensor()) return summary_text(summarize(value.tensor()), value.tensor().elements());
  if (value.kind() == Kind::strings) return strings_text(value.strings());
  if (value.kind() == Kind::map)
    return fmt::format("keys {}; {}", summary_text(value.keys()), summary_text(value.values()));
  if (value.kind() != Kind::sequence) return to_string(value);
  std::string text;
  const size_t shown = std::min(value.elements().size(), static_cast<size_t>(kFew));
  for (size_t i = 0; i < shown; ++i) {
    const onnx::Value& element = value.elements()[i];
    text += fmt::format("{}[{}] {}: {}", i == 0 ? "" : "\n    ", i, to_string(element), summary_text(element));
  }
  return shown == 0 ? "no elements" : text;
}

std::string summary_text(const json& summary, int64_t elements) {
  if (elements == 0) return "no elements";
  std::string text;
  if (summary.contains("values")) {
    for (const json& value : summary["values"]) text += (text.empty() ? "" : ", ") + text_of(value);
    return (elements == 1 ? "value " : "values ") + text;
  }
  const bool floats = summary.contains("nan");
  if (summary["least"].is_null()) return fmt::format("all {} NaN", elements);
  text = fmt::format("least {}, greatest {}", text_of(summary["least"]), text_of(summary["greatest"]));
  if (!floats) return text;
  return fmt::format("{}, mean {}, {} of {} NaN", text, text_of(summary["mean"]), summary["nan"].dump(), elements);
}

}  // namespace tenon::cli
