// Axes: which dims of which values of a graph move together. An axis is a range of indices; a dim is one axis, or a
// list of axes (outermost first) where a reshape joins or splits it. Values that are read and made element by element
// share their axes, so the index of one on an axis is the index of the other.
//
//   Axes axes(graph);
//   axes.of(value);                        // of %4 = reshape(%3 [S0, 12, 64]) [S0, 768]: the axes of %3
//   axes.aligned(node, input, axis);       // whether the node reads that input where its own index on the axis is
#pragma once

#include <cstdint>
#include <vector>

#include "core/codegen/axes/access.h"
#include "core/graph/graph.h"

namespace tenon::codegen {

using AxisId = uint32_t;

class Axes {
 public:
  // Reads every node of `graph`, which must outlive it and stays as it is.
  explicit Axes(graph::Graph& graph);

  const Access& access(graph::NodeId node) const { return accesses_[node]; }
  // The axes of `value`, and of one of its dims: none of a dim that is 1.
  std::vector<AxisId> of(graph::ValueId value) const;
  std::vector<AxisId> of(graph::ValueId value, int32_t dim) const;
  // Their length.
  SymDim size(AxisId axis) const { return atoms_[find(axis)].size; }
  // Whether element i on `axis` of the result of `node` needs element i of its input number `input` there, and no other
  // one. Both have the axis.
  bool aligned(graph::NodeId node, uint32_t input, AxisId axis) const;

  // Makes the axes of values of equal dims the same ones, dim by dim, where no value would have one twice: values that
  // have nothing to do with each other, but that loops of the same lengths make. Whether that changed anything.
  bool align(const std::vector<graph::ValueId>& values);
  // How many pairs of axes were made one so far. take_back() makes those after the first `count` of them two again;
  // none of them may have been split since.
  size_t united() const { return united_.size(); }
  void take_back(size_t count);

 private:
  struct Atom {
    SymDim size = 1;
    AxisId parent = 0;                    // itself: it stands for its class
    std::vector<AxisId> parts = {};       // not empty: it was split
    std::vector<graph::ValueId> of = {};  // values that have it; of one that was split those at the time
  };
  // A record of one union: the class of `from` joined the class of `to`, which had this size and this many values.
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
  std::vector<Access> accesses_;           // by node
  std::vector<std::vector<AxisId>> dims_;  // by value and dim; kNone where it is 1
  std::vector<Atom> atoms_;
  std::vector<United> united_;
};

}  // namespace tenon::codegen
