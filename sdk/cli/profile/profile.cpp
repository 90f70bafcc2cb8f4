#include "sdk/cli/profile/profile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/device/trace.h"
#include "core/interpreter/launch_terms.h"
#include "primitives/accuracy/accuracy.h"
#include "primitives/text/format.h"
#include "primitives/text/progress.h"
#include "sdk/cli/commands.h"
#include "sdk/cli/model_inputs.h"
#include "sdk/cli/table.h"
#include "sdk/report/json_text.h"

namespace tenon::cli {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr double kSecondsOfRuns = 2;  // total time of the runs without --repeat
constexpr uint32_t kFewestRuns = 5, kMostRuns = 1000, kTracedRuns = 9;

double since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

std::string bytes_text(uint64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (bytes >= uint64_t{1} << 30) return fmt::format("{:.2f} GiB", size / (1 << 30));
  if (bytes >= uint64_t{1} << 20) return fmt::format("{:.1f} MiB", size / (1 << 20));
  return fmt::format("{:.1f} KiB", size / (1 << 10));
}

double run_once(const onnx::Model& model, const onnx::Inputs& inputs) {
  const Clock::time_point begin = Clock::now();
  model.run(inputs);
  model.device().synchronize();
  return since(begin);
}

uint32_t runs_for(const ProfileOptions& options, double ms) {
  if (options.repeat != 0) return options.repeat;
  const double fit = ms > 0 ? kSecondsOfRuns * 1e3 / ms : kMostRuns;
  return static_cast<uint32_t>(std::clamp(fit, double{kFewestRuns}, double{kMostRuns}));
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw Error(Code::invalid_argument, fmt::format("The file '{}' cannot be written.", path));
}

// Traces one run and writes the trace to `path`.
void write_trace(const onnx::Model& model, const onnx::Inputs& inputs, const std::string& path) {
  trace_begin(path);
  run_once(model, inputs);
  throw_if_error(trace_end());
}

ModelProfile measure(const ProfileOptions& options) {
  ModelProfile profile;
  onnx::Options load_options;
  if (options.no_fuse) load_options.fuse = false;
  load_options.compile = Compiling::wait;
  load_options.device = options.device.empty() ? Device::current() : Device(options.device);
  load_options.external_data_root = options.external_data;
  load_options.precision = options.precision;
  Progress progress(fmt::format("loading {}", options.model));
  const Clock::time_point begin = Clock::now();
  const onnx::Model model = onnx::load(options.model, load_options);
  profile.load_ms = since(begin);
  const onnx::Inputs inputs =
      make_inputs(model, random_where_missing(model, options.inputs), options.dims, options.seed);
  profile.model = options.model;
  profile.device = model.device().spelling();
  profile.device_name = model.device().name();
  profile.weight_bytes = model.info().weight_bytes;
  progress.at(0, "the first run, which prepares the model");
  profile.first_ms = run_once(model, inputs);
  double last = profile.first_ms;
  progress.at(0, "timing runs");
  for (uint32_t i = 0; i < options.warm_up; ++i) last = run_once(model, inputs);
  const uint32_t runs = runs_for(options, last);
  for (uint32_t i = 0; i < runs; ++i) profile.runs.all.push_back(run_once(model, inputs));
  progress.at(0, "timing nodes");
  time_nodes(model, inputs, std::min(runs, kTracedRuns), &profile);
  if (!options.trace.empty()) write_trace(model, inputs, options.trace);
  const memory::Stats stats = model.device().memory_stats();
  profile.peak_bytes = stats.peak;
  profile.planned_bytes = stats.planned_peak;
  progress.at(0, fmt::format("measuring the limits of {}", profile.device));
  profile.limits = measure_limits(model.device());
  return profile;
}

std::vector<const NodeTime*> slowest_first(const ModelProfile& profile) {
  std::vector<const NodeTime*> sorted;
  for (const NodeTime& node : profile.nodes) sorted.push_back(&node);
  std::stable_sort(sorted.begin(), sorted.end(), [](const NodeTime* a, const NodeTime* b) { return a->ms > b->ms; });
  return sorted;
}

double sum_of(const ModelProfile& profile) {
  double sum = 0;
  for (const NodeTime& node : profile.nodes) sum += node.ms;
  return sum;
}

// Returns "12.3 (45 %)": a rate in units of 10^9, and its share of the limit.
std::string rate_text(double rate, double limit) {
  if (rate <= 0) return "-";
  const std::string text = fmt::format("{:.1f}", rate / 1e9);
  return limit > 0 ? fmt::format("{} ({:.0f} %)", text, rate / limit * 100) : text;
}

void print_nodes(const ModelProfile& profile, uint32_t count, Precision precision) {
  const double sum = sum_of(profile);
  std::vector<std::vector<std::string>> rows = {{"time", "share", "node", "name", "operator", "op", "implementation",
                                                 "rung", "tier", "bytes", "GB/s", "GFLOP/s"}};
  const std::vector<const NodeTime*> sorted = slowest_first(profile);
  double rest = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const NodeTime& node = *sorted[i];
    if (i >= count) {
      rest += node.ms;
      continue;
    }
    rows.push_back({time_text(node.ms), fmt::format("{:.1f} %", sum > 0 ? node.ms / sum * 100 : 0),
                    node.node < 0 ? "-" : fmt::format("{}", node.node), node.name, node.op_type, node.op,
                    implementation_text(node.implementation), node.rung, node.tier,
                    node.bytes == 0 ? "-" : bytes_text(node.bytes),
                    rate_text(node.bandwidth(), profile.limits.bandwidth),
                    rate_text(node.arithmetic(), profile.limits.arithmetic)});
  }
  if (rest > 0) {
    rows.push_back({time_text(rest), fmt::format("{:.1f} %", rest / sum * 100), "",
                    fmt::format("{} more; --top says how many are shown", sorted.size() - count), "", "", "", "", "",
                    "", "", ""});
  }
  print_table(rows);
  size_t plain = 0;
  double plain_ms = 0;
  for (const NodeTime& node : profile.nodes) {
    if (!is_plain(node.implementation)) continue;
    ++plain;
    plain_ms += node.ms;
  }
  if (plain != 0) {
    std::printf("* a loop that is not optimised: %zu of %zu rows, %.1f %% of the time\n", plain, profile.nodes.size(),
                sum > 0 ? plain_ms / sum * 100 : 0);
  }
  if (precision != Precision::relaxed) return;
  const auto relaxed = std::count_if(profile.nodes.begin(), profile.nodes.end(),
                                     [](const NodeTime& node) { return node.tier == tier_name(Tier::relaxed); });
  std::printf("%s\n", relaxed_text(static_cast<size_t>(relaxed), profile.nodes.size()).c_str());
}

void print_profile(const ModelProfile& profile, uint32_t count, Precision precision) {
  std::printf("%s on %s (%s)\n", profile.model.c_str(), profile.device.c_str(), profile.device_name.c_str());
  std::printf("  loaded in %s, first run %s\n", time_text(profile.load_ms).c_str(),
              time_text(profile.first_ms).c_str());
  std::printf("  %zu runs: median %s, p90 %s, p99 %s, least %s\n", profile.runs.all.size(),
              time_text(profile.runs.quantile(0.5)).c_str(), time_text(profile.runs.quantile(0.9)).c_str(),
              time_text(profile.runs.quantile(0.99)).c_str(), time_text(profile.runs.quantile(0)).c_str());
  std::printf("  memory: peak %s; weights %s, values between nodes %s\n", bytes_text(profile.peak_bytes).c_str(),
              bytes_text(profile.weight_bytes).c_str(), bytes_text(profile.planned_bytes).c_str());
  std::printf("  limits of this device, measured: copy %.1f GB/s, matmul %.1f GFLOP/s (f32)\n",
              profile.limits.bandwidth / 1e9, profile.limits.arithmetic / 1e9);
  std::printf("  %s: %s of %s of a run\n\n",
              profile.by_launch ? "launches of the recorded program" : "node after node, each waited for",
              time_text(sum_of(profile)).c_str(), time_text(profile.traced_ms).c_str());
  print_nodes(profile, count, precision);
}

json as_json(const ModelProfile& profile, Precision precision) {
  json nodes = json::array();
  for (const NodeTime* node : slowest_first(profile)) {
    nodes.push_back({{"ms", node->ms},
                     {"node", node->node},
                     {"name", node->name},
                     {"op_type", node->op_type},
                     {"op", node->op},
                     {"device", node->device},
                     {"implementation", node->implementation},
                     {"plain", is_plain(node->implementation)},
                     {"rung", node->rung},
                     {"tier", node->tier},
                     {"bytes", node->bytes},
                     {"flops", node->flops},
                     {"bytes_per_second", node->bandwidth()},
                     {"flops_per_second", node->arithmetic()},
                     {"least_ms", profile.limits.least_ms(*node)}});
  }
  return {{"model", profile.model},
          {"precision", precision_name(precision)},
          {"device", profile.device},
          {"device_name", profile.device_name},
          {"load_ms", profile.load_ms},
          {"first_run_ms", profile.first_ms},
          {"runs_ms", profile.runs.all},
          {"median_ms", profile.runs.quantile(0.5)},
          {"p90_ms", profile.runs.quantile(0.9)},
          {"p99_ms", profile.runs.quantile(0.99)},
          {"timed_by", profile.by_launch ? "launch" : "node"},
          {"timed_run_ms", profile.traced_ms},
          {"peak_bytes", profile.peak_bytes},
          {"weight_bytes", profile.weight_bytes},
          {"planned_bytes", profile.planned_bytes},
          {"limits", {{"bytes_per_second", profile.limits.bandwidth}, {"flops_per_second", profile.limits.arithmetic}}},
          {"nodes", nodes}};
}

}  // namespace

int profile_model(const ProfileOptions& options) {
  const ModelProfile profile = measure(options);
  if (!options.plot.empty()) write_file(options.plot, picture(profile));
  if (options.json) {
    std::printf("%s\n", report::json_text(as_json(profile, options.precision)).c_str());
  } else {
    print_profile(profile, options.top, options.precision);
  }
  return 0;
}

}  // namespace tenon::cli
