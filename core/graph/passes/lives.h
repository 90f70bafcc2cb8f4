// Lives: from which node to which node the values of a graph take memory. Internal to core/graph/passes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::graph {

// Elements at hint sizes; none: a size is not known.
std::optional<uint64_t> elements_of(const Graph& graph, ValueId id);
// The same in bytes; 0: not known.
uint64_t bytes_of(const Graph& graph, ValueId id);

constexpr uint32_t kNoState = UINT32_MAX;

// Which inputs and outputs of a graph take no memory of their own.
struct Held {
  std::vector<bool> inputs = {};    // by input: its elements are there, whether nodes read them or not
  std::vector<uint32_t> over = {};  // by output: the input whose later state it is, in its memory; kNoState; none
  bool all_inputs = false;          // all inputs are held

  // The input whose state output `i` is.
  uint32_t state(size_t i) const { return i < over.size() ? over[i] : kNoState; }
};

// The elements of one value, which its views share.
struct Room {
  std::vector<ValueId> values;  // the root first
  uint64_t bytes = 0;           // 0: not ours to count, or not known
  uint32_t made = 0, last = 0;  // positions
  bool held = false;            // an input or a constant that is there anyway
  bool given = false;           // an output
  bool over = false;            // it is made in the memory of what its node reads for the last time
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
  const std::vector<Room>& rooms() const { return rooms_; }  // by value; of roots
  // Of a root; 0: of a constant that nobody reads, or of no value.
  ValueId root_of(ValueId id) const { return id < roots_.size() ? roots_[id] : 0; }
  const Room& room_of(ValueId id) const { return rooms_[root_of(id)]; }
  // Where most bytes live.
  Most most() const;

 private:
  Room& open(const Graph& graph, ValueId id, uint32_t at);
  void visit(const Graph& graph, uint32_t at);
  void find_over(const Graph& graph, uint32_t at);

  std::vector<NodeId> order_;
  std::vector<uint32_t> positions_;  // by node
  std::vector<ValueId> roots_;       // by value
  std::vector<Room> rooms_;
};

}  // namespace tenon::graph
