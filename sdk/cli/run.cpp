#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sdk/cli/commands.h"
#include "sdk/cli/model_inputs.h"
#include "sdk/cli/table.h"
#include "sdk/cli/tensor_file.h"
#include "sdk/onnx/onnx.h"

namespace tenon::cli {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

// A file name of an output: letters that a path could misread become '_'.
std::string file_name(const std::string& name, const std::string& format) {
  std::string safe = name.empty() ? "output" : name;
  for (char& c : safe) {
    if (!isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '_';
  }
  if (safe.front() == '.') safe.front() = '_';
  return safe + "." + format;
}

json placement_json(const std::vector<onnx::Placement>& placement) {
  json list = json::array();
  for (const onnx::Placement& p : placement) {
    list.push_back({{"node", p.node},
                    {"name", p.node_name},
                    {"op_type", p.op_type},
                    {"op", p.op},
                    {"device", p.device},
                    {"provider", p.provider},
                    {"implementation", p.implementation},
                    {"rung", p.rung},
                    {"reason", p.reason},
                    {"bytes_copied", p.bytes_copied}});
  }
  return list;
}

void print_placement(const std::vector<onnx::Placement>& placement) {
  std::vector<std::vector<std::string>> rows = {
      {"node", "name", "operator", "op", "device", "implementation", "rung", "bytes copied", "reason"}};
  for (const onnx::Placement& p : placement) {
    rows.push_back({p.node < 0 ? "-" : std::to_string(p.node), p.node_name, p.op_type, p.op, p.device, p.implementation,
                    p.rung, std::to_string(p.bytes_copied), p.reason});
  }
  print_table(rows);
}

struct Times {
  double load = 0, first = 0;
  std::vector<double> runs;

  double median() const {
    std::vector<double> sorted = runs;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[sorted.size() / 2];
  }
  double least() const { return runs.empty() ? 0 : *std::min_element(runs.begin(), runs.end()); }
};

// Runs and waits for the device: an asynchronous run is over when its results are.
TensorList timed_run(const onnx::Model& model, const onnx::Inputs& inputs, std::vector<onnx::Placement>* placement,
                     double* time) {
  const Clock::time_point begin = Clock::now();
  TensorList outputs = placement != nullptr ? model.run(inputs, placement) : model.run(inputs);
  model.device().synchronize();
  *time = milliseconds(Clock::now() - begin);
  return outputs;
}

std::vector<std::string> save(const onnx::Model& model, const TensorList& outputs, const RunOptions& options) {
  std::vector<std::string> files;
  if (options.output.empty()) return files;
  std::error_code error;
  std::filesystem::create_directories(options.output, error);
  if (error)
    throw Error(Code::invalid_argument, "The folder '" + options.output + "' cannot be made: " + error.message() + ".");
  for (size_t i = 0; i < outputs.size(); ++i) {
    files.push_back(options.output + "/" + file_name(model.outputs()[i].name, options.format));
    write_tensor_file(files.back(), outputs[i], model.outputs()[i].name);
  }
  return files;
}

json output_json(const onnx::Model& model, const TensorList& outputs, const std::vector<std::string>& files) {
  json list = json::array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    json one = {{"name", model.outputs()[i].name},
                {"dtype", dtype_name(outputs[i].dtype())},
                {"dims", std::vector<int64_t>(outputs[i].dims().begin(), outputs[i].dims().end())}};
    if (i < files.size()) one["file"] = files[i];
    list.push_back(one);
  }
  return list;
}

}  // namespace

int run_model(const RunOptions& options) {
  const Clock::time_point begin = Clock::now();
  onnx::Options load_options;
  load_options.device = options.device.empty() ? Device::current() : Device(options.device);
  load_options.external_data_root = options.external_data;
  load_options.eager = options.eager;
  const onnx::Model model = onnx::load(options.model, load_options);
  Times times;
  times.load = milliseconds(Clock::now() - begin);
  const onnx::Inputs inputs = make_inputs(model, options.inputs, options.dims, options.seed);

  std::vector<onnx::Placement> placement;
  TensorList outputs = timed_run(model, inputs, options.placement ? &placement : nullptr, &times.first);
  for (uint32_t i = 1; i < options.repeat; ++i) timed_run(model, inputs, nullptr, &times.runs.emplace_back());
  const std::vector<std::string> files = save(model, outputs, options);

  if (options.json) {
    json report = {{"model", options.model}, {"device", model.device().spelling()},
                   {"load_ms", times.load},  {"first_run_ms", times.first},
                   {"runs_ms", times.runs},  {"outputs", output_json(model, outputs, files)}};
    if (options.placement) report["placement"] = placement_json(placement);
    std::printf("%s\n", report.dump(2).c_str());
    return 0;
  }
  std::printf("%s on %s (%s): loaded in %.1f ms, first run %.2f ms", options.model.c_str(),
              model.device().spelling().c_str(), model.device().name().c_str(), times.load, times.first);
  if (!times.runs.empty())
    std::printf(", then median %.2f ms, least %.2f ms of %zu runs", times.median(), times.least(), times.runs.size());
  std::printf("\n");
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::printf("  %s: %s%s%s%s\n", model.outputs()[i].name.c_str(),
                std::string(dtype_name(outputs[i].dtype())).c_str(), to_string(outputs[i].dims()).c_str(),
                i < files.size() ? " -> " : "", i < files.size() ? files[i].c_str() : "");
  }
  if (options.placement) print_placement(placement);
  return 0;
}

}  // namespace tenon::cli
