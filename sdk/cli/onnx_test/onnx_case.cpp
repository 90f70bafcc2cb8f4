#include "sdk/cli/onnx_test/onnx_case.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "primitives/text/format.h"
#include "sdk/cli/onnx_test/compare.h"
#include "sdk/cli/tensor_file.h"
#include "sdk/onnx/onnx.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

// Maximum depth of case folders below the given folder.
constexpr int kDepth = 4;

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

void collect(const fs::path& folder, int depth, std::vector<std::string>* cases) {
  if (fs::is_regular_file(folder / "model.onnx")) {
    cases->push_back(folder.string());
    return;
  }
  if (depth == 0) return;
  std::vector<fs::path> below;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) below.push_back(entry.path());
  }
  std::sort(below.begin(), below.end());
  for (const fs::path& path : below) collect(path, depth - 1, cases);
}

std::vector<std::string> data_sets(const std::string& folder) {
  std::vector<std::string> sets;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && entry.path().filename().string().rfind("test_data_set_", 0) == 0)
      sets.push_back(entry.path().string());
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

std::string numbered(const std::string& set, const char* kind, size_t i) {
  return fmt::format("{}/{}_{}.pb", set, kind, i);
}

// Reads a value of a data set. ONNX's own cases store bfloat16 as uint16, because NumPy has no such type.
onnx::Value read_data(const std::string& path, const onnx::ValueInfo& info, Device device) {
  const std::string bytes = read_bytes(path);
  const onnx::Value value = onnx::value_from_bytes(bytes, info, device);
  if (info.dtype != DType::bf16 || !value.is_tensor() || value.tensor().dtype() != DType::u16) return value;
  const Tensor& tensor = value.tensor();
  std::vector<uint16_t> bits = tensor.to_host<uint16_t>();
  return Tensor::copy_from_host(bits.data(), tensor.dims(), DType::bf16, device);
}

// Returns "it has 1 outputs, but test_data_set_0 holds 2", or empty. A surplus file is an error, because no output
// would be compared with it.
std::string wrong_count(const std::string& set, const char* kind, size_t of_model) {
  const std::string prefix = fmt::format("{}_", kind);
  size_t held = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(set))
    held += entry.path().filename().string().rfind(prefix, 0) == 0 ? 1 : 0;
  if (held == of_model) return {};
  return fmt::format("it has {} {}s, but {} holds {}", of_model, kind, fs::path(set).filename().string(), held);
}

// True if a node of the model draws random numbers. Does not count nodes whose seed is in the file.
bool draws(const onnx::Model& model, const onnx::Values& inputs) {
  onnx::Inputs tensors;
  for (const auto& [name, value] : inputs) {
    if (!value.is_tensor()) return false;
    tensors[name] = value.tensor();
  }
  const auto is_draw = [](const onnx::NodeExecution& execution) { return execution.op.starts_with("philox"); };
  onnx::Walk walk(model, tensors);
  for (onnx::NodeResult node; walk.next(&node);) {
    if (std::any_of(node.executions.begin(), node.executions.end(), is_draw)) return true;
  }
  return false;
}

// Returns the first difference between the outputs of the model and those of the data set, or empty. If outputs of
// random numbers differ, compares them as samples and notes this in `result`.
std::string run_data_set(const onnx::Model& model, const std::string& set, const Tolerance& tolerance,
                         CaseResult* result) {
  for (const auto& [kind, count] :
       {std::pair("input", model.inputs().size()), std::pair("output", model.outputs().size())}) {
    if (std::string wrong = wrong_count(set, kind, count); !wrong.empty()) return wrong;
  }
  onnx::Values inputs;
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    const onnx::ValueInfo& info = model.inputs()[i];
    inputs[info.name] = read_data(numbered(set, "input", i), info, model.device());
  }
  std::vector<onnx::NodeExecution> executions;
  const onnx::ValueList outputs = model.run_values(inputs, &executions);
  for (const onnx::NodeExecution& one : executions) {
    for (size_t rung = 0; rung < result->launches.size(); ++rung)
      result->launches[rung] += one.rung == kRungs[rung] ? 1 : 0;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const onnx::Value expected = read_data(numbered(set, "output", i), model.outputs()[i], Device::host());
    std::string text = difference(outputs[i], expected, tolerance);
    if (!text.empty() && outputs[i].is_tensor() && expected.is_tensor() && draws(model, inputs)) {
      text = difference_of_draws(outputs[i].tensor(), expected.tensor(), tolerance);
      if (text.empty())
        result->sentence = "its random numbers have the distribution of the expected ones, but other values";
    }
    if (!text.empty())
      return fmt::format("output '{}' of {}: {}", model.outputs()[i].name, fs::path(set).filename().string(), text);
  }
  return {};
}

CaseResult judge(const std::string& folder, const std::string& device, const Tolerance& tolerance) {
  onnx::Options options;
  options.device = device.empty() ? Device::current() : Device(device);
  options.shapes = onnx::Shapes::any;  // some of ONNX's own cases declare shapes that differ from their data
  std::optional<onnx::Model> model;
  try {
    model.emplace(onnx::load(fmt::format("{}/model.onnx", folder), options));
  } catch (const Error& error) {
    const Verdict verdict = error.code() == Code::unsupported ? Verdict::skipped : Verdict::failed;
    return {verdict, one_line(error.what()), 0, {}};
  }
  const std::vector<std::string> sets = data_sets(folder);
  if (sets.empty()) return {Verdict::failed, "it has no test_data_set_* to compare with", 0, {}};
  CaseResult result = {Verdict::passed, "", 0, {}};
  for (const std::string& set : sets) {
    const std::string text = run_data_set(*model, set, tolerance, &result);
    if (!text.empty()) return {Verdict::failed, one_line(text), 0, result.launches};
  }
  return result;
}

}  // namespace

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed: return "passed";
    case Verdict::failed: return "failed";
    case Verdict::skipped: return "skipped";
  }
  return "";
}

std::vector<std::string> find_cases(const std::vector<std::string>& folders) {
  std::vector<std::string> cases;
  for (const std::string& folder : folders) {
    if (!fs::is_directory(folder)) throw Error(Code::not_found, fmt::format("'{}' is not a folder.", folder));
    const size_t before = cases.size();
    collect(fs::path(folder), kDepth, &cases);
    if (cases.size() == before) {
      throw Error(Code::not_found,
                  fmt::format("'{}' holds no test case: no model.onnx in it or in a folder below.", folder));
    }
  }
  return cases;
}

Tolerance case_tolerance(const std::string& folder, const Tolerance& initial) {
  const std::string path = fmt::format("{}/data.json", folder);
  if (!fs::exists(path)) return initial;
  Tolerance tolerance = initial;
  const nlohmann::json data = nlohmann::json::parse(read_bytes(path), nullptr, false);
  if (!data.is_object()) throw Error(Code::invalid_argument, fmt::format("'{}' is not a JSON object.", path));
  tolerance.rtol = data.value("rtol", initial.rtol);
  tolerance.atol = data.value("atol", initial.atol);
  return tolerance;
}

CaseResult run_case(const std::string& folder, const std::string& device, const Tolerance& tolerance) {
  const auto begin = std::chrono::steady_clock::now();
  CaseResult result;
  try {
    result = judge(folder, device, tolerance);
  } catch (const std::exception& error) {
    result = {Verdict::failed, one_line(error.what()), 0, {}};
  }
  result.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace tenon::cli
