#include "core/codegen/axes/axes.h"

#include <algorithm>
#include <optional>

namespace tenon::codegen {
namespace {

using graph::Graph;
using graph::kNoNode;
using graph::Node;
using graph::NodeId;
using graph::Value;
using graph::ValueId;

constexpr AxisId kNone = UINT32_MAX;

// a / b, if it is whole for all values of the symbols.
std::optional<SymDim> quotient(symbolic::Arena& arena, SymDim a, SymDim b) {
  if (b.is_number() && b.number() < 1) return std::nullopt;
  if (a.is_number() && b.is_number()) {
    if (a.number() % b.number() != 0) return std::nullopt;
    return SymDim(a.number() / b.number());
  }
  if (!arena.known({Relation::le, SymDim(1), b}).value_or(false)) return std::nullopt;
  const SymDim whole = arena.floor_div(a, b);
  if (!identical(arena.multiply(whole, b), a)) return std::nullopt;
  return whole;
}

}  // namespace

Axes::Axes(Graph& graph) : graph_(&graph) {
  const symbolic::ArenaScope scope(graph.arena());
  dims_.resize(graph.value_count());
  for (ValueId id = 1; id < graph.value_count(); ++id) {
    for (const SymDim size : dims_of(graph, id)) {
      dims_[id].push_back(identical(size, SymDim(1)) ? kNone : make(size, {id}));
    }
  }
  for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
    if (accesses_.size() <= id) accesses_.resize(id + 1);
    accesses_[id] = access_of(graph, id);
    for (const Link& link : accesses_[id].links) join(graph.node(id), link);
  }
}

AxisId Axes::make(SymDim size, std::vector<ValueId> of) {
  const auto id = static_cast<AxisId>(atoms_.size());
  atoms_.push_back({size, id, {}, std::move(of)});
  return id;
}

AxisId Axes::find(AxisId axis) const {
  while (atoms_[axis].parent != axis) axis = atoms_[axis].parent;
  return axis;
}

void Axes::expand(AxisId axis, std::vector<AxisId>* into) const {
  axis = find(axis);
  if (atoms_[axis].parts.empty()) return into->push_back(axis);
  for (const AxisId part : atoms_[axis].parts) expand(part, into);
}

std::vector<AxisId> Axes::of_dims(ValueId value, int32_t first, int32_t count) const {
  std::vector<AxisId> axes;
  for (int32_t dim = first; dim < first + count; ++dim) {
    if (dims_[value][static_cast<size_t>(dim)] != kNone) expand(dims_[value][static_cast<size_t>(dim)], &axes);
  }
  return axes;
}

std::vector<AxisId> Axes::of(ValueId value) const {
  return of_dims(value, 0, static_cast<int32_t>(dims_[value].size()));
}
std::vector<AxisId> Axes::of(ValueId value, int32_t dim) const { return of_dims(value, dim, 1); }

bool Axes::equal(SymDim a, SymDim b) const {
  return identical(a, b) || graph_->arena().known({Relation::eq, a, b}).value_or(false);
}

// Joins axes from the outermost on, then from the innermost on. The axes that remain in the middle have different
// sizes.
void Axes::join(const Node& node, const Link& link) {
  const ValueId in = node.inputs[link.input], out = node.results[0];
  const auto lists = [&] {
    return std::pair(of_dims(in, link.in_first, link.in_count), of_dims(out, link.out_first, link.out_count));
  };
  for (bool again = true; again;) {  // a split changes the lists
    auto [a, b] = lists();
    again = join_front(&a, &b) || join_back(&a, &b);
  }
}

// True if an axis was split; then no axes after it were merged yet.
bool Axes::join_front(std::vector<AxisId>* a, std::vector<AxisId>* b) {
  size_t i = 0;
  for (; i < a->size() && i < b->size(); ++i) {
    const AxisId x = (*a)[i], y = (*b)[i];
    if (!equal(atoms_[x].size, atoms_[y].size)) {
      if (split(x, atoms_[y].size, true) || split(y, atoms_[x].size, true)) return true;
      break;
    }
    unite(x, y);
  }
  a->erase(a->begin(), a->begin() + static_cast<ptrdiff_t>(i));
  b->erase(b->begin(), b->begin() + static_cast<ptrdiff_t>(i));
  return false;
}

bool Axes::join_back(std::vector<AxisId>* a, std::vector<AxisId>* b) {
  while (!a->empty() && !b->empty()) {
    const AxisId x = a->back(), y = b->back();
    if (!equal(atoms_[x].size, atoms_[y].size))
      return split(x, atoms_[y].size, false) || split(y, atoms_[x].size, false);
    unite(x, y);
    a->pop_back();
    b->pop_back();
  }
  return false;
}

// Splits `axis` into a part with `part` indices (outermost if `front`) and the rest.
bool Axes::split(AxisId axis, SymDim part, bool front) {
  if (equal(part, SymDim(0)) || equal(part, SymDim(1))) return false;
  const std::optional<SymDim> rest = quotient(graph_->arena(), atoms_[axis].size, part);
  if (!rest || equal(*rest, SymDim(1)) || equal(*rest, SymDim(0))) return false;
  const std::vector<ValueId> of = atoms_[axis].of;
  const AxisId outer = make(front ? part : *rest, of);
  const AxisId inner = make(front ? *rest : part, of);
  atoms_[axis].parts = {outer, inner};
  return true;
}

// True if a value has both axes. The class of `fewer` has at most as many values as the class of `more`.
bool Axes::have_one_value(AxisId fewer, AxisId more) const {
  return std::any_of(atoms_[fewer].of.begin(), atoms_[fewer].of.end(), [&](ValueId value) {
    const std::vector<AxisId> axes = of(value);
    return std::find(axes.begin(), axes.end(), more) != axes.end();
  });
}

// Merges two axes of equal size, unless a value has both: x + transposed x has two axes. The class with fewer values
// joins the other, so all merges together take n log n steps. The list of the smaller class is kept for take_back().
bool Axes::unite(AxisId a, AxisId b) {
  if (a == b) return false;
  const SymDim size = atoms_[a].size;
  if (atoms_[a].of.size() < atoms_[b].of.size()) std::swap(a, b);
  if (have_one_value(b, a)) return false;
  Atom &to = atoms_[a], &from = atoms_[b];
  united_.push_back({b, a, to.size, to.of.size()});
  from.parent = a;
  to.size = size;
  to.of.insert(to.of.end(), from.of.begin(), from.of.end());
  return true;
}

void Axes::take_back(size_t count) {
  for (; united_.size() > count; united_.pop_back()) {
    const United& last = united_.back();
    atoms_[last.from].parent = last.from;
    atoms_[last.to].size = last.size;
    atoms_[last.to].of.resize(last.values);
  }
}

bool Axes::align(const std::vector<ValueId>& values) {
  bool changed = false;
  for (size_t i = 1; i < values.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      const std::vector<AxisId> a = of(values[k]), b = of(values[i]);
      const auto same = [&](AxisId x, AxisId y) { return equal(size(x), size(y)); };
      if (!std::equal(a.begin(), a.end(), b.begin(), b.end(), same)) continue;
      for (size_t at = 0; at < a.size(); ++at) changed = unite(find(a[at]), find(b[at])) || changed;
    }
  }
  return changed;
}

bool Axes::aligned(NodeId node, uint32_t input, AxisId axis) const {
  axis = find(axis);
  const Node& of_node = graph_->node(node);
  for (const Link& link : accesses_[node].links) {
    if (link.input != input) continue;
    const std::vector<AxisId> in = of_dims(of_node.inputs[input], link.in_first, link.in_count);
    const std::vector<AxisId> out = of_dims(of_node.results[0], link.out_first, link.out_count);
    const auto a = std::find(in.begin(), in.end(), axis), b = std::find(out.begin(), out.end(), axis);
    if (a == in.end() || b == out.end()) continue;
    if (std::equal(in.begin(), a, out.begin(), b) || std::equal(a, in.end(), b, out.end())) return true;
  }
  return false;
}

}  // namespace tenon::codegen
