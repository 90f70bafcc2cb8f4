#include "core/graph/regions/regions.h"

#include <algorithm>
#include <utility>

#include "core/device/device_state.h"
#include "core/ops/sym_call.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

using control::Kind;

const control::Attributes& attributes_of(const Node& node) { return node.attributes_as<control::Attributes>(); }

template <class... Parts>
[[noreturn]] void wrong(const Node& node, fmt::format_string<const Parts&...> text, const Parts&... parts) {
  throw Error(Subject{node.op->name}, Code::invalid_argument, fmt::format(text, parts...));
}

class Inference {
 public:
  Inference(Graph& graph, const Node& node) : graph_(graph), node_(node), row_(control::row_of(*node.op)) {}

  std::vector<Value> run() {
    graph_.arena().context(node_.op->name);
    check_counts();
    for (size_t k = 0; k < node_.regions.size(); ++k) check_inputs(k);
    std::vector<Value> results = of_kind();
    if (results.empty()) wrong(node_, "it has no results.");
    return results;
  }

 private:
  const Graph& region(size_t k) const { return *node_.regions[k]; }
  const Value& output(size_t k, size_t i) const { return region(k)[region(k).outputs()[i]]; }
  const Value& operand(size_t i) const { return graph_[node_.inputs[i]]; }
  std::string text(const Value& value) const { return type_text(graph_.arena(), value); }

  bool equal(SymDim a, SymDim b) {
    if (identical(a, b)) return true;
    const Condition condition{Relation::eq, a, b};
    return graph_.arena().known(condition).value_or(false) || graph_.arena().require(condition);
  }
  bool same(const Value& a, const Value& b) {
    if (a.dtype != b.dtype || a.device != b.device || a.dims.rank() != b.dims.rank()) return false;
    for (int32_t axis = 0; axis < a.dims.rank(); ++axis) {
      if (!equal(a.dims[axis], b.dims[axis])) return false;
    }
    return true;
  }

  void check_counts() {
    if (node_.regions.size() != row_.body_count) {
      wrong(node_, "it has {} regions, but needs {}.", node_.regions.size(), row_.body_count);
    }
    if (node_.attributes.size() * 8 < sizeof(control::Attributes)) wrong(node_, "its numbers are missing.");
    if (std::count(node_.inputs.begin(), node_.inputs.end(), 0u) != 0) wrong(node_, "an operand is absent.");
    if (!node_.scalars.empty() || !node_.epilogues.empty() || !node_.patches.empty() || node_.device != nullptr) {
      wrong(node_, "it has scalars, epilogues or a device, which control flow does not have.");
    }
    const control::Attributes& numbers = attributes_of(node_);
    const int64_t least = std::min({numbers.carried, numbers.sliced, numbers.length, numbers.most});
    if (least < 0 || numbers.limited < 0 || numbers.limited > 1) wrong(node_, "a number of it is out of range.");
    const auto most = static_cast<int64_t>(kMostRegionValues);
    if (numbers.carried > most || numbers.sliced > most) wrong(node_, "it carries or slices too many values.");
    if (first_invariant(node_) > node_.inputs.size() || node_.inputs.size() > kMostRegionValues) {
      wrong(node_, "it has {} operands, which are too few or too many.", node_.inputs.size());
    }
    for (size_t k = 0; k < node_.regions.size(); ++k) check_region(k);
  }

  void check_region(size_t k) {
    if (node_.regions[k] == nullptr || &region(k).arena() != &graph_.arena()) {
      wrong(node_, "region {} does not share the sizes of the graph around it.", row_.bodies[k]);
    }
    if (region(k).outputs().size() > kMostRegionValues) wrong(node_, "it has too many results.");
    const size_t needed = node_.inputs.size() - first_argument(node_);
    if (region(k).inputs().size() != needed) {
      wrong(node_, "region {} has {} inputs, but the node has {} operands for it.", row_.bodies[k],
            region(k).inputs().size(), needed);
    }
  }

  void check_inputs(size_t k) {
    for (size_t i = 0; i < region(k).inputs().size(); ++i) {
      const size_t at = i + first_argument(node_);
      Value expected{operand(at).dtype, operand(at).dims, operand(at).device};
      const bool sliced = at >= carried_count(node_) && at < carried_count(node_) + sliced_count(node_);
      if (sliced) expected.dims = without_first(at);
      const Value& have = region(k)[region(k).inputs()[i]];
      if (same(have, expected)) continue;
      wrong(node_, "input {} of region {} is {}, but the operand gives {}.", i, row_.bodies[k], text(have),
            text(expected));
    }
  }

  SymDims without_first(size_t at) {
    const SymDims& dims = operand(at).dims;
    if (dims.rank() == 0) wrong(node_, "operand {} is given slice by slice, but has no axis.", at);
    SymDims rest;
    for (int32_t axis = 1; axis < dims.rank(); ++axis) rest.push_back(dims[axis]);
    return rest;
  }

  void check_predicate(const Value& value, std::string_view which) {
    bool one = value.dtype == DType::boolean;
    for (SymDim dim : value.dims) one = one && equal(dim, 1);
    if (!one) wrong(node_, "{} must be one bool, but it is {}.", which, text(value));
  }

  std::vector<Value> of_kind() {
    switch (row_.kind) {
      case Kind::cond: return of_cond();
      case Kind::while_loop: return of_loop();
      case Kind::fused: return of_fused();
      case Kind::scan: break;
    }
    return of_scan();
  }

  std::vector<Value> of_fused() {
    std::vector<Value> results;
    for (size_t i = 0; i < region(0).outputs().size(); ++i)
      results.push_back(result_of(output(0, i), output(0, i).dims));
    return results;
  }

  static Value result_of(const Value& value, const SymDims& dims) { return {value.dtype, dims, value.device}; }

  std::vector<Value> of_cond() {
    check_predicate(operand(0), "the predicate");
    if (region(0).outputs().size() != region(1).outputs().size()) {
      wrong(node_, "both branches must give the same number of results, but the first gives {} and the second {}.",
            region(0).outputs().size(), region(1).outputs().size());
    }
    std::vector<Value> results;
    for (size_t i = 0; i < region(0).outputs().size(); ++i) {
      if (!same(output(0, i), output(1, i))) {
        wrong(node_, "both branches must give the same types, but result {} is {} in the first and {} in the second.",
              i, text(output(0, i)), text(output(1, i)));
      }
      results.push_back(result_of(output(0, i), output(0, i).dims));
    }
    return results;
  }

  // Checks that the first `count` results of region `k` have the types of the operands.
  void check_carried(size_t k, size_t count, std::string_view what) {
    for (size_t i = 0; i < count; ++i) {
      if (same(operand(i), output(k, i))) continue;
      wrong(node_, "a step must keep the types of the {}, but value {} is {} before a step and {} after it.", what, i,
            text(operand(i)), text(output(k, i)));
    }
  }

  std::vector<Value> of_loop() {
    if (region(0).outputs().size() != 1) wrong(node_, "its condition gives {} results.", region(0).outputs().size());
    check_predicate(output(0, 0), "the result of the condition");
    const size_t count = region(1).outputs().size();
    check_carried(1, count, "state");
    std::vector<Value> results;
    for (size_t i = 0; i < count; ++i) results.push_back(result_of(operand(i), operand(i).dims));
    return results;
  }

  std::vector<Value> of_scan() {
    const size_t carried = carried_count(node_);
    if (region(0).outputs().size() < carried) {
      wrong(node_, "a step gives {} results, but carries {}.", region(0).outputs().size(), carried);
    }
    check_carried(0, carried, "carry");
    SymDim length = attributes_of(node_).length;
    for (size_t i = 0; i < sliced_count(node_); ++i) {
      const SymDim own = operand(carried + i).dims[0];
      if (i != 0 && !equal(own, length)) {
        wrong(node_, "its sliced operands have {} and {} slices.", graph_.arena().text(length),
              graph_.arena().text(own));
      }
      length = i == 0 ? own : length;
    }
    std::vector<Value> results;
    for (size_t i = 0; i < carried; ++i) results.push_back(result_of(operand(i), operand(i).dims));
    for (size_t i = carried; i < region(0).outputs().size(); ++i) {
      const Value& y = output(0, i);
      if (y.dims.rank() == EP_MAX_RANK) wrong(node_, "result {} of a step has {} axes already.", i, EP_MAX_RANK);
      SymDims dims;
      dims.push_back(length);
      for (SymDim dim : y.dims) dims.push_back(dim);
      results.push_back(result_of(y, dims));
    }
    return results;
  }

  Graph& graph_;
  const Node& node_;
  const control::Row& row_;
};

}  // namespace

bool is_fused(const Node& node) { return has_regions(node) && control::row_of(*node.op).kind == Kind::fused; }

Node part_of(const Node& node, const std::vector<bool>& wanted) {
  const Graph& region = *node.regions[0];
  std::vector<bool> needed(region.value_count(), false);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) needed[region.outputs()[i]] = true;
  }
  const auto makes_needed = [&](NodeId id) {
    const std::vector<ValueId>& results = region.node(id).results;
    return std::any_of(results.begin(), results.end(), [&](ValueId result) { return needed[result]; });
  };
  for (NodeId id = region.last(); id != kNoNode; id = region.previous(id)) {
    if (!makes_needed(id)) continue;
    for (ValueId input : region.node(id).inputs) needed[input] = true;
  }
  const std::shared_ptr<Graph> made = region.new_region();
  std::vector<ValueId> of(region.value_count(), 0);  // by value of `region`: the value of `made`
  Node part = node;
  part.inputs.clear();
  part.results.clear();
  part.regions = {made};
  for (size_t i = 0; i < region.inputs().size(); ++i) {
    const ValueId input = region.inputs()[i];
    if (!needed[input]) continue;
    of[input] = made->add_input(region[input].dtype, region[input].dims, region[input].device);
    part.inputs.push_back(node.inputs[i]);
  }
  for (ValueId id = 1; id < region.value_count(); ++id) {
    if (needed[id] && region[id].constant.defined()) of[id] = made->add_constant(region[id].constant);
  }
  for (NodeId id = region.first(); id != kNoNode; id = region.next(id)) {
    if (!makes_needed(id)) continue;
    Node copy = region.node(id);
    for (ValueId& input : copy.inputs) input = of[input];
    if (copy.label != 0) copy.label = made->add_label(region.labels()[copy.label]);
    const std::vector<ValueId> results = std::exchange(copy.results, {});
    const NodeId put = made->append(std::move(copy), results.size());
    for (size_t i = 0; i < results.size(); ++i) of[results[i]] = made->node(put).results[i];
  }
  std::vector<ValueId> outputs;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) outputs.push_back(of[region.outputs()[i]]);
  }
  made->set_outputs(std::move(outputs));
  return part;
}

size_t carried_count(const Node& node) {
  switch (control::row_of(*node.op).kind) {
    case Kind::fused:
    case Kind::cond: return 0;
    case Kind::while_loop: return node.regions.back()->outputs().size();
    default: return static_cast<size_t>(attributes_of(node).carried);
  }
}

size_t sliced_count(const Node& node) {
  const bool scans = control::row_of(*node.op).kind == Kind::scan;
  return scans ? static_cast<size_t>(attributes_of(node).sliced) : 0;
}

size_t first_argument(const Node& node) { return control::row_of(*node.op).first; }

size_t first_invariant(const Node& node) { return first_argument(node) + carried_count(node) + sliced_count(node); }

std::span<const AttributeField> fields_of(const OpInfo& op) {
  return control::is_control(op) ? control::attribute_fields() : attribute_fields(op);
}

std::string type_text(const symbolic::Arena& arena, const Value& value) {
  std::string dims;
  for (SymDim dim : value.dims) dims += (dims.empty() ? "" : ", ") + arena.text(dim);
  return fmt::format("{} [{}] on {}", dtype_name(value.dtype), dims,
                     value.device == nullptr ? "no device" : value.device->opened->spelling);
}

std::vector<Value> infer_regions(Graph& graph, const Node& node) { return Inference(graph, node).run(); }

}  // namespace tenon::graph
