// Runs dynamic calls: reads one JSON object per line and answers each with one line. numpy_test.py drives it.
//
//   {"op": "softmax", "args": [VALUE...], "kwargs": {NAME: VALUE...}}
//   -> {"outputs": [{"dtype", "dims", "data"}...]} or {"error": TEXT}
//
// VALUE is a JSON number, bool, null, text or list of ints; {"tensor": {"dtype", "dims", "data"}} with row-major bytes
// in hexadecimal; {"tensors": [VALUE...]}; {"dtype": NAME}; {"call": CALL}, the first output of a call, for views; or
// {"ref": N}, the tensor that {"keep": N, "of": VALUE} last kept. --list prints every op and its documentation.
// --decompose computes every op that has a decomposition by its decomposition. --global, on one rank of a launch,
// spreads every tensor over the ranks, each in another way, and answers with the whole results.
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "core/global/global.h"
#include "core/ops/call.h"
#include "core/ops/conversions.h"
#include "core/ops/decompose/decompose.h"
#include "core/ops/op_call.h"
#include "tests/unit/ops/watching_interpreter.h"

namespace {

using nlohmann::json;
using tenon::Keyword;
using tenon::Tensor;
using tenon::TensorList;
using tenon::Value;

std::vector<uint8_t> from_hex(const std::string& text) {
  std::vector<uint8_t> bytes(text.size() / 2 + 1);
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes[i / 2] = static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string to_hex(const std::vector<uint8_t>& bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

bool spreads = false;

// `tensor`, which is the same on every rank, as a global tensor: whole, split along some axis, or as a partial sum.
Tensor spread(const Tensor& tensor) {
  using tenon::global::Sbp, tenon::global::to_global;
  static std::mt19937 choices(20261126);
  const auto choice = static_cast<int64_t>(choices() % 8);
  Sbp sbp = choice < tensor.rank() ? Sbp::split(choice) : Sbp::broadcast();
  if (choice == 7 && tensor.dtype() != tenon::DType::boolean) sbp = Sbp::partial();
  const Tensor whole = to_global(tensor, tenon::global::Placement::all("cpu"), {Sbp::broadcast()});
  return to_global(whole, {sbp});
}

Tensor make_tensor(const json& j) {
  const std::vector<int64_t> dims = j["dims"];
  const std::vector<uint8_t> bytes = from_hex(j["data"]);
  const std::string dtype = j["dtype"];
  const Tensor made =
      Tensor::copy_from_host(bytes.data(), tenon::Dims(std::span<const int64_t>(dims)), *tenon::dtype_from_name(dtype));
  return spreads ? spread(made) : made;
}

json describe(const Tensor& tensor) {
  std::vector<uint8_t> bytes(static_cast<size_t>(tensor.bytes()));
  tensor.copy_to_host(bytes.data());
  const std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  return {{"dtype", std::string(tenon::dtype_name(tensor.dtype()))}, {"dims", dims}, {"data", to_hex(bytes)}};
}

std::map<int, Tensor> kept;
tenon::WatchingInterpreter* watching = nullptr;

TensorList run(const json& call);

Value make_value(const json& j) {
  if (j.is_null()) return Value();
  if (j.is_boolean()) return Value(j.get<bool>());
  if (j.is_number_integer()) return Value(j.get<int64_t>());
  if (j.is_number()) return Value(j.get<double>());
  if (j.is_string()) return Value(j.get<std::string>());
  if (j.is_array()) return Value(j.get<Value::Ints>());
  if (j.contains("tensor")) return Value(make_tensor(j["tensor"]));
  if (j.contains("dtype")) return Value(*tenon::dtype_from_name(j["dtype"].get<std::string>()));
  if (j.contains("device")) {
    return Value(j["device"] == "host" ? tenon::Device::host() : tenon::Device(j["device"].get<std::string>()));
  }
  if (j.contains("ref")) return Value(kept.at(j["ref"]));
  if (j.contains("call")) return Value(run(j["call"]).at(0));
  if (j.contains("keep")) return Value(kept[j["keep"]] = *make_value(j["of"]).tensor());
  TensorList list;
  for (const json& each : j["tensors"]) list.push_back(*make_value(each).tensor());
  return Value(std::move(list));
}

TensorList tensors_of(const std::vector<Value>& args, const std::vector<Keyword>& kwargs) {
  TensorList tensors;
  const auto add = [&](const Value& value) {
    if (value.tensor() != nullptr) tensors.push_back(*value.tensor());
    if (const auto* list = value.get<TensorList>()) tensors.insert(tensors.end(), list->begin(), list->end());
  };
  for (const Value& value : args) add(value);
  for (const Keyword& keyword : kwargs) add(keyword.value);
  return tensors;
}

TensorList run(const json& call) {
  std::vector<Value> args;
  for (const json& each : call["args"]) args.push_back(make_value(each));
  std::vector<std::string> names;
  std::vector<Keyword> kwargs;
  if (call.contains("kwargs")) {
    names.reserve(call["kwargs"].size());
    for (const auto& [name, value] : call["kwargs"].items()) {
      names.push_back(name);
      kwargs.push_back({names.back(), make_value(value)});
    }
  }
  const std::string op = call["op"];
  if (watching == nullptr) return tenon::call(op, args, kwargs);
  watching->begin(tensors_of(args, kwargs));
  TensorList results = tenon::call(op, args, kwargs);
  const std::string passed_by = watching->passed_by(op, results);
  if (!passed_by.empty()) throw tenon::Error(tenon::Code::internal, passed_by);
  return results;
}

// Decomposes every op that has a decomposition. The resulting ops run unchanged.
class DecomposingInterpreter final : public tenon::Interpreter {
 public:
  void apply(const tenon::OpCall& call) override {
    const tenon::InterpreterScope scope(tenon::eager_interpreter());
    if (!tenon::ops::has_decomposition(call)) return tenon::eager_interpreter().apply(call);
    try {
      tenon::ops::decompose(call);
    } catch (const tenon::Error& error) {
      if (error.code() != tenon::Code::unsupported) throw;
      tenon::eager_interpreter().apply(call);
    }
  }
  std::string name() const override { return "the decomposing interpreter"; }
  bool host_value_known(const Tensor&) override { return true; }
};

json answer(const std::string& line) {
  json result;
  try {
    result["outputs"] = json::array();
    for (const Tensor& output : run(json::parse(line))) result["outputs"].push_back(describe(output));
  } catch (const tenon::Error& error) {
    return {{"error", error.what()}};
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--list") {
    for (const tenon::DynamicOp& op : tenon::list_ops())
      std::cout << op.name << "\t" << op.doc.substr(0, op.doc.find('\n')) << "\n";
    return 0;
  }
  if (argc > 1 && std::string(argv[1]) == "--conversions") {
    for (const tenon::Conversion& row : tenon::conversions()) std::cout << row.example << "\n";
    return 0;
  }
  const std::string option = argc > 1 ? argv[1] : "";
  spreads = option == "--global";
  DecomposingInterpreter decomposing;
  tenon::WatchingInterpreter watch(option == "--keep");
  if (option == "--watch" || option == "--keep") watching = &watch;
  tenon::Interpreter& chosen = option == "--decompose" ? static_cast<tenon::Interpreter&>(decomposing)
                               : watching != nullptr   ? watch
                                                       : tenon::current_interpreter();
  const tenon::InterpreterScope scope(chosen);
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(line).dump() << std::endl;
  return 0;
}
