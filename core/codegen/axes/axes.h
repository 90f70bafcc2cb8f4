// Axes: finds the dims of a graph's values that move together. An axis is a range of indices; a dim is one axis, or a
// list of axes (outermost first) where a reshape joins or splits it. If a node computes each element from the elements
// at the same index, its result and its inputs share their axes.
//
//   Axes axes(graph);
//   axes.of(value);                        // of %4 = reshape(%3 [S0, 12, 64]) [S0, 768]: the axes of %3
//   axes.aligned(node, input, axis);       // true if the node reads that input at its own index on the axis
#pragma once

#include <cstdint>
#include <vector>

#include "core/codegen/axes/access.h"
#include "core/graph/graph.h"

namespace tenon::codegen {

using AxisId = uint32_t;

class Axes {
 public:
  // Reads every node of `graph`, which must outlive this object and must not change.
  explicit Axes(graph::Graph& graph);

  const Access& access(graph::NodeId node) const { return accesses_[node]; }
  // The axes of `value`, or of one of its dims. A dim of length 1 has no axis.
  std::vector<AxisId> of(graph::ValueId value) const;
  std::vector<AxisId> of(graph::ValueId value, int32_t dim) const;
  // The length of `axis`.
  SymDim size(AxisId axis) const { return atoms_[find(axis)].size; }
  // True if element i of the result of `node` along `axis` needs exactly element i of input `input`. Both have the
  // axis.
  bool aligned(graph::NodeId node, uint32_t input, AxisId axis) const;

  // Merges the axes of values with equal dims, dim by dim, unless a value would then have an axis twice. The values
  // need not be related; the same loops can then compute them. True if any axis was merged.
  bool align(const std::vector<graph::ValueId>& values);
  // Number of merges so far. take_back() undoes all merges after the first `count`; none of the merged axes may have
  // been split since.
  size_t united() const { return united_.size(); }
  void take_back(size_t count);

 private:
  struct Atom {
    SymDim size = 1;
    AxisId parent = 0;                    // itself if it represents its class
    std::vector<AxisId> parts = {};       // not empty if it was split
    std::vector<graph::ValueId> of = {};  // values that have it; if it was split, those that had it at the time
  };
  // Undo record of one merge: the class of `from` joined the class of `to`, which had this size and this many values.
  struct United {
    AxisId from = 0, to = 0;
    SymDim size = 1;
    size_t values = 0;
  };

  AxisId make(SymDim size, std::vector<graph::ValueId> of);
  AxisId find(AxisId axis) const;
  void expand(AxisId axis, std::vector<AxisId>* into) const;
  std::vector<AxisId> of_dims(graph::ValueId value, int32_t first, int32_t count) const;
  void join(const graph::Node& node, const Link& link);
  bool join_front(std::vector<AxisId>* a, std::vector<AxisId>* b);
  bool join_back(std::vector<AxisId>* a, std::vector<AxisId>* b);
  bool split(AxisId axis, SymDim part, bool front);
  bool unite(AxisId a, AxisId b);
  bool have_one_value(AxisId fewer, AxisId more) const;
  bool equal(SymDim a, SymDim b) const;

  graph::Graph* graph_;
  std::vector<Access> accesses_;           // indexed by node
  std::vector<std::vector<AxisId>> dims_;  // by value and dim; kNone for a dim of length 1
  std::vector<Atom> atoms_;
  std::vector<United> united_;
};

}  // namespace tenon::codegen
