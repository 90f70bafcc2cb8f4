// Calls made of nodes. HintCall: a node as a call at hint sizes, on tensors without data, to ask a device about it.
// Internal to core/graph/passes.
#pragma once

#include <optional>
#include <vector>

#include "core/graph/graph.h"
#include "core/interpreter/launch_terms.h"
#include "core/ops/op_call.h"
#include "core/tensor/tensor.h"

namespace tenon::graph {

// The sizes of `value` when the graph was recorded; nothing if one depends on data.
std::optional<Dims> hint_dims(const Graph& graph, const Value& value);

// The call of `node`, without inputs and outputs. `node` must outlive it.
OpCall call_of(const Node& node);

class HintCall {
 public:
  // `inputs` are those of `node`, undefined where it has none. `node` must outlive this object.
  HintCall(const Node& node, std::vector<Tensor> inputs);
  HintCall(const HintCall&) = delete;
  HintCall& operator=(const HintCall&) = delete;

  // The strides of result `i`; nothing if these inputs are not possible.
  std::optional<Dims> strides(size_t i) const;
  // Nothing if the device refuses these strides.
  std::optional<LaunchTerms> terms(DeviceState* device) const;

 private:
  std::vector<Tensor> inputs_, outputs_;
  std::vector<const Tensor*> pointers_;
  OpCall call_;
};

}  // namespace tenon::graph
