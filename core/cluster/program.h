// Program: a graph in the form that a plan needs: calls of ops in order on values whose sizes are numbers. Internal.
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
  // Adds a training step after the program: the loss is the first result (its mean, if it has several elements), and
  // each parameter is reduced by `rate` times its gradient. The results are then the loss and the new parameters.
  bool train = false;
  double rate = 0.01;
  // Numbers of the inputs that are parameters, besides the floating constants.
  std::vector<size_t> parameters = {};
};

class TENON_API Program {
 public:
  // `given`, with `sizes` for its symbols. A constant of more than one element becomes an input, which may be spread,
  // and keeps its tensor. Errors: those of graph::prepare; unsupported (control flow that depends on data; a loss that
  // is not floating).
  Program(const graph::Graph& given, symbolic::Values* sizes, const ProgramOptions& options = {});

  struct Value {
    DType dtype = DType::none;
    Dims dims;
    std::string name;  // for an input: its number, or "constant 3"; else empty
    bool is_parameter = false;
    bool is_input = false, is_result = false;
    Tensor elements;    // for an input that was a constant of the graph
    ValueId home = 0;   // the value whose layout it shares: for a new parameter the old one; else itself
    bool read = false;  // true if a call reads it
  };
  struct Call {
    const graph::Node* node = nullptr;
    std::vector<ValueId> inputs, outputs;  // 0: absent
  };

  const graph::Graph& graph() const { return graph_; }
  // By ValueId; [0] is the absent value. Remaining constants have one element or are made on every rank.
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Call>& calls() const { return calls_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& results() const { return results_; }
  // True for constants, which calls read without a move.
  bool is_constant(ValueId id) const { return graph_[id].constant.defined(); }

 private:
  void record(const graph::Graph& given, symbolic::Values* sizes, const ProgramOptions& options);
  void read_graph();

  graph::Graph graph_{"plan"};
  std::vector<Value> values_;
  std::vector<Call> calls_;
  std::vector<ValueId> inputs_, results_;
  // The facts that `record` knows of the inputs and results of graph_, in order.
  std::vector<Value> facts_;
  std::vector<std::optional<size_t>> homes_;  // for each result: the input that it replaces
};

// A call of a program on tensors without data, for the rules of signatures.
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
