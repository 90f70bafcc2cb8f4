// Access: the input elements that a node reads for one element of its result, if the compiler knows the op. Internal to
// core/codegen.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.h"
#include "core/ops/sym_call.h"

namespace tenon::codegen {

enum class Role : uint8_t {
  opaque,  // unknown: the node stays a launch of its own
  map,     // an element of the result is a function of elements of the inputs
  reduce,  // one reduction
  rows,    // maps and reductions along some dims, such as softmax and norms; the op has a decomposition
};

// Dims of an input and dims of the result that have the same elements in row-major order: the element at index i of the
// result needs the element at index i of the input.
struct Link {
  uint32_t input = 0;
  int32_t in_first = 0, in_count = 1;
  int32_t out_first = 0, out_count = 1;
};

struct Access {
  Role role = Role::opaque;
  std::vector<Link> links;  // input dims without a link have length 1 or are read at other indices
  uint32_t reduced = 0;     // for reduce and rows: bit d is set if dim d of input 0 is reduced
  bool view = false;        // a view, which computes nothing
  bool picks = false;       // a reduction that takes one element, at the position that input 1 gives
  bool puts = false;        // it copies inputs into parts of its result, and reads each of their elements at most once
  int32_t cost = 0;         // cost of one element, in additions
};

// The dims of `value`, simplified: a symbol that is always 1 becomes 1.
SymDims dims_of(graph::Graph& graph, graph::ValueId value);

// The node as a call; its attributes may be expressions.
SymCall call_of(const graph::Node& node);

// The access of `node`. Opaque are nodes with epilogues, several results, results on several devices, or dtypes without
// arithmetic, and nodes that may raise a fault.
Access access_of(graph::Graph& graph, graph::NodeId node);

}  // namespace tenon::codegen
