// Arguments of the functions for whole graphs, by type (arguments.h).
#pragma once

#include <vector>

#include "loader/layers/validate/arguments.h"

namespace tenon::loader::validate {

// A table of a graph, with the provider's handles of the constants in it.
template <>
struct Argument<const ep_graph_desc*> {
  Argument(Call& call, const ep_graph_desc* given);
  const ep_graph_desc* pass() {
    inner.constants = buffers.data();
    return &inner;
  }
  void after(Call&, ep_status) const {}
  void end(bool) const {}

  const ep_graph_desc* desc;
  ep_graph_desc inner{};
  std::vector<ep_buffer> buffers;  // indexed by value
  std::vector<Memory*> constants;  // by value; null: none was given
};

// The device's answers. The rule of graph_capability allocates the room, since the table holds the number of nodes.
template <>
struct Argument<ep_graph_answer*> {
  Argument(Call& call, ep_graph_answer* given) : out(given) {
    if (out == nullptr) call.refuse("A01", "the pointer to the answers is NULL");
  }
  void make_room(uint32_t count) {
    room.assign(count + 1, {});
    std::memset(room.data(), 0x5a, room.size() * sizeof(ep_graph_answer));
    before = room;
  }
  ep_graph_answer* pass() { return room.data(); }
  void after(Call& call, ep_status status);
  void end(bool ok) const {
    if (ok && wanted) std::copy(room.begin(), room.end() - 1, out);
  }

  ep_graph_answer* out;
  std::vector<ep_graph_answer> room, before;  // one more than there are nodes, as a guard
  bool wanted = false;
};

template <>
struct Argument<ep_graph_info*> : InfoArgument<ep_graph_info, EP_STRUCT_GRAPH_INFO> {
  using InfoArgument::InfoArgument;
};

// A launch of a graph, with the provider's handles in it.
template <>
struct Argument<const ep_graph_launch*> {
  Argument(Call& call, const ep_graph_launch* given);
  const ep_graph_launch* pass() {
    inner.operands = operands.data();
    return &inner;
  }
  void after(Call&, ep_status) const {}
  void end(bool) const {}

  ep_graph_launch inner{};
  std::vector<ep_buffer> operands;
  std::vector<Memory*> memories;  // null: no memory was given
  Memory* workspace = nullptr;
};

}  // namespace tenon::loader::validate
