#include "benchmarks/peers/tenon_op.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "benchmarks/report/keep.h"
#include "primitives/text/format.h"

namespace tenon::bench {
namespace {

using nlohmann::json;

Tensor tensor_of(const Input& input) {
  return Tensor::copy_from_host(input.data, Dims(std::span<const int64_t>(input.dims)), *dtype_from_name(input.dtype),
                                Device("cpu"));
}

}  // namespace

TenonOp::TenonOp(const json& spec, const std::vector<Input>& inputs) : op_(&find_op(spec["op"].get<std::string>())) {
  for (const Input& input : inputs) tensors_.push_back(tensor_of(input));
  for (const json& each : spec["args"]) arguments_.push_back(value_of(each));
}

TensorList TenonOp::call() const { return tenon::call(*op_, arguments_); }

void TenonOp::run(int64_t n) const {
  Results last;  // lives until the next call, as in a loop over a variable
  for (int64_t i = 0; i < n; ++i) last = call_for_results(*op_, arguments_);
  keep(last);
}

Value TenonOp::value_of(const json& j) const {
  if (j.is_null()) return {};
  if (j.is_boolean()) return j.get<bool>();
  if (j.is_number_integer()) return j.get<int64_t>();
  if (j.is_number()) return j.get<double>();
  if (j.is_string()) return j.get<std::string>();
  if (j.is_array()) return j.get<Value::Ints>();
  if (j.contains("t")) return tensors_.at(j["t"]);
  if (j.contains("dtype")) return *dtype_from_name(j["dtype"].get<std::string>());
  TensorList list;
  for (const json& number : j["ts"]) list.push_back(tensors_.at(number));
  return list;
}

// Empty if equal within `tolerance` of the greatest magnitude; else describes the difference.
std::string difference(const std::vector<Values>& want, const TensorList& got, double tolerance) {
  if (want.size() != got.size()) return fmt::format("{} results, not {}", got.size(), want.size());
  for (size_t r = 0; r < want.size(); ++r) {
    const std::vector<int64_t> dims(got[r].dims().begin(), got[r].dims().end());
    if (dims != want[r].dims) return fmt::format("result {} has {} axes, not {}", r, dims.size(), want[r].dims.size());
    std::vector<char> bytes(static_cast<size_t>(got[r].bytes()));
    got[r].copy_to_host(bytes.data());
    const std::vector<double> values =
        TorchOp::widen(bytes.data(), got[r].elements(), std::string(dtype_name(got[r].dtype())));
    double most = 0;
    for (const double value : want[r].values) most = std::isfinite(value) ? std::max(most, std::abs(value)) : most;
    for (size_t i = 0; i < values.size(); ++i) {
      const double a = values[i], b = want[r].values[i];
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      if (!(std::abs(a - b) <= tolerance * (std::abs(b) + 0.01 * most))) {
        return fmt::format("element {} of result {} is {}, not {}", i, r, a, b);
      }
    }
  }
  return "";
}

}  // namespace tenon::bench
