// Regions: the graphs inside of a node of control flow, one for each of its functions (Node::regions). A region shares
// only the arena with the surrounding graph. Every value that it reads from there is an operand of the node and an
// input of the region, so passes and use lists see it. Internal to core/graph.
//
//   cond        operands: the predicate, arguments     regions then, else: arguments -> results
//   while_loop  operands: state, invariants            regions cond: operands -> one bool; body: operands -> state
//   scan        operands: carry, sliced, invariants    region body: operands, slices for sliced -> carry, one of each y
//   fused       operands: arguments                    region body: arguments -> results
//
// All regions of a node have the same inputs. The last operands (arguments, invariants) include the values that the
// functions read from the surrounding code.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/ops/control.h"

namespace tenon::graph {

constexpr size_t kMostRegionDepth = 32;     // nesting of regions
constexpr size_t kMostRegionValues = 1024;  // operands, or results, of one node

inline bool has_regions(const Node& node) { return !node.regions.empty(); }
// True if its region becomes one kernel and is not control flow.
bool is_fused(const Node& node);

// A node with a new region that computes only the results of `node`, a fused node, for which `wanted` is true.
Node part_of(const Node& node, const std::vector<bool>& wanted);

// The number of state operands of a loop, or of carry operands of a scan; 0 for a cond.
size_t carried_count(const Node& node);
// The number of operands of a scan that are sliced.
size_t sliced_count(const Node& node);
// The first operand of the node that is also an input of its regions; all later ones are too.
size_t first_argument(const Node& node);
// The first operand that has the same value in each step. A pass may remove such operands.
size_t first_invariant(const Node& node);

// The attribute fields of `op`, which is in the op table or is control flow.
std::span<const AttributeField> fields_of(const OpInfo& op);

// Dtype, dims and device of the node's results, from its regions. Checks the regions, their inputs and their results.
// Throws invalid_argument; requirements on open sizes become guards.
std::vector<Value> infer_regions(Graph& graph, const Node& node);

// "f32 [S0, 4] on cpu:0"
std::string type_text(const symbolic::Arena& arena, const Value& value);

// Calls `visit(region)` for every region of the nodes of `graph`, but not for nested regions.
template <class Visit>
void for_each_region(const Graph& graph, Visit visit) {
  for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
    for (const std::shared_ptr<Graph>& region : graph.node(id).regions) visit(*region);
  }
}

}  // namespace tenon::graph
