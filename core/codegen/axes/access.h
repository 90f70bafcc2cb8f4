// Access: which elements of its inputs a node reads for an element of its result, as far as the compiler knows the op.
// Internal to core/codegen.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.h"
#include "core/ops/sym_call.h"

namespace tenon::codegen {

enum class Role : uint8_t {
  opaque,  // nothing is known of it: it stays a launch of its own
  map,     // an element of the result is a function of elements of the inputs
  reduce,  // one reduction
  rows,    // maps and reductions along some dims: softmax, norms. It has a decomposition
};

// Dims of an input and dims of the result with the same elements in row-major order: index i of the one is read for
// index i of the other.
struct Link {
  uint32_t input = 0;
  int32_t in_first = 0, in_count = 1;
  int32_t out_first = 0, out_count = 1;
};

struct Access {
  Role role = Role::opaque;
  std::vector<Link> links;  // dims of an input without one are read elsewhere, or are 1
  uint32_t reduced = 0;     // of reduce and rows: bit d: dim d of input 0 is reduced
  bool view = false;        // it computes nothing
  bool picks = false;       // a reduction that takes the one element whose position input 1 says
  bool puts = false;        // it puts inputs into parts of its result, and reads each of their elements at most once
  int32_t cost = 0;         // of an element, in additions
};

// The dims of `value` as short as they are known: a symbol that is always 1 is 1.
SymDims dims_of(graph::Graph& graph, graph::ValueId value);

// The record of `node`, whose attributes may be expressions.
SymCall call_of(const graph::Node& node);

// Nodes with epilogues, several results, results on several devices, or dtypes without arithmetic are opaque; so are
// those that may meet a fault.
Access access_of(graph::Graph& graph, graph::NodeId node);

}  // namespace tenon::codegen
