#include "core/lazy/early.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "core/global/exchange.h"
#include "core/ops/op_rows.h"

namespace tenon::lazy {
namespace {

using graph::Graph;
using graph::kNoNode;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

constexpr size_t kList = 0, kToken = 1;  // inputs of an exchange, and its results

// Whether the node only puts elements elsewhere, as boxing does before an exchange.
bool moves_elements(const Node& node) {
  for (const OpId id : {OpId::contiguous, OpId::to, OpId::concat, OpId::clone, OpId::reshape}) {
    if (node.op == &op_row(id)) return true;
  }
  return node.op->form == OpForm::view;
}

class Early {
 public:
  explicit Early(Graph* program) : program_(*program) {}

  void run() {
    for (NodeId id = program_.first(); id != kNoNode; id = program_.next(id)) {
      order_.push_back(id);
      if (is_exchange(id)) exchanges_.push_back(id);
    }
    if (exchanges_.empty()) return;
    sort();
    placed_.assign(1 + *std::max_element(order_.begin(), order_.end()), false);
    place_ready(0);
    for (size_t i = 0; i < order_.size(); ++i) {
      const NodeId id = order_[i];
      while (is_exchange(id) && !placed_[id]) place_next(i, true);
      placed_[id] = true;
      place_ready(i + 1);
    }
  }

 private:
  bool is_exchange(NodeId id) const { return ready(id) != nullptr; }
  const int64_t* ready(NodeId id) const {
    const Node& node = program_.node(id);
    return global::ready_of(*node.op, node.attributes.data());
  }

  // The tokens go from the one to the next in the new order.
  void sort() {
    const ValueId first = program_.node(exchanges_.front()).inputs[kToken];
    const ValueId last = program_.node(exchanges_.back()).results[kToken];
    std::stable_sort(exchanges_.begin(), exchanges_.end(), [&](NodeId a, NodeId b) { return *ready(a) < *ready(b); });
    const ValueId new_last = program_.node(exchanges_.back()).results[kToken];
    std::vector<ValueId> outputs(program_.outputs().begin(), program_.outputs().end());
    std::replace(outputs.begin(), outputs.end(), last, new_last);
    ValueId token = first;
    for (const NodeId id : exchanges_) {
      program_.set_inputs(id, {program_.node(id).inputs[kList], token});
      token = program_.node(id).results[kToken];
    }
    program_.set_outputs(std::move(outputs));
  }

  // Puts the next exchanges before order_[at], as many as have what they need but for moves.
  void place_ready(size_t at) {
    while (next_ < exchanges_.size() && place_next(at, false)) {
    }
  }

  // Puts the next exchange before order_[at], and what it needs. False: it needs nodes that compute, which stay behind
  // unless `all`.
  bool place_next(size_t at, bool all) {
    std::vector<NodeId> needed;
    if (!find_needed(exchanges_[next_], all, &needed)) return false;
    ++next_;
    for (const NodeId id : needed) {
      while (at < order_.size() && placed_[order_[at]]) ++at;
      program_.move(id, at < order_.size() ? order_[at] : kNoNode);
      placed_[id] = true;
    }
    return true;
  }

  // What has to be placed so that `id` may be, itself last. False: some of it computes, and `all` is false.
  bool find_needed(NodeId id, bool all, std::vector<NodeId>* needed) const {
    std::vector<std::pair<NodeId, size_t>> path{{id, 0}};
    std::set<NodeId> met{id};
    while (!path.empty()) {
      auto& [node, input] = path.back();
      const std::vector<ValueId>& inputs = program_.node(node).inputs;
      if (input == inputs.size()) {
        needed->push_back(node);
        path.pop_back();
        continue;
      }
      const ValueId value = inputs[input++];
      const NodeId producer = value == 0 ? kNoNode : program_[value].producer;
      if (producer == kNoNode || placed_[producer] || !met.insert(producer).second) continue;
      if (!all && !moves_elements(program_.node(producer))) return false;
      path.emplace_back(producer, 0);
    }
    return true;
  }

  Graph& program_;
  std::vector<NodeId> order_;      // as recorded
  std::vector<NodeId> exchanges_;  // in their new order
  size_t next_ = 0;                // among them
  std::vector<bool> placed_;       // by node
};

}  // namespace

void begin_exchanges_early(Graph* program) { Early(program).run(); }

}  // namespace tenon::lazy
