// What `tenon profile` measures, and its picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sdk/onnx/onnx.h"

namespace tenon::cli {

// The times of many runs, in milliseconds, as they came.
struct RunTimes {
  std::vector<double> all;
  // The time below which `part` of the runs lie; 0 without runs.
  double quantile(double part) const;
};

// One launch of a run, or one node where nodes are timed.
struct NodeTime {
  int32_t node = -1;  // as in onnx::NodeExecution
  std::string name, op_type, op, device, implementation, rung;
  double ms = 0;  // median
  uint64_t bytes = 0, flops = 0;

  // In units per second, 0 where nothing is known.
  double bandwidth() const { return ms > 0 ? static_cast<double>(bytes) / ms * 1e3 : 0; }
  double arithmetic() const { return ms > 0 ? static_cast<double>(flops) / ms * 1e3 : 0; }
  // "/encoder/MatMul", else the op.
  const std::string& title() const { return name.empty() ? op : name; }
};

// What the device can do, by Tenon's own kernels: a copy of tensors beyond the caches, and a square matmul of f32.
struct Limits {
  double bandwidth = 0, arithmetic = 0;  // per second
  // The least time in which the work of `node` can be done.
  double least_ms(const NodeTime& node) const;
};

struct ModelProfile {
  std::string model, device, device_name;
  double load_ms = 0, first_ms = 0;
  RunTimes runs;
  bool by_launch = true;        // false: nodes ran one after the other, each waited for
  double traced_ms = 0;         // a run in which the nodes were timed; median
  std::vector<NodeTime> nodes;  // in the order of the run
  Limits limits;
  uint64_t peak_bytes = 0, weight_bytes = 0, planned_bytes = 0;
};

// The launches of `runs` runs of `model`, each with its median time.
void time_nodes(const onnx::Model& model, const onnx::Inputs& inputs, uint32_t runs, ModelProfile* profile);
Limits measure_limits(Device device);
// An SVG: where the time of a run goes.
std::string picture(const ModelProfile& profile);

}  // namespace tenon::cli
