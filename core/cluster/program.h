// Program: a graph as a plan sees it: calls of ops in order on values whose sizes are numbers. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/device/export.h"
#include "core/graph/graph.h"
#include "core/ops/op_call.h"
#include "core/symbolic/values.h"
#include "core/tensor/tensor.h"

namespace tenon::cluster {

using graph::NodeId;
using graph::ValueId;

struct ProgramOptions {
  // Behind the program comes a step of training: its loss is the first result (the mean of its elements if there are
  // several), and each parameter loses `rate` times its gradient. Results are then the loss and the new parameters.
  bool train = false;
  double rate = 0.01;
  // Inputs that are parameters, by number, beside the floating constants.
  std::vector<size_t> parameters = {};
};

class TENON_API Program {
 public:
  // `given` where its symbols have `sizes`. A constant of more than one element is an input like others, which may be
  // spread, and holds its tensor. Errors: those of graph::prepare; unsupported (control flow that depends on data; a
  // loss that is not floating).
  Program(const graph::Graph& given, symbolic::Values* sizes, const ProgramOptions& options = {});

  struct Value {
    DType dtype = DType::none;
    Dims dims;
    std::string name;  // of an input: its number, or "constant 3"; else empty
    bool is_parameter = false;
    bool is_input = false, is_result = false;
    Tensor elements;    // of what was a constant of the graph
    ValueId home = 0;   // the value whose spread it has: of a new parameter the old one; else itself
    bool read = false;  // by some call
  };
  struct Call {
    const graph::Node* node = nullptr;
    std::vector<ValueId> inputs, outputs;  // 0: absent
  };

  const graph::Graph& graph() const { return graph_; }
  // By ValueId; [0] is the absent value. Constants that are left have one element or are made on every rank.
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Call>& calls() const { return calls_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& results() const { return results_; }
  // Constants that calls read where they are.
  bool is_constant(ValueId id) const { return graph_[id].constant.defined(); }

 private:
  void record(const graph::Graph& given, symbolic::Values* sizes, const ProgramOptions& options);
  void read_graph();

  graph::Graph graph_{"plan"};
  std::vector<Value> values_;
  std::vector<Call> calls_;
  std::vector<ValueId> inputs_, results_;
  // What `record` knows of inputs and results of graph_, in their order.
  std::vector<Value> facts_;
  std::vector<std::optional<size_t>> homes_;  // of each result the input that it takes the place of
};

// A call of a program on tensors without data, as rules of signatures see it.
class MetaCall {
 public:
  MetaCall(const Program& program, const Program::Call& call);
  MetaCall(const MetaCall&) = delete;
  MetaCall& operator=(const MetaCall&) = delete;

  const OpCall& call() const { return call_; }
  const std::vector<TensorMeta>& outputs() const { return metas_; }

 private:
  std::vector<Tensor> inputs_;
  std::vector<const Tensor*> pointers_;
  std::vector<Tensor> outputs_;
  std::vector<TensorMeta> metas_;
  OpCall call_;
};

}  // namespace tenon::cluster
