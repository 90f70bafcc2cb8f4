#include "core/graph/graph.h"

#include <algorithm>

#include "core/graph/regions/regions.h"
#include "primitives/text/format.h"

namespace tenon::graph {

size_t Node::own_inputs() const {
  size_t count = inputs.size();
  for (const Epilogue& epilogue : epilogues) count -= epilogue.input >= 0 ? 1 : 0;
  return count;
}

Graph::Graph(std::string name) : Graph(std::make_shared<symbolic::Arena>(std::move(name))) {}

Graph::Graph(std::shared_ptr<symbolic::Arena> arena) : arena_(std::move(arena)), values_(1) { labels_.add({}); }

Graph::~Graph() = default;

Graph Graph::copy() const { return copy_with(std::make_shared<symbolic::Arena>(*arena_)); }

std::shared_ptr<Graph> Graph::new_region() const { return std::shared_ptr<Graph>(new Graph(arena_)); }

Graph Graph::copy_with(const std::shared_ptr<symbolic::Arena>& arena) const {
  Graph made(arena);
  made.values_ = values_;
  made.nodes_ = nodes_;
  for (Linked& linked : made.nodes_) {
    for (std::shared_ptr<Graph>& region : linked.node.regions) {
      region = std::make_shared<Graph>(region->copy_with(arena));
    }
  }
  made.first_ = first_;
  made.last_ = last_;
  made.size_ = size_;
  made.inputs_ = inputs_;
  made.outputs_ = outputs_;
  for (size_t i = 1; i < labels_.size(); ++i) made.labels_.add(labels_[i]);
  return made;
}

uint32_t Graph::add_label(std::string text) {
  labels_.add(std::move(text));
  return static_cast<uint32_t>(labels_.size() - 1);
}

ValueId Graph::add_input(DType dtype, const SymDims& dims, DeviceState* device) {
  values_.push_back({dtype, dims, device});
  inputs_.push_back(static_cast<ValueId>(values_.size() - 1));
  return inputs_.back();
}

ValueId Graph::add_constant(Tensor tensor) {
  SymDims dims;
  for (int64_t dim : tensor.dims()) dims.push_back(dim);
  values_.push_back({tensor.dtype(), dims, tensor.impl()->device, std::move(tensor)});
  return static_cast<ValueId>(values_.size() - 1);
}

void Graph::set_outputs(std::vector<ValueId> outputs) {
  for (ValueId id : outputs_) values_[id].outputs.clear();
  outputs_ = std::move(outputs);
  for (uint32_t i = 0; i < outputs_.size(); ++i) values_[outputs_[i]].outputs.push_back(i);
}

// Notes that a node reads its input number `input`.
void Graph::use(NodeId id, uint32_t input) {
  Linked& linked = nodes_[id];
  linked.places.resize(linked.node.inputs.size());
  if (linked.node.inputs[input] == 0) return;
  std::vector<Use>& uses = values_[linked.node.inputs[input]].uses;
  linked.places[input] = static_cast<uint32_t>(uses.size());
  uses.push_back({id, input});
}

// Takes that back. The last use moves to the place that is free then.
void Graph::stop_using(NodeId id, uint32_t input) {
  const Linked& linked = nodes_[id];
  if (linked.node.inputs[input] == 0) return;
  std::vector<Use>& uses = values_[linked.node.inputs[input]].uses;
  const uint32_t place = linked.places[input];
  const Use last = uses.back();
  uses[place] = last;
  nodes_[last.node].places[last.input] = place;
  uses.pop_back();
}

NodeId Graph::link(NodeId before, Node node) {
  const auto id = static_cast<NodeId>(nodes_.size());
  const NodeId previous = before == kNoNode ? last_ : nodes_[before].previous;
  nodes_.push_back({std::move(node), previous, before});
  for (uint32_t i = 0; i < nodes_[id].node.inputs.size(); ++i) use(id, i);
  (previous == kNoNode ? first_ : nodes_[previous].next) = id;
  (before == kNoNode ? last_ : nodes_[before].previous) = id;
  ++size_;
  return id;
}

NodeId Graph::insert(NodeId before, Node node, size_t count) {
  const std::vector<Value> made = infer_values(*this, node, count);
  const auto id = static_cast<NodeId>(nodes_.size());
  for (uint32_t i = 0; i < made.size(); ++i) {
    node.results.push_back(static_cast<ValueId>(values_.size()));
    values_.push_back({made[i].dtype, made[i].dims, made[i].device, Tensor(), id, i});
  }
  return link(before, std::move(node));
}

void Graph::erase(NodeId id) {
  Linked& linked = nodes_[id];
  for (ValueId result : linked.node.results) {
    if (!values_[result].uses.empty() || is_output(result)) {
      throw Error(Subject{linked.node.op->name}, Code::internal,
                  fmt::format("a node of {} was erased, though its result is used.", arena_->name()));
    }
    values_[result] = Value();
  }
  set_inputs(id, {});
  (linked.previous == kNoNode ? first_ : nodes_[linked.previous].next) = linked.next;
  (linked.next == kNoNode ? last_ : nodes_[linked.next].previous) = linked.previous;
  linked.node = Node();
  --size_;
}

void Graph::move(NodeId id, NodeId before) {
  if (before == id || nodes_[id].next == before) return;
  Linked& linked = nodes_[id];
  (linked.previous == kNoNode ? first_ : nodes_[linked.previous].next) = linked.next;
  (linked.next == kNoNode ? last_ : nodes_[linked.next].previous) = linked.previous;
  linked.previous = before == kNoNode ? last_ : nodes_[before].previous;
  linked.next = before;
  (linked.previous == kNoNode ? first_ : nodes_[linked.previous].next) = id;
  (before == kNoNode ? last_ : nodes_[before].previous) = id;
}

void Graph::replace(ValueId old, ValueId with) {
  for (const Use& use : std::exchange(values_[old].uses, {})) {
    nodes_[use.node].node.inputs[use.input] = with;
    this->use(use.node, use.input);
  }
  for (const uint32_t output : std::exchange(values_[old].outputs, {})) {
    outputs_[output] = with;
    values_[with].outputs.push_back(output);
  }
}

void Graph::set_inputs(NodeId id, std::vector<ValueId> inputs) {
  Node& node = nodes_[id].node;
  for (uint32_t i = 0; i < node.inputs.size(); ++i) stop_using(id, i);
  node.inputs = std::move(inputs);
  for (uint32_t i = 0; i < node.inputs.size(); ++i) use(id, i);
}

namespace {

// `dims`, simplified with present knowledge.
SymDims resolved(symbolic::Arena& arena, SymDims dims) {
  for (SymDim& dim : dims) {
    if (!dim.is_number()) dim = arena.resolve(dim);
  }
  return dims;
}

}  // namespace

std::vector<SymMeta> infer_results(Graph& graph, const Node& node, size_t count) {
  const symbolic::ArenaScope scope(graph.arena());
  graph.arena().context(node.op->name);
  std::vector<SymValue> values;
  values.reserve(node.inputs.size());
  std::vector<const SymValue*> pointers;
  for (ValueId id : node.inputs) {
    if (id != 0) values.emplace_back(graph[id].dtype, resolved(graph.arena(), graph[id].dims));
    pointers.push_back(id == 0 ? nullptr : &values.back());
  }
  SymCall call;
  call.op = node.op;
  call.inputs = pointers;
  call.attributes = node.attributes.data();
  call.patches = node.patches;
  call.output_count = count;
  std::vector<SymMeta> made(count);
  throw_if_error(node.op->infer_sizes(call, made.data()));
  for (SymMeta& meta : made) meta.dims = resolved(graph.arena(), meta.dims);
  return made;
}

std::vector<Value> infer_values(Graph& graph, const Node& node, size_t count) {
  if (control::is_control(*node.op)) {
    std::vector<Value> made = infer_regions(graph, node);
    for (Value& value : made) value.dims = resolved(graph.arena(), value.dims);
    return made;
  }
  std::vector<Value> made;
  DeviceState* device = device_of(graph, node);
  for (const SymMeta& meta : infer_results(graph, node, count)) made.push_back({meta.dtype, meta.dims, device});
  return made;
}

DeviceState* device_of(const Graph& graph, const Node& node) {
  if (node.device != nullptr) return node.device;
  for (ValueId id : node.inputs) {
    if (id != 0) return graph[id].device;
  }
  return nullptr;
}

}  // namespace tenon::graph
