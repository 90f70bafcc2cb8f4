// Lives: the ranges of nodes during which the values of a graph take memory. Internal to core/graph/passes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::graph {

// Number of elements at hint sizes; nothing if a size is unknown.
std::optional<uint64_t> elements_of(const Graph& graph, ValueId id);
// Number of bytes at hint sizes; 0 if unknown.
uint64_t bytes_of(const Graph& graph, ValueId id);

constexpr uint32_t kNoState = UINT32_MAX;

// The inputs and outputs of a graph that take no memory of their own.
struct Held {
  std::vector<bool> inputs = {};  // by input: true if the caller keeps its memory in any case
  // by output: the input that it is the later state of, in the same memory; or kNoState
  std::vector<uint32_t> over = {};
  bool all_inputs = false;  // treats all inputs as held

  // The input that output `i` is the new state of, or kNoState.
  uint32_t state(size_t i) const { return i < over.size() ? over[i] : kNoState; }
};

// The memory of one value, which its views share.
struct Room {
  std::vector<ValueId> values;  // the root first
  uint64_t bytes = 0;           // 0: not counted, or unknown
  uint32_t made = 0, last = 0;  // first and last position
  bool held = false;            // an input or a constant that exists in any case
  bool given = false;           // an output
  bool over = false;            // computed in the memory of an input that its node reads last
};

class Lives {
 public:
  struct Most {
    uint32_t position = 0;
    uint64_t bytes = 0;
  };

  Lives(const Graph& graph, const Held& held);

  const std::vector<NodeId>& order() const { return order_; }
  uint32_t position(NodeId id) const { return positions_[id]; }
  const std::vector<Room>& rooms() const { return rooms_; }  // by value; only roots have one
  // The root of a value; 0 for an unread constant or an absent value.
  ValueId root_of(ValueId id) const { return id < roots_.size() ? roots_[id] : 0; }
  const Room& room_of(ValueId id) const { return rooms_[root_of(id)]; }
  // The position where the most bytes live.
  Most most() const;

 private:
  Room& open(const Graph& graph, ValueId id, uint32_t at);
  void visit(const Graph& graph, uint32_t at);
  void find_over(const Graph& graph, uint32_t at);

  std::vector<NodeId> order_;
  std::vector<uint32_t> positions_;  // indexed by node
  std::vector<ValueId> roots_;       // indexed by value
  std::vector<Room> rooms_;
};

}  // namespace tenon::graph
