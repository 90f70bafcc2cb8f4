#include "core/graph/passes/lives.h"

#include <algorithm>

#include "core/ops/op_call.h"
#include "primitives/dtype/dtype.h"

namespace tenon::graph {

std::optional<uint64_t> elements_of(const Graph& graph, ValueId id) {
  uint64_t count = 1;
  for (SymDim dim : graph[id].dims) {
    const std::optional<int64_t> hint = dim.is_number() ? dim.number() : graph.arena().hint(dim);
    if (!hint) return std::nullopt;
    count *= static_cast<uint64_t>(*hint);
  }
  return count;
}

uint64_t bytes_of(const Graph& graph, ValueId id) {
  const std::optional<uint64_t> count = elements_of(graph, id);
  return count ? static_cast<uint64_t>(dtype_bytes(graph[id].dtype, static_cast<int64_t>(*count))) : 0;
}

Lives::Lives(const Graph& graph, const Held& held) {
  NodeId last = 0;
  for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
    order_.push_back(id);
    last = std::max(last, id);
  }
  positions_.assign(last + 1, 0);
  for (uint32_t at = 0; at < order_.size(); ++at) positions_[order_[at]] = at;
  roots_.assign(graph.value_count(), 0);
  rooms_.assign(graph.value_count(), Room());
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    open(graph, graph.inputs()[i], 0).held = held.all_inputs || (i < held.inputs.size() && held.inputs[i]);
  }
  for (uint32_t at = 0; at < order_.size(); ++at) visit(graph, at);
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const ValueId id = graph.outputs()[i];
    if (roots_[id] == 0) open(graph, id, 0).held = true;
    Room& room = rooms_[roots_[id]];
    room.given = true;
    room.last = static_cast<uint32_t>(order_.size());
    if (held.state(i) != kNoState) room.held = true;
  }
  for (Room& room : rooms_) {
    if (room.held) room.bytes = 0;
  }
  for (uint32_t at = 0; at < order_.size(); ++at) find_over(graph, at);
}

Room& Lives::open(const Graph& graph, ValueId id, uint32_t at) {
  roots_[id] = id;
  Room& room = rooms_[id];
  room.values = {id};
  room.bytes = bytes_of(graph, id);
  room.made = room.last = at;
  return room;
}

// A constant is added when it is first read.
void Lives::visit(const Graph& graph, uint32_t at) {
  const Node& node = graph.node(order_[at]);
  for (ValueId input : node.inputs) {
    if (input == 0) continue;
    if (roots_[input] == 0) open(graph, input, 0).held = true;
    rooms_[roots_[input]].last = at;
  }
  for (ValueId result : node.results) {
    if (node.op->form == OpForm::view) {
      roots_[result] = roots_[node.inputs[0]];
      rooms_[roots_[result]].values.push_back(result);
    } else {
      open(graph, result, at);
    }
  }
}

void Lives::find_over(const Graph& graph, uint32_t at) {
  const Node& node = graph.node(order_[at]);
  if (node.op->form == OpForm::view || node.results.size() != 1 || !node.regions.empty()) return;
  if (node.op->alias_input >= node.inputs.size() || node.inputs[node.op->alias_input] == 0) return;
  const Room& read = room_of(node.inputs[node.op->alias_input]);
  Room& made = rooms_[node.results[0]];
  made.over = read.last == at && !read.held && !read.given && read.bytes == made.bytes;
}

Lives::Most Lives::most() const {
  std::vector<int64_t> change(order_.size() + 2, 0);
  for (const Room& room : rooms_) {
    change[room.made] += static_cast<int64_t>(room.bytes);
    change[room.last + 1] -= static_cast<int64_t>(room.bytes);
    if (!room.over) continue;
    change[room.made] -= static_cast<int64_t>(room.bytes);
    change[room.made + 1] += static_cast<int64_t>(room.bytes);
  }
  Most most;
  int64_t now = 0;
  for (uint32_t at = 0; at < order_.size(); ++at) {
    now += change[at];
    if (static_cast<uint64_t>(now) > most.bytes) most = {at, static_cast<uint64_t>(now)};
  }
  return most;
}

}  // namespace tenon::graph
