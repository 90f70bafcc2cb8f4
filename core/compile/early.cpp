#include "core/compile/early.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/global/exchange.h"
#include "core/graph/passes/match.h"
#include "core/ops/attributes.h"
#include "core/ops/op_rows.h"
#include "ep_api/ep_api.h"

namespace tenon::compilation {
namespace {

using graph::Graph;
using graph::kNoNode;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

constexpr size_t kList = 0, kToken = 1;  // inputs and results of an exchange

// True if the node only moves elements, as boxing does before an exchange, or takes very little time, such as the
// scaling of a gradient by an optimiser.
bool is_cheap(const Node& node) {
  for (const OpId id : {OpId::contiguous, OpId::to, OpId::concat, OpId::clone, OpId::reshape}) {
    if (node.op == &op_row(id)) return true;
  }
  return node.op->form == OpForm::view || node.op->form == OpForm::elementwise;
}

class Early {
 public:
  explicit Early(Graph* program) : program_(*program) {}

  void run() {
    find();
    if (exchanges_.empty()) return;
    join();
    find();
    hand_on();
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
  // Small sums that may be merged.
  struct Bucket {
    std::set<NodeId> members;
    int64_t bytes = 0, limit = global::kFirstBucket;
    int64_t asked = 0;  // by the first member
  };
  // The key of sums that can be merged on all ranks: communicator, kind, element type and memory.
  using Road = std::tuple<const global::Communicator*, global::Exchange, DType, DeviceState*>;

  std::optional<global::ExchangeNode> exchange(NodeId id) const {
    const Node& node = program_.node(id);
    return global::exchange_of(*node.op, node.attributes.data());
  }
  bool is_exchange(NodeId id) const { return exchange(id).has_value(); }
  const graph::Value& list_of(NodeId id) const { return program_[program_.node(id).inputs[kList]]; }

  void find() {
    order_.clear();
    for (NodeId id = program_.first(); id != kNoNode; id = program_.next(id)) order_.push_back(id);
    exchanges_.clear();
    std::copy_if(order_.begin(), order_.end(), std::back_inserter(exchanges_),
                 [&](NodeId id) { return is_exchange(id); });
  }

  void sort() {
    std::stable_sort(exchanges_.begin(), exchanges_.end(),
                     [&](NodeId a, NodeId b) { return exchange(a)->ready < exchange(b)->ready; });
  }

  // Passes the token from one exchange to the next, in the order in which they are ready.
  void hand_on() {
    ValueId token = program_.node(exchanges_.front()).inputs[kToken];
    const ValueId last = program_.node(exchanges_.back()).results[kToken];
    sort();
    std::vector<ValueId> outputs(program_.outputs().begin(), program_.outputs().end());
    std::replace(outputs.begin(), outputs.end(), last, program_.node(exchanges_.back()).results[kToken]);
    for (const NodeId id : exchanges_) {
      program_.set_inputs(id, {program_.node(id).inputs[kList], token});
      token = program_.node(id).results[kToken];
    }
    program_.set_outputs(std::move(outputs));
  }

  void join() {
    const std::vector<NodeId> recorded = exchanges_;
    sort();  // merges lists that are made one after another
    std::map<Road, Bucket> open;
    std::vector<Bucket> full;
    for (const NodeId id : exchanges_) {
      const global::ExchangeNode each = *exchange(id);
      const graph::Value& list = list_of(id);
      if (each.plan->exchange.kind != global::Collective::all_reduce || !list.dims[0].is_number()) continue;
      const int64_t bytes = dtype_bytes(list.dtype, list.dims[0].number());
      if (bytes >= global::kLarge) continue;
      Bucket& bucket = open[{each.plan->line, each.plan->exchange, list.dtype, list.device}];
      const bool fits = bucket.bytes + bytes <= bucket.limit && each.ready <= bucket.asked;
      if (!bucket.members.empty() && !fits) {
        full.push_back(std::exchange(bucket, {}));
        bucket.limit = global::kBucket;
      }
      bucket.asked = bucket.members.empty() ? each.asked : std::min(bucket.asked, each.asked);
      bucket.members.insert(id);
      bucket.bytes += bytes;
    }
    for (auto& [road, bucket] : open) full.push_back(std::move(bucket));
    for (const Bucket& bucket : full) {
      std::vector<NodeId> members;
      std::copy_if(recorded.begin(), recorded.end(), std::back_inserter(members),
                   [&](NodeId id) { return bucket.members.contains(id); });
      if (members.size() > 1) make_one(members);
    }
  }

  // Merges `members` at the position of the first one in recording order: all lists exist there, and no sum has been
  // read yet. Nodes that only move elements of the lists may come later until the exchange is placed.
  void make_one(const std::vector<NodeId>& members) {
    Node all = program_.node(members.front());
    all.results.clear();
    std::vector<ValueId> lists;
    int64_t size = 0, ready = 0;
    for (const NodeId id : members) {
      lists.push_back(program_.node(id).inputs[kList]);
      size += list_of(id).dims[0].number();
      ready = std::max(ready, exchange(id)->ready);
    }
    all.inputs[kList] = one_list(std::move(lists), members.back());
    global::set_size(all.attributes.data(), size, ready);
    const NodeId made = program_.insert(members.front(), std::move(all), 2);
    const ValueId sums = program_.node(made).results[kList];
    int64_t begin = 0;
    for (const NodeId id : members) {
      SliceAttributes part{};
      part.start = begin;
      part.end = begin += list_of(id).dims[0].number();
      part.step = 1;
      const Node& node = program_.node(id);
      const ValueId sum = node.results[kList], token = node.results[kToken], before = node.inputs[kToken];
      program_.replace(sum, graph::put_before(&program_, members.front(), OpId::slice, {sums},
                                              {.attributes = graph::words_of(part)}));
      program_.replace(token, id == members.front() ? program_.node(made).results[kToken] : before);
    }
    for (const NodeId id : members) program_.erase(id);
  }

  // The concatenation of the lists, before the node `at`.
  ValueId one_list(std::vector<ValueId> lists, NodeId at) {
    constexpr ptrdiff_t kMostParts = EP_MAX_OPERANDS - 1;  // one operand is the result
    while (lists.size() > 1) {
      std::vector<ValueId> longer;
      for (auto from = lists.begin(); from != lists.end();) {
        const auto to = from + std::min<ptrdiff_t>(kMostParts, lists.end() - from);
        std::vector<ValueId> parts(from, to);
        longer.push_back(parts.size() == 1 ? parts[0]
                                           : graph::put_before(&program_, at, OpId::concat, std::move(parts),
                                                               {.attributes = graph::words_of(AxisAttributes{})}));
        from = to;
      }
      lists = std::move(longer);
    }
    return lists[0];
  }

  // Places as many exchanges before order_[at] as have their inputs ready, not counting cheap nodes.
  void place_ready(size_t at) {
    while (next_ < exchanges_.size() && place_next(at, false)) {
    }
  }

  // Places the next exchange, with the nodes that it needs, before order_[at]. If it needs expensive nodes, it returns
  // false, unless `all` is true.
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

  // Finds the nodes that must be placed before `id`, and `id` itself as the last one. Returns false if one of them is
  // expensive and `all` is false.
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
      if (!all && !is_cheap(program_.node(producer))) return false;
      path.emplace_back(producer, 0);
    }
    return true;
  }

  Graph& program_;
  std::vector<NodeId> order_;      // the nodes in the recorded order
  std::vector<NodeId> exchanges_;  // the exchanges in their new order
  size_t next_ = 0;                // index of the next one
  std::vector<bool> placed_;       // indexed by node
};

}  // namespace

void begin_exchanges_early(Graph* program) { Early(program).run(); }

}  // namespace tenon::compilation
