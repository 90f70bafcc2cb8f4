// Roots: where the values of a graph lie. A value that is a view lies in the bytes of another value, its root; every
// other value is its own root. Internal to core/graph.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::graph {

struct RootView {
  uint32_t root = 0;
  int64_t offset = 0;  // of the first element, in elements of the root
};

class Roots {
 public:
  // `device`: where the inputs of the graph lie.
  Roots(const Graph& graph, DeviceState* device);

  const RootView& operator[](uint32_t value) const { return roots_[value]; }
  uint32_t root(uint32_t value) const { return roots_[value].root; }
  DeviceState* device(uint32_t value) const { return devices_[value]; }
  // True if a step writes into the value, or into another value over the same bytes, after it was made.
  bool is_written_again(uint32_t value) const { return written_again_[root(value)]; }

 private:
  std::vector<RootView> roots_;        // by value
  std::vector<DeviceState*> devices_;  // by value
  std::vector<bool> written_again_;    // by root
};

// A step as a call on tensors without data.
class StepCall {
 public:
  StepCall(const Graph& graph, const Step& step, const std::vector<DeviceState*>& devices);
  StepCall(const StepCall&) = delete;
  StepCall& operator=(const StepCall&) = delete;

  const OpCall& call() const { return call_; }

 private:
  std::vector<Tensor> inputs_;
  std::vector<const Tensor*> pointers_;
  std::vector<Tensor> outputs_;
  OpCall call_;
};

}  // namespace tenon::graph
