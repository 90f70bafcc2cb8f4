#include <algorithm>
#include <chrono>
#include <map>

#include "core/device/trace.h"
#include "core/ops/ops.h"
#include "sdk/cli/profile/profile.h"

namespace tenon::cli {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

NodeTime described(const onnx::NodeExecution& execution) {
  return {execution.node,  execution.node_name, execution.op_type,
          execution.op,    execution.device,    execution.implementation,
          execution.rung,  execution.tier,      0,
          execution.bytes, execution.flops};
}

// Traces one run of the recorded model and returns the spans of its launches.
std::vector<TraceSpan> traced_run(const onnx::Model& model, const onnx::Inputs& inputs, double* ms) {
  trace_begin({});
  const Clock::time_point begin = Clock::now();
  model.run(inputs);
  model.device().synchronize();
  *ms = milliseconds(Clock::now() - begin);
  std::vector<TraceSpan> spans = trace_spans();
  throw_if_error(trace_end());
  std::erase_if(spans, [](const TraceSpan& span) { return span.category != "launch" || span.name == "segment"; });
  std::stable_sort(spans.begin(), spans.end(),
                   [](const TraceSpan& a, const TraceSpan& b) { return a.begin < b.begin; });
  return spans;
}

// Returns the launches in order. Each launch is matched with the next execution of its op, which gives its node.
std::vector<NodeTime> launches(const std::vector<TraceSpan>& spans,
                               const std::vector<onnx::NodeExecution>& executions) {
  std::vector<NodeTime> nodes;
  size_t next = 0;
  for (const TraceSpan& span : spans) {
    size_t found = next;
    while (found < executions.size() && executions[found].op != span.name) ++found;
    if (found < executions.size()) {
      nodes.push_back(described(executions[found]));
      next = found + 1;
    } else {
      NodeTime& unknown = nodes.emplace_back();
      unknown.op = span.name;
      unknown.device = span.detail;
    }
  }
  return nodes;
}

void time_launches(const onnx::Model& model, const onnx::Inputs& inputs, uint32_t runs, ModelProfile* profile) {
  std::vector<onnx::NodeExecution> executions;
  model.run(inputs, &executions);
  std::vector<std::vector<double>> times;
  std::vector<double> totals;
  for (uint32_t run = 0; run < runs; ++run) {
    const std::vector<TraceSpan> spans = traced_run(model, inputs, &totals.emplace_back());
    if (run == 0) {
      profile->nodes = launches(spans, executions);
      times.resize(spans.size());
    }
    // Ignores a run with other launches, which can depend on data.
    if (spans.size() != times.size()) continue;
    for (size_t i = 0; i < spans.size(); ++i) {
      times[i].push_back(static_cast<double>(spans[i].end - spans[i].begin) / 1e6);
    }
  }
  for (size_t i = 0; i < times.size(); ++i) profile->nodes[i].ms = median(times[i]);
  profile->traced_ms = median(totals);
}

// Times one node after the other, with a wait after each.
void time_walk(const onnx::Model& model, const onnx::Inputs& inputs, uint32_t runs, ModelProfile* profile) {
  std::map<int32_t, std::vector<double>> times;
  std::vector<double> totals;
  for (uint32_t run = 0; run < runs; ++run) {
    onnx::Walk walk(model, inputs);
    onnx::NodeResult result;
    double total = 0;
    for (;;) {
      const Clock::time_point begin = Clock::now();
      if (!walk.next(&result)) break;
      model.device().synchronize();
      if (result.known) continue;
      const double ms = milliseconds(Clock::now() - begin);
      times[result.node].push_back(ms);
      total += ms;
      if (run > 0 || result.executions.empty()) continue;
      profile->nodes.push_back(described(result.executions.back()));
      profile->nodes.back().node = result.node;
    }
    totals.push_back(total);
  }
  for (NodeTime& node : profile->nodes) node.ms = median(times[node.node]);
  profile->traced_ms = median(totals);
}

// Returns the shortest time of `function` in seconds, over five runs or as many as fit in half a second.
template <class F>
double least_seconds(const Device& device, F function) {
  function();
  device.synchronize();
  double least = 1e9, sum = 0;
  for (int i = 0; i < 5 && sum < 0.5; ++i) {
    const Clock::time_point begin = Clock::now();
    function();
    device.synchronize();
    const double seconds = milliseconds(Clock::now() - begin) / 1e3;
    least = std::min(least, seconds);
    sum += seconds;
  }
  return least;
}

}  // namespace

double RunTimes::quantile(double part) const {
  if (all.empty()) return 0;
  std::vector<double> sorted = all;
  std::sort(sorted.begin(), sorted.end());
  const auto place = static_cast<size_t>(part * static_cast<double>(sorted.size() - 1) + 0.5);
  return sorted[place];
}

double Limits::least_ms(const NodeTime& node) const {
  const double moving = bandwidth > 0 ? static_cast<double>(node.bytes) / bandwidth : 0;
  const double computing = arithmetic > 0 ? static_cast<double>(node.flops) / arithmetic : 0;
  return std::max(moving, computing) * 1e3;
}

void time_nodes(const onnx::Model& model, const onnx::Inputs& inputs, uint32_t runs, ModelProfile* profile) {
  profile->by_launch = model.device().synchronous();
  if (profile->by_launch) return time_launches(model, inputs, runs, profile);
  time_walk(model, inputs, runs, profile);
}

Limits measure_limits(Device device) {
  Limits limits;
  constexpr int64_t kElements = int64_t{16} << 20;
  const Tensor source = ones({kElements}, DType::f32, device);
  Tensor target = empty_like(source);
  const double copying = least_seconds(device, [&] { copy_from(target, source); });
  limits.bandwidth = 2.0 * kElements * sizeof(float) / copying;
  for (const int64_t size : {256, 512, 1024, 2048}) {
    const Tensor a = full({size, size}, 0.5, DType::f32, device);
    const double seconds = least_seconds(device, [&] { matmul(a, a); });
    limits.arithmetic = std::max(limits.arithmetic, 2.0 * static_cast<double>(size * size * size) / seconds);
    if (seconds > 0.05) break;
  }
  return limits;
}

}  // namespace tenon::cli
