#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/graph/execute/check_kernels.h"
#include "core/interpreter/execution_report.h"
#include "core/interpreter/launch_terms.h"
#include "primitives/accuracy/accuracy.h"
#include "primitives/text/format.h"
#include "primitives/text/progress.h"
#include "primitives/text/visible.h"
#include "sdk/cli/commands.h"
#include "sdk/cli/model_inputs.h"
#include "sdk/cli/summary.h"
#include "sdk/cli/table.h"
#include "sdk/cli/tensor_file.h"
#include "sdk/onnx/onnx.h"
#include "sdk/report/report.h"

namespace tenon::cli {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

// Returns the file name of an output, without its extension. Characters with a meaning in paths become '_'.
std::string file_name(const std::string& name) {
  std::string safe = name.empty() ? "output" : name;
  for (char& c : safe) {
    if (!isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '_';
  }
  if (safe.front() == '.') safe.front() = '_';
  return safe;
}

void print_executions(const std::vector<onnx::NodeExecution>& executions, Precision precision) {
  std::vector<std::vector<std::string>> rows = {
      {"node", "name", "operator", "op", "device", "implementation", "rung", "tier", "bytes copied", "reason"}};
  for (const onnx::NodeExecution& p : executions) {
    rows.push_back({p.node < 0 ? "-" : fmt::format("{}", p.node), p.node_name, p.op_type, p.op, p.device,
                    implementation_text(p.implementation), p.rung, p.tier, fmt::format("{}", p.bytes_copied),
                    p.reason});
  }
  print_table(rows);
  const auto plain = std::count_if(executions.begin(), executions.end(),
                                   [](const onnx::NodeExecution& p) { return is_plain(p.implementation); });
  if (plain != 0) std::printf("* a loop that is not optimised: %td of %zu launches\n", plain, executions.size());
  if (precision != Precision::relaxed) return;
  const auto relaxed = std::count_if(executions.begin(), executions.end(),
                                     [](const onnx::NodeExecution& p) { return p.tier == tier_name(Tier::relaxed); });
  std::printf("%s\n", relaxed_text(static_cast<size_t>(relaxed), executions.size()).c_str());
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

// The results of all runs.
struct Results {
  onnx::Model model;
  Times times;
  onnx::ValueList outputs;
  std::vector<json> summaries;                  // one per output
  std::vector<std::vector<std::string>> files;  // the files of each output; empty without --output
  std::vector<onnx::NodeExecution> executions;
};

// Runs the model and waits for the results, because an asynchronous device may return earlier.
onnx::ValueList timed_run(const onnx::Model& model, const onnx::Values& inputs,
                          std::vector<onnx::NodeExecution>* executions, double* time) {
  const Clock::time_point begin = Clock::now();
  onnx::ValueList outputs = model.run_values(inputs, executions);
  model.device().synchronize();
  *time = milliseconds(Clock::now() - begin);
  return outputs;
}

// Writes `value` to files whose names begin with `path`. A sequence has a file for each element; a map has one for its
// keys and one for its values.
void save(const onnx::Value& value, const std::string& path, const std::string& name, const std::string& format,
          std::vector<std::string>* files) {
  using Kind = onnx::Value::Kind;
  if (value.kind() == Kind::map || value.matrix().defined()) {
    save(value.keys(), path + "_keys", name, format, files);
    save(value.kind() == Kind::map ? value.values() : onnx::Value(value.matrix()), path, name, format, files);
  } else if (value.kind() == Kind::sequence) {
    for (size_t i = 0; i < value.elements().size(); ++i)
      save(value.elements()[i], fmt::format("{}_{}", path, i), name, format, files);
  } else if (value.is_tensor() || value.kind() == Kind::strings) {
    files->push_back(fmt::format("{}.{}", path, format));
    write_value_file(files->back(), value, name);
  }
}

std::vector<std::vector<std::string>> save_all(const onnx::Model& model, const onnx::ValueList& outputs,
                                               const RunOptions& options) {
  std::vector<std::vector<std::string>> files;
  if (options.output.empty()) return files;
  std::error_code error;
  std::filesystem::create_directories(options.output, error);
  if (error)
    throw Error(Code::invalid_argument,
                fmt::format("The folder '{}' cannot be made: {}.", options.output, error.message()));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = model.outputs()[i].name;
    save(outputs[i], fmt::format("{}/{}", options.output, file_name(name)), name, options.format,
         &files.emplace_back());
  }
  return files;
}

json output_json(const Results& results) {
  json list = json::array();
  for (size_t i = 0; i < results.outputs.size(); ++i) {
    const onnx::Value& output = results.outputs[i];
    const bool strings = output.kind() == onnx::Value::Kind::strings;
    json one = results.summaries[i];
    one["name"] = results.model.outputs()[i].name;
    if (output.is_tensor() || strings) {
      one["dtype"] = strings ? "string" : dtype_name(output.tensor().dtype());
      one["dims"] = std::vector<int64_t>(output.dims().begin(), output.dims().end());
    } else {
      one["type"] = to_string(output);
    }
    if (i < results.files.size() && results.files[i].size() == 1) one["file"] = results.files[i][0];
    if (i < results.files.size() && results.files[i].size() != 1) one["files"] = results.files[i];
    list.push_back(one);
  }
  return list;
}

onnx::Model load_model(const RunOptions& options) {
  onnx::Options load_options;
  load_options.device = options.device.empty() ? Device::current() : Device(options.device);
  load_options.external_data_root = options.external_data;
  load_options.eager = options.eager;
  if (options.no_fuse) load_options.fuse = false;
  if (options.report) load_options.compile = Compiling::wait;  // the report covers the first run
  load_options.precision = options.precision;
  return onnx::load(options.model, load_options);
}

// The inputs that the command names. If it names none, all are random, and a line on stderr says so for each.
std::vector<std::string> inputs_of(const RunOptions& options, const onnx::Model& model) {
  if (!options.inputs.empty()) return options.inputs;
  for (const onnx::ValueInfo& info : model.inputs()) {
    std::string sizes;
    const auto open = std::find_if(info.dims.begin(), info.dims.end(),
                                   [](const onnx::Dim& dim) { return dim.value < 0 && !dim.name.empty(); });
    if (open != info.dims.end() && options.dims.empty())
      sizes = fmt::format(", --dim {}=N sets a size that is 1 now", visible(open->name));
    std::fprintf(stderr, "tenon: input '%s', %s, is random; --input %s=FILE.npy gives it%s.\n",
                 visible(info.name).c_str(), to_string(info).c_str(), visible(info.name).c_str(), sizes.c_str());
  }
  return random_where_missing(model, {});
}

void run_all(const RunOptions& options, const onnx::Values& inputs, Results* results) {
  try {
    results->outputs = timed_run(results->model, inputs, &results->executions, &results->times.first);
    for (uint32_t i = 1; i < options.repeat; ++i)
      timed_run(results->model, inputs, nullptr, &results->times.runs.emplace_back());
    for (const onnx::Value& output : results->outputs) results->summaries.push_back(summarize(output));
  } catch (const Error& error) {
    throw Error(error.status().with_context(fmt::format("  while running '{}'", options.model)));
  }
}

void print_report(const RunOptions& options, const Results& results) {
  const Times& times = results.times;
  std::printf("%s on %s (%s): loaded in %.1f ms, first run %s", options.model.c_str(),
              results.model.device().spelling().c_str(), results.model.device().name().c_str(), times.load,
              time_text(times.first).c_str());
  if (!times.runs.empty()) {
    std::printf(", then median %s, least %s of %zu runs", time_text(times.median()).c_str(),
                time_text(times.least()).c_str(), times.runs.size());
  }
  std::printf("\n");
  for (size_t i = 0; i < results.outputs.size(); ++i) {
    const onnx::Value& output = results.outputs[i];
    std::string files;
    for (size_t j = 0; i < results.files.size() && j < results.files[i].size(); ++j)
      files += (j == 0 ? " -> " : ", ") + results.files[i][j];
    std::printf("  %s: %s%s\n    %s\n", visible(results.model.outputs()[i].name).c_str(), to_string(output).c_str(),
                files.c_str(), summary_text(output).c_str());
  }
}

// Prints the memory of the values between nodes.
void print_plan(const Results& results) {
  const memory::Stats stats = results.model.device().memory_stats();
  std::printf("values between nodes: %llu bytes planned; no plan needs less than %llu\n",
              static_cast<unsigned long long>(stats.planned_peak),
              static_cast<unsigned long long>(stats.planned_lower_bound));
}

// Prints one line if launches ran on the host instead of the chosen device.
void print_host_launches(const Results& results) {
  if (results.model.device() == Device::host()) return;
  size_t launches = 0, host = 0;
  for (const onnx::NodeExecution& p : results.executions) {
    launches += p.rung != rung_name(Rung::decomposed);  // the ops of a decomposition have their own rows
    host += p.rung == rung_name(Rung::host);
  }
  if (host == 0) return;
  std::printf("%zu of %zu launches ran on the host; --report says which and why\n", host, launches);
}

json checks_json() {
  json list = json::array();
  for (const graph::KernelCheck& row : graph::kernel_checks()) {
    list.push_back({{"kernel", row.kernel},
                    {"ops", row.ops},
                    {"where", row.where},
                    {"launches", row.launches},
                    {"worst", row.worst},
                    {"difference", row.difference},
                    {"bound", row.bound}});
  }
  return list;
}

// Prints the findings of TENON_CHECK=compile.
void print_checks() {
  std::vector<std::vector<std::string>> rows = {{"kernel", "ops", "launches", "worst difference", "allowed", "where"}};
  for (const graph::KernelCheck& row : graph::kernel_checks()) {
    rows.push_back({row.kernel, row.ops, fmt::format("{}", row.launches), fmt::format("{:.3g}", row.difference),
                    fmt::format("{:.3g}", row.bound), row.where});
  }
  if (rows.size() > 1) print_table(rows);
}

}  // namespace

int run_model(const RunOptions& options) {
  std::optional<Progress> progress(std::in_place, fmt::format("loading {}", options.model));
  const Clock::time_point begin = Clock::now();
  Results results{load_model(options), {}, {}, {}, {}, {}};
  results.times.load = milliseconds(Clock::now() - begin);
  progress.reset();
  const std::vector<std::string> inputs = inputs_of(options, results.model);
  progress.emplace(fmt::format("running {}", options.model));
  run_all(options, make_values(results.model, inputs, options.dims, options.seed), &results);
  progress.reset();
  results.files = save_all(results.model, results.outputs, options);

  if (options.json) {
    json report = {{"model", options.model},        {"device", results.model.device().spelling()},
                   {"load_ms", results.times.load}, {"first_run_ms", results.times.first},
                   {"runs_ms", results.times.runs}, {"outputs", output_json(results)}};
    if (options.report) {
      const memory::Stats stats = results.model.device().memory_stats();
      report["precision"] = precision_name(options.precision);
      report["executions"] = report::executions_json(results.executions);
      report["planned_bytes"] = stats.planned_peak;
      report["planned_lower_bound_bytes"] = stats.planned_lower_bound;
    }
    if (json checks = checks_json(); !checks.empty()) report["kernel_checks"] = std::move(checks);
    std::printf("%s\n", report::json_text(report).c_str());
    return 0;
  }
  print_report(options, results);
  print_checks();
  if (options.report) {
    print_executions(results.executions, options.precision);
    print_plan(results);
  } else {
    print_host_launches(results);
  }
  return 0;
}

}  // namespace tenon::cli
