// Graph: a program as nodes over values. Models, compiled functions and recorded gradients all use it. It is recorded
// once and holds for all sizes that its arena allows; passes rewrite it; prepare() makes an executable from it
// (execute/executable.h).
//
// A value is written once, so a graph does not describe memory: values have no strides, and a write into a tensor is a
// node that makes a new value. Sizes are expressions of the graph's arena (core/symbolic).
//
// Threads: only one thread may change a graph. Many threads may call const functions at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/device/export.h"
#include "core/ops/sym_call.h"
#include "core/symbolic/arena.h"
#include "core/tensor/labels.h"
#include "core/tensor/tensor.h"

namespace tenon::graph {

using ValueId = uint32_t;  // 0: absent
using NodeId = uint32_t;
constexpr NodeId kNoNode = UINT32_MAX;

// One read of a value: `node` reads it as input number `input`.
struct Use {
  NodeId node = kNoNode;
  uint32_t input = 0;
  friend bool operator==(const Use&, const Use&) = default;
};

class Graph;

// An input of the program, a constant, or a result of a node.
struct Value {
  DType dtype = DType::none;
  SymDims dims;
  DeviceState* device = nullptr;
  Tensor constant = {};                // defined: its elements are known
  NodeId producer = kNoNode;           // kNoNode: an input or a constant
  uint32_t result = 0;                 // which result of its producer
  std::vector<Use> uses = {};          // in no order; outputs of the graph are not uses
  std::vector<uint32_t> outputs = {};  // its positions among the outputs of the graph
};

// An op applied to values; like OpCall, with values in place of tensors.
struct Node {
  const OpInfo* op = nullptr;  // null if the node was erased
  std::vector<ValueId> inputs = {};
  std::vector<Scalar> scalars = {};
  std::vector<uint64_t> attributes = {};  // the op's attribute struct in whole words; patched numbers have their hints
  std::vector<Patch> patches = {};        // numbers of the attribute struct that are expressions
  std::vector<Epilogue> epilogues = {};
  DeviceState* device = nullptr;  // for a factory or a move, as in OpCall
  Precision precision = Precision::stated;
  uint32_t label = 0;  // index into Graph::labels
  std::vector<ValueId> results = {};
  // For control flow and fused nodes: the graphs of its functions, owned by this node alone (regions/regions.h).
  std::vector<std::shared_ptr<Graph>> regions = {};

  // Number of inputs of the op itself; the inputs of epilogues follow them.
  size_t own_inputs() const;
  template <class T>
  const T& attributes_as() const {
    return *reinterpret_cast<const T*>(attributes.data());
  }
};

class TENON_API Graph {
 public:
  // `name` is used in error messages, such as "recording 3 (bert.onnx)".
  explicit Graph(std::string name);
  Graph(Graph&&) noexcept = default;
  Graph& operator=(Graph&&) noexcept = default;
  ~Graph();
  // A copy with the same ids of sizes, values and nodes. Constants are shared.
  Graph copy() const;
  // An empty graph that shares the arena of this one, for a region of a new node.
  std::shared_ptr<Graph> new_region() const;

  symbolic::Arena& arena() { return *arena_; }
  const symbolic::Arena& arena() const { return *arena_; }

  size_t value_count() const { return values_.size(); }  // [0] is the absent value
  const Value& operator[](ValueId id) const { return values_[id]; }
  const Node& node(NodeId id) const { return nodes_[id].node; }
  // The nodes in program order: for (NodeId id = first(); id != kNoNode; id = next(id)).
  NodeId first() const { return first_; }
  NodeId last() const { return last_; }
  NodeId next(NodeId id) const { return nodes_[id].next; }
  NodeId previous(NodeId id) const { return nodes_[id].previous; }
  size_t size() const { return size_; }  // nodes that were not erased
  std::span<const ValueId> inputs() const { return inputs_; }
  std::span<const ValueId> outputs() const { return outputs_; }
  bool is_output(ValueId id) const { return !values_[id].outputs.empty(); }

  // Texts such as "node 14 (/encoder/MatMul)", by Node::label; [0] is empty.
  const Labels& labels() const { return labels_; }
  uint32_t add_label(std::string text);

  ValueId add_input(DType dtype, const SymDims& dims, DeviceState* device);
  ValueId add_constant(Tensor tensor);
  void set_outputs(std::vector<ValueId> outputs);
  // Inputs of the program from now on; values that are inputs already. Nobody uses those that are left out.
  void keep_inputs(std::vector<ValueId> inputs) { inputs_ = std::move(inputs); }

  // Inserts `node` before the node `before` (kNoNode: at the end) and makes its `count` results, whose dtype, dims and
  // device the op's rule gives. For a node with regions, the regions determine the number of results and `count` is
  // ignored. Throws the errors of the rule; symbolic::Undecided.
  NodeId insert(NodeId before, Node node, size_t count = 1);
  NodeId append(Node node, size_t count = 1) { return insert(kNoNode, std::move(node), count); }

  // Removes a node whose results are unused.
  void erase(NodeId id);
  // Replaces `old` by `with` in all inputs of nodes and all outputs. Both have the same dtype, dims and device.
  void replace(ValueId old, ValueId with);
  // Moves a node before the node `before` (kNoNode: to the end). After all moves of a pass, every node must again come
  // after the nodes that it reads.
  void move(NodeId id, NodeId before);
  // Replaces the inputs of `id`.
  void set_inputs(NodeId id, std::vector<ValueId> inputs);

 private:
  friend class Parser;
  struct Linked {
    Node node;
    NodeId previous = kNoNode;
    NodeId next = kNoNode;
    std::vector<uint32_t> places = {};  // by input: the index of its Use among the uses of the value
  };

  explicit Graph(std::shared_ptr<symbolic::Arena> arena);
  Graph copy_with(const std::shared_ptr<symbolic::Arena>& arena) const;
  NodeId link(NodeId before, Node node);
  void use(NodeId id, uint32_t input);
  void stop_using(NodeId id, uint32_t input);

  std::shared_ptr<symbolic::Arena> arena_;  // shared with regions
  std::vector<Value> values_;
  std::vector<Linked> nodes_;
  NodeId first_ = kNoNode, last_ = kNoNode;
  size_t size_ = 0;
  std::vector<ValueId> inputs_, outputs_;
  Labels labels_;
};

// The metadata of the results of `node` by its op's rule; its inputs are values of `graph`. Throws like insert().
std::vector<SymMeta> infer_results(Graph& graph, const Node& node, size_t count);
// Dtype, dims and device of the results of `node`, which may have regions. Throws like insert().
std::vector<Value> infer_values(Graph& graph, const Node& node, size_t count);
// The device of the results of `node`, which has no regions.
DeviceState* device_of(const Graph& graph, const Node& node);

}  // namespace tenon::graph
