// The measurements of `tenon profile`, and its picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/onnx/onnx.h"

namespace tenon::cli {

// The times of many runs, in milliseconds, in the order of the runs.
struct RunTimes {
  std::vector<double> all;
  // Returns the quantile `part` (0 to 1) of the times; 0 without runs.
  double quantile(double part) const;
};

// One launch of a run, or one node if nodes are timed.
struct NodeTime {
  int32_t node = -1;  // as in onnx::NodeExecution
  std::string name, op_type, op, device, implementation, rung, tier;
  double ms = 0;  // median
  uint64_t bytes = 0, flops = 0;

  // Per second; 0 if unknown.
  double bandwidth() const { return ms > 0 ? static_cast<double>(bytes) / ms * 1e3 : 0; }
  double arithmetic() const { return ms > 0 ? static_cast<double>(flops) / ms * 1e3 : 0; }
  // The name ("/encoder/MatMul"), or the op if there is no name.
  const std::string& title() const { return name.empty() ? op : name; }
};

// The limits of the device, measured with Tenon's kernels: a copy of tensors larger than the caches, and a square f32
// matmul.
struct Limits {
  double bandwidth = 0, arithmetic = 0;  // per second
  // The shortest possible time for the work of `node`.
  double least_ms(const NodeTime& node) const;
};

struct ModelProfile {
  std::string model, device, device_name;
  double load_ms = 0, first_ms = 0;
  RunTimes runs;
  bool by_launch = true;        // false: nodes ran one at a time, with a wait after each
  double traced_ms = 0;         // median time of the runs in which nodes were timed
  std::vector<NodeTime> nodes;  // in the order of the run
  Limits limits;
  uint64_t peak_bytes = 0, weight_bytes = 0, planned_bytes = 0;
};

// Runs `model` `runs` times and stores its launches with their median times in `profile`.
void time_nodes(const onnx::Model& model, const onnx::Inputs& inputs, uint32_t runs, ModelProfile* profile);
Limits measure_limits(Device device);
// Returns an SVG that shows how the time of a run is spent.
std::string picture(const ModelProfile& profile);

}  // namespace tenon::cli
