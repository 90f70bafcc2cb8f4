#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "core/ops/ops.h"
#include "sdk/cli/commands.h"
#include "sdk/cli/tensor_file.h"
#include "sdk/onnx/onnx.h"

namespace tenon::cli {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

struct Assignment {
  std::string name, value;
};

Assignment split_assignment(const std::string& text, const char* option, const char* shape) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(Code::invalid_argument, std::string(option) + " '" + text + "' is not of the form " + shape + ".");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

int64_t parse_count(const std::string& text, const std::string& where) {
  try {
    size_t used = 0;
    const long long value = std::stoll(text, &used);
    if (used == text.size() && value >= 0) return value;
  } catch (const std::exception&) {
  }
  throw Error(Code::invalid_argument, "'" + text + "' in " + where + " is not a whole number of at least 0.");
}

Dims parse_shape(const std::string& text) {
  Dims dims;
  size_t at = 0;
  while (at <= text.size() && !text.empty()) {
    const size_t end = std::min(text.find_first_of("x,", at), text.size());
    if (dims.rank() == EP_MAX_RANK)
      throw Error(Code::invalid_argument,
                  "The shape '" + text + "' has more than " + std::to_string(EP_MAX_RANK) + " dims.");
    dims.push_back(parse_count(text.substr(at, end - at), "the shape '" + text + "'"));
    at = end + 1;
  }
  return dims;
}

class InputMaker {
 public:
  InputMaker(const onnx::Model& model, const RunOptions& options) : model_(model), random_(options.seed) {
    for (const std::string& text : options.dims) {
      const Assignment dim = split_assignment(text, "--dim", "NAME=NUMBER");
      dims_[dim.name] = parse_count(dim.value, "--dim " + text);
    }
  }

  onnx::Inputs make(const std::vector<std::string>& given) {
    onnx::Inputs inputs;
    for (const std::string& text : given) {
      const Assignment input =
          split_assignment(text, "--input", "NAME=FILE.npy, NAME=FILE.pb, NAME=random or NAME=random:1x3x224x224");
      inputs[input.name] = read(input);
    }
    for (const onnx::ValueInfo& info : model_.inputs()) {
      if (inputs.count(info.name) != 0) continue;
      throw Error(Code::invalid_argument, "Input '" + info.name + "', " + onnx::to_string(info) + ", is missing.",
                  "Give --input " + info.name + "=FILE.npy, or --input " + info.name + "=random.");
    }
    return inputs;
  }

 private:
  Tensor read(const Assignment& input) {
    if (input.value.rfind("random", 0) != 0) return read_tensor_file(input.value, model_.device());
    for (const onnx::ValueInfo& info : model_.inputs()) {
      if (info.name != input.name) continue;
      const bool shaped = input.value.size() > 7 && input.value[6] == ':';
      return random(info.dtype, shaped ? parse_shape(input.value.substr(7)) : default_dims(info));
    }
    throw Error(Code::invalid_argument, "The model has no input '" + input.name + "'.");
  }

  // Dynamic dims are what --dim says, else 1.
  Dims default_dims(const onnx::ValueInfo& info) const {
    Dims dims;
    for (const onnx::Dim& dim : info.dims) {
      const auto given = dims_.find(dim.name);
      dims.push_back(dim.value >= 0 ? dim.value : given != dims_.end() ? given->second : 1);
    }
    return dims;
  }

  // Floats from a normal distribution; integers and bools 0 or 1, which are indices of anything that has two elements.
  Tensor random(DType dtype, const Dims& dims) {
    const std::optional<int64_t> count = checked_count(dims);
    if (!count) throw Error(Code::invalid_argument, "The shape " + to_string(dims) + " is impossible.");
    if (!is_floating(dtype)) {
      std::vector<int64_t> values(static_cast<size_t>(*count));
      for (int64_t& value : values) value = static_cast<int64_t>(random_() & 1);
      return cast(Tensor::from<int64_t>(values, dims, model_.device()), dtype);
    }
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<size_t>(*count));
    for (float& value : values) value = normal(random_);
    return cast(Tensor::from<float>(values, dims, model_.device()), dtype);
  }

  const onnx::Model& model_;
  std::mt19937_64 random_;
  std::map<std::string, int64_t> dims_;
};

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
  const onnx::Inputs inputs = InputMaker(model, options).make(options.inputs);

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
