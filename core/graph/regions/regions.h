// Regions: the graphs inside of a node of control flow, one for each of its functions (Node::regions). A region shares
// the arena of the graph around it and nothing else: what it reads of that graph is an operand of the node and an input
// of the region, so every pass and every list of uses sees it. Internal to core/graph.
//
//   cond        operands: the predicate, arguments     regions then, else: arguments -> results
//   while_loop  operands: state, invariants            regions cond: operands -> one bool; body: operands -> state
//   scan        operands: carry, sliced, invariants    region body: operands, slices for sliced -> carry, one of each y
//   fused       operands: arguments                    region body: arguments -> results
//
// Every region of a node has the same inputs. The last operands (arguments, invariants) are also what the functions
// read of the code around them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/ops/control.h"

namespace tenon::graph {

constexpr size_t kMostRegionDepth = 32;     // regions inside of regions
constexpr size_t kMostRegionValues = 1024;  // operands, and results, of one node

inline bool has_regions(const Node& node) { return !node.regions.empty(); }
// Whether its region is to be one kernel, and not control flow.
bool is_fused(const Node& node);

// A node that computes those results of `node`, a fused one, for which `wanted` says so, and reads what they need. Its
// region is its own.
Node part_of(const Node& node, const std::vector<bool>& wanted);

// The number of state operands of a loop, or of carried ones of a scan; 0 for a cond.
size_t carried_count(const Node& node);
// The number of operands of a scan that are given slice by slice.
size_t sliced_count(const Node& node);
// Operands of the node from this one on are also inputs of its regions.
size_t first_argument(const Node& node);
// The first operand that has the same value in each step. A pass may leave such an operand out.
size_t first_invariant(const Node& node);

// The fields of the attributes of `op`, a row of the op table or of control flow.
std::span<const AttributeField> fields_of(const OpInfo& op);

// What the node's regions say of its results: dtype, dims, device. Checks that the node is one: its regions, their
// inputs and their results. Throws invalid_argument; what it requires of open sizes becomes guards.
std::vector<Value> infer_regions(Graph& graph, const Node& node);

// "f32 [S0, 4] on cpu:0"
std::string type_text(const symbolic::Arena& arena, const Value& value);

// Calls `visit(region)` for every region of the nodes of `graph`, not for those inside of regions.
template <class Visit>
void for_each_region(const Graph& graph, Visit visit) {
  for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
    for (const std::shared_ptr<Graph>& region : graph.node(id).regions) visit(*region);
  }
}

}  // namespace tenon::graph
