// Chooses row-major or channels-last for each value so that the total cost of reorders and penalties is minimal: a
// minimum cut (min_cut.h) at hint sizes. The graph expresses an order by casts that change only the order, and by the
// rules of orders (core/interpreter/order.h), which prepare() applies: a convolution has the order of its input.
//
// A node follows if it gives channels-last results for channels-last inputs. Its carriers, the inputs that determine
// the order, and its results are on one side of the cut. Any other node has the result order that it has for row-major
// inputs, and may read either order at a price. Inputs and outputs of the graph are row-major.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "core/device/device_state.h"
#include "core/graph/passes/hint_call.h"
#include "core/graph/passes/match.h"
#include "core/graph/passes/min_cut.h"
#include "core/graph/passes/passes.h"
#include "core/interpreter/order.h"
#include "core/ops/attributes.h"
#include "core/tensor/factory.h"

namespace tenon::graph {
namespace {

enum Order : size_t { kRowMajor, kChannelsLast };

// A value with channels, at hint sizes.
struct Placed {
  bool matters = false;     // the two orders differ
  TensorMeta metas[2];      // indexed by Order
  uint64_t bytes = 0;       // cost of a reorder
  uint32_t side = 0;        // its node of the cut, on the first side if it is channels-last
  uint32_t copies[2] = {};  // by Order: the cut's node for a copy in that order; 0: no copy can be needed
};

class Layouts {
 public:
  explicit Layouts(Graph* graph) : graph_(*graph), placed_(graph->value_count()) {}

  void run() {
    for (ValueId id = 1; id < placed_.size(); ++id) place(id);
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.next(id)) {
      if (!is_reorder(id)) visit(id);
    }
    for (ValueId id : graph_.outputs()) read(root(id), MinCut::kSecond);
    first_ = cut_.run();
    rewrite();
  }

 private:
  // True for a cast that changes only the order.
  bool is_reorder(NodeId id) const {
    if (!is(graph_, id, OpId::cast)) return false;
    const Value &from = graph_[graph_.node(id).inputs[0]], &to = graph_[result(graph_, id)];
    return from.dtype == to.dtype && from.device == to.device;
  }
  // `id` before all reorders.
  ValueId root(ValueId id) const {
    while (id != 0 && graph_[id].producer != kNoNode && is_reorder(graph_[id].producer)) {
      id = graph_.node(graph_[id].producer).inputs[0];
    }
    return id;
  }

  void place(ValueId id) {
    const Value& value = graph_[id];
    Placed& placed = placed_[id];
    if (value.dtype == DType::none || value.device == nullptr) return;
    const std::optional<Dims> dims = hint_dims(graph_, value);
    if (!dims) return;
    const Dims given = value.constant.defined() ? value.constant.strides() : contiguous_strides(*dims);
    placed.metas[kRowMajor] = placed.metas[kChannelsLast] = {value.dtype, *dims, given};
    if (dims->rank() < 3 || dims->rank() > 5 || element_count(*dims) == 0 || value.device->layouts) return;
    const Dims last = channels_last_strides(*dims);
    if (same_layout(*dims, given, last)) return;
    placed.matters = true;
    placed.metas[kChannelsLast].strides = last;
    placed.bytes = static_cast<uint64_t>(dtype_bytes(value.dtype, element_count(*dims)));
    placed.side = value.producer == kNoNode ? uint32_t{MinCut::kSecond} : 0;
  }

  // The inputs of `node` with input i in the order orders[i].
  std::vector<Tensor> inputs_in(const Node& node, const std::vector<Order>& orders) const {
    std::vector<Tensor> inputs(node.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (node.inputs[i] == 0) continue;
      const ValueId id = root(node.inputs[i]);
      inputs[i] = make_meta(graph_[id].device, placed_[id].metas[orders[i]]);
    }
    return inputs;
  }

  bool known(const Node& node) const {
    const auto known = [&](ValueId id) { return id == 0 || placed_[id].metas[kRowMajor].dtype != DType::none; };
    return std::all_of(node.inputs.begin(), node.inputs.end(), known) &&
           std::all_of(node.results.begin(), node.results.end(), known);
  }

  // True if input `i` of `node` may determine the order of its results.
  bool is_carrier(const Node& node, size_t i) const {
    const ValueId id = node.inputs[i];
    if (id == 0 || !placed_[root(id)].matters) return false;
    if (node.op->keeps_channels == KeepsChannels::of_first_input && i < node.own_inputs()) return i == 0;
    return graph_[id].dims.rank() == graph_[node.results[0]].dims.rank();
  }

  bool follows(const Node& node, const std::vector<Order>& orders) const {
    if (node.op->form == OpForm::view || node.op->form == OpForm::composite) return false;
    const HintCall call(node, inputs_in(node, orders));
    bool any = false;
    for (size_t i = 0; i < node.results.size(); ++i) {
      const Placed& made = placed_[node.results[i]];
      if (!made.matters) continue;
      const std::optional<Dims> strides = call.strides(i);
      if (!strides || !same_layout(made.metas[0].dims, *strides, made.metas[kChannelsLast].strides)) return false;
      any = true;
    }
    return any;
  }

  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<bool> carriers(node.inputs.size(), false);
    std::vector<Order> orders(node.inputs.size(), kRowMajor);
    const bool open = known(node);
    for (size_t i = 0; open && i < node.inputs.size(); ++i) {
      carriers[i] = is_carrier(node, i);
      if (carriers[i]) orders[i] = kChannelsLast;
    }
    if (open && follows(node, orders)) return follow(id, carriers, orders);
    give_fixed(node, open);
    for (size_t i = 0; i < node.inputs.size(); ++i) read_fixed(id, i, open);
  }

  // Adds one node of the cut for the carriers and the results of `id`.
  void follow(NodeId id, const std::vector<bool>& carriers, const std::vector<Order>& channels_last) {
    const Node& node = graph_.node(id);
    const uint32_t side = cut_.add_node();
    uint64_t moved = 0;
    for (size_t i = 0; i < carriers.size(); ++i) {
      if (!carriers[i]) continue;
      read(root(node.inputs[i]), side);
      readers_[{id, i}] = side;
      moved += placed_[root(node.inputs[i])].bytes;
    }
    for (ValueId result : node.results) {
      placed_[result].side = side;
      moved += placed_[result].bytes;
    }
    const std::vector<Order> row_major(node.inputs.size(), kRowMajor);
    DeviceState* device = device_of(graph_, node);
    const auto penalty = [&](const std::vector<Order>& orders) {
      const std::optional<LaunchTerms> terms = HintCall(node, inputs_in(node, orders)).terms(device);
      return terms ? terms->penalty : moved;
    };
    cut_.add_cost(side, MinCut::kSecond, penalty(channels_last));
    cut_.add_cost(MinCut::kFirst, side, penalty(row_major));
  }

  // Adds the results of a node that does not follow; they have the order that row-major inputs give.
  void give_fixed(const Node& node, bool open) {
    const std::vector<Order> row_major(node.inputs.size(), kRowMajor);
    for (size_t i = 0; i < node.results.size(); ++i) {
      Placed& made = placed_[node.results[i]];
      made.side = MinCut::kSecond;
      if (!open || !made.matters || node.op->form != OpForm::view) continue;
      const std::optional<Dims> strides = HintCall(node, inputs_in(node, row_major)).strides(i);
      const bool last = strides && same_layout(made.metas[0].dims, *strides, made.metas[kChannelsLast].strides);
      const Placed& from = placed_[root(node.inputs[0])];
      if (last && (!from.matters || from.side == MinCut::kSecond)) made.side = MinCut::kFirst;
    }
  }

  // Adds the price that a node that does not follow pays for a channels-last input `i`.
  void read_fixed(NodeId id, size_t i, bool open) {
    const Node& node = graph_.node(id);
    const ValueId value = root(node.inputs[i]);
    if (value == 0 || !placed_[value].matters) return;
    const uint64_t price = open ? price_of(node, i) : placed_[value].bytes;
    if (price == 0) return;
    const uint32_t side = cut_.add_node();
    cut_.add_cost(side, MinCut::kSecond, price);
    readers_[{id, i}] = side;
    read(value, side);
  }

  uint64_t price_of(const Node& node, size_t i) const {
    const uint64_t bytes = placed_[root(node.inputs[i])].bytes;
    if (node.op->form == OpForm::composite) return bytes;
    std::vector<Order> orders(node.inputs.size(), kRowMajor);
    const HintCall plain(node, inputs_in(node, orders));
    orders[i] = kChannelsLast;
    const HintCall call(node, inputs_in(node, orders));
    if (node.op->form == OpForm::view) {
      const Dims& dims = placed_[node.results[0]].metas[0].dims;
      const std::optional<Dims> strides = call.strides(0);
      return strides && same_layout(dims, *strides, contiguous_strides(dims)) ? 0 : bytes;
    }
    DeviceState* device = device_of(graph_, node);
    const std::optional<LaunchTerms> with = call.terms(device), without = plain.terms(device);
    if (!with) return without ? bytes : 0;
    return with->penalty - std::min(with->penalty, without ? without->penalty : 0);
  }

  // Lets the node `side` of the cut read `value`: in its own order, or in a copy that other readers on that side share.
  void read(ValueId value, uint32_t side) {
    Placed& placed = placed_[value];
    if (value == 0 || !placed.matters) return;
    if (placed.copies[0] == 0) {
      for (uint32_t& copy : placed.copies) copy = cut_.add_node();
      cut_.add_cost(placed.copies[kChannelsLast], placed.side, placed.bytes);
      cut_.add_cost(placed.side, placed.copies[kRowMajor], placed.bytes);
    }
    cut_.add_cost(side, placed.copies[kChannelsLast], MinCut::kNever);
    cut_.add_cost(placed.copies[kRowMajor], side, MinCut::kNever);
  }

  Order order_of(uint32_t side) const { return first_[side] ? kChannelsLast : kRowMajor; }

  // Makes every node and output read the order that the cut chose.
  void rewrite() {
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.next(id)) {
      if (is_reorder(id)) {
        keep_copy(id);
        continue;
      }
      std::vector<ValueId> inputs = graph_.node(id).inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const auto reader = readers_.find({id, i});
        const ValueId value = root(inputs[i]);
        inputs[i] = reader == readers_.end() ? value : in_order(value, order_of(reader->second), id);
      }
      if (inputs != graph_.node(id).inputs) graph_.set_inputs(id, std::move(inputs));
    }
    std::vector<ValueId> outputs(graph_.outputs().begin(), graph_.outputs().end());
    for (ValueId& id : outputs) id = in_order(root(id), kRowMajor, kNoNode);
    graph_.set_outputs(std::move(outputs));
    for (NodeId id = graph_.last(); id != kNoNode;) {
      const NodeId before = graph_.previous(id);
      const bool read =
          is_reorder(id) && (!graph_[result(graph_, id)].uses.empty() || graph_.is_output(result(graph_, id)));
      if (is_reorder(id) && !read) graph_.erase(id);
      id = before;
    }
  }

  // An existing reorder serves the nodes after it.
  void keep_copy(NodeId id) {
    const auto& attributes = graph_.node(id).attributes_as<CastAttributes>();
    const ValueId from = graph_.node(id).inputs[0];
    if (root(from) != from || (attributes.row_major == 0 && attributes.channels_last == 0)) return;
    copies_.try_emplace({from, attributes.row_major != 0 ? kRowMajor : kChannelsLast}, result(graph_, id));
  }

  // `value` in `order`, for the node `before`.
  ValueId in_order(ValueId value, Order order, NodeId before) {
    if (value == 0 || !placed_[value].matters || order_of(placed_[value].side) == order) return value;
    const auto found = copies_.find({value, order});
    if (found != copies_.end()) return found->second;
    CastAttributes attributes{};
    attributes.dtype = graph_[value].dtype;
    (order == kRowMajor ? attributes.row_major : attributes.channels_last) = 1;
    Node copy;
    copy.op = &op_row(OpId::cast);
    copy.inputs = {value};
    copy.attributes.resize((sizeof attributes + 7) / 8);
    std::memcpy(copy.attributes.data(), &attributes, sizeof attributes);
    const NodeId labelled = before == kNoNode ? graph_[value].producer : before;
    copy.label = labelled == kNoNode ? 0 : graph_.node(labelled).label;
    const ValueId made = result(graph_, graph_.insert(before, std::move(copy)));
    copies_.emplace(std::pair(value, order), made);
    return made;
  }

  Graph& graph_;
  MinCut cut_;
  std::vector<Placed> placed_;                             // indexed by value
  std::map<std::pair<NodeId, size_t>, uint32_t> readers_;  // by node and input: the node of the cut
  std::vector<bool> first_;                                // by node of the cut
  std::map<std::pair<ValueId, Order>, ValueId> copies_;
};

}  // namespace

void choose_orders(Graph* graph, const PassOptions&) { Layouts(graph).run(); }

}  // namespace tenon::graph
