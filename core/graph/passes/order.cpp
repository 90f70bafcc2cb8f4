// Moves nodes so that fewer bytes live at once.
#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "core/graph/passes/lives.h"
#include "core/graph/passes/passes.h"
#include "core/graph/passes/recompute.h"
#include "core/graph/regions/regions.h"
#include "core/ops/control.h"

namespace tenon::graph {
namespace {

constexpr size_t kMostTogether = 32;  // most nodes that move together
constexpr uint64_t kLeast = 1024;     // least bytes of a value for which a node is moved forward
constexpr int kMostRounds = 8;
// A limit for the positions that all moves together change and the readers that they visit: at most about a second of
// work.
constexpr size_t kMostLooks = size_t{1} << 28;

// Nodes are numbered in program order. Views are left out: a view comes before its first reader. A place is a position
// in the new order.
class Ordering {
 public:
  Ordering(Graph* graph, const Held& held) : graph_(*graph), lives_(*graph, held), held_(held) {
    for (NodeId id : lives_.order()) {
      if (!is_view(id)) nodes_.push_back(id);
    }
    places_.resize(nodes_.size());
    std::iota(places_.begin(), places_.end(), 0);
    order_ = places_;
    find_rooms();
  }

  void run() {
    if (nodes_.size() < 2 || several_devices()) return;
    const auto before = bytes();
    for (int round = 0; round < kMostRounds && left_ > 0; ++round) {
      const std::vector<uint32_t> last = order_;
      finish_early();
      begin_late();
      if (order_ == last) break;
    }
    if (bytes() < before) apply();
  }

 private:
  using Nodes = std::set<uint32_t>;

  // Values that share memory: an input, or a result with its views.
  struct Space {
    uint64_t bytes = 0;
    uint32_t maker = kNobody;
    std::vector<uint32_t> readers = {};
    bool given = false;  // an output, which lives to the end
    bool state = false;  // an input whose later state is an output
  };
  static constexpr uint32_t kNobody = UINT32_MAX;

  bool is_view(NodeId id) const { return graph_.node(id).op->form == OpForm::view; }

  void find_rooms() {
    spaces_.resize(graph_.value_count());
    read_.resize(nodes_.size());
    made_.resize(nodes_.size());
    movable_.resize(nodes_.size());
    waits_.resize(nodes_.size());
    for (ValueId id = 1; id < graph_.value_count(); ++id) {
      if (lives_.root_of(id) != id) continue;
      spaces_[id].bytes = lives_.rooms()[id].bytes;
      spaces_[id].given = lives_.rooms()[id].given;
    }
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      if (held_.state(i) != kNoState) spaces_[graph_.inputs()[held_.state(i)]].state = true;
    }
    for (uint32_t at = 0; at < nodes_.size(); ++at) {
      const Node& node = graph_.node(nodes_[at]);
      std::set<ValueId> roots;
      for (ValueId input : node.inputs) {
        if (input != 0) roots.insert(lives_.root_of(input));
      }
      for (ValueId root : roots) spaces_[root].readers.push_back(at);
      read_[at].assign(roots.begin(), roots.end());
      made_[at] = node.results;
      for (ValueId result : node.results) spaces_[result].maker = at;
      movable_[at] = !control::is_control(*node.op) || is_fused(node);
      if (!movable_[at]) fixed_ = true;
    }
    for (uint32_t at = 0; at < nodes_.size(); ++at) {
      waits_[at] = std::any_of(read_[at].begin(), read_[at].end(), [&](ValueId input) {
        const Space& space = spaces_[input];
        return space.bytes > 0 && space.maker != kNobody && !movable_[space.maker];
      });
    }
  }

  bool several_devices() const {
    std::set<const DeviceState*> devices;
    for (NodeId id : nodes_) {
      for (ValueId result : graph_.node(id).results) devices.insert(graph_[result].device);
    }
    return devices.size() > 1;
  }

  // The position of the last node that reads the value; without readers, of the node that computes it.
  uint32_t last(const Space& space) const {
    uint32_t place = space.maker == kNobody ? 0 : places_[space.maker];
    spend(space.readers.size());
    for (uint32_t reader : space.readers) place = std::max(place, places_[reader]);
    return space.given ? static_cast<uint32_t>(nodes_.size()) : place;
  }
  uint32_t last_reader(const Space& space) const {
    spend(space.readers.size());
    return *std::max_element(space.readers.begin(), space.readers.end(),
                             [&](uint32_t a, uint32_t b) { return places_[a] < places_[b]; });
  }
  // The last place of readers that are not in `nodes`; at least `least`.
  uint32_t last_outside(const Space& space, const Nodes& nodes, uint32_t least) const {
    spend(space.readers.size());
    for (uint32_t reader : space.readers) {
      if (nodes.count(reader) == 0) least = std::max(least, places_[reader]);
    }
    return least;
  }

  // The most bytes that live at one place, and the sum over all places.
  std::pair<int64_t, int64_t> bytes() const {
    std::vector<int64_t> change(nodes_.size() + 2, 0);
    for (const Space& space : spaces_) {
      if (space.bytes == 0) continue;
      change[space.maker == kNobody ? 0 : places_[space.maker]] += static_cast<int64_t>(space.bytes);
      change[last(space) + 1] -= static_cast<int64_t>(space.bytes);
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    return {*std::max_element(change.begin(), change.end()),
            std::accumulate(change.begin(), change.end() - 2, int64_t{0})};
  }

  // --- values that end early

  // Moves nodes that lead only to results without memory of their own, such as new states, to the place where their
  // inputs are ready, each together with more and more of the nodes that compute its inputs.
  void finish_early() {
    if (fixed_) return;  // readers of later values, such as results of exchanges, would wait for them
    for (uint32_t at = 0; at < nodes_.size() && left_ > 0; ++at) {
      if (!is_end(at)) continue;
      Nodes nodes{at};
      do {
        put_early(nodes, place_of_inputs(nodes));
      } while (nodes.size() < kMostTogether && grow(&nodes));
    }
  }

  void put_early(const Nodes& ends, uint32_t place) {
    Nodes needed;
    if (find_needed(ends, place, &needed) && find_place(needed, &place) && frees(needed, place)) {
      move(needed, place + 1);
    }
  }

  bool is_end(uint32_t at) const {
    return std::all_of(made_[at].begin(), made_[at].end(),
                       [&](ValueId made) { return spaces_[made].readers.empty() && spaces_[made].bytes == 0; });
  }

  // The place of the last input that takes memory.
  uint32_t place_of_inputs(const Nodes& nodes) const {
    uint32_t place = 0;
    for (uint32_t at : nodes) {
      for (ValueId input : read_[at]) {
        const Space& space = spaces_[input];
        const bool outside = space.maker != kNobody && nodes.count(space.maker) == 0;
        if (outside && space.bytes >= kLeast) place = std::max(place, places_[space.maker]);
      }
    }
    return place;
  }

  // Finds `ends` and the nodes that they need after `place`. Returns false if there are too many.
  bool find_needed(const Nodes& ends, uint32_t place, Nodes* needed) const {
    *needed = ends;
    std::vector<uint32_t> next(ends.begin(), ends.end());
    while (!next.empty()) {
      const uint32_t at = next.back();
      next.pop_back();
      for (ValueId input : read_[at]) {
        const uint32_t maker = spaces_[input].maker;
        if (maker != kNobody && places_[maker] > place && needed->insert(maker).second) next.push_back(maker);
      }
      if (needed->size() > kMostTogether) return false;
    }
    return true;
  }

  // Finds the place after which they may come: a state is overwritten only after all its other readers. Returns false
  // if other nodes need them there.
  bool find_place(const Nodes& nodes, uint32_t* after) const {
    for (uint32_t at : nodes) {
      for (ValueId input : read_[at]) {
        const Space& space = spaces_[input];
        if (space.state && nodes.count(last_reader(space)) != 0) *after = last_outside(space, nodes, *after);
      }
    }
    for (uint32_t at : nodes) {
      for (ValueId result : made_[at]) {
        for (uint32_t reader : spaces_[result].readers) {
          if (nodes.count(reader) == 0 && places_[reader] <= *after) return false;
        }
      }
    }
    return true;
  }

  // True if fewer bytes live after they are moved after place `after`.
  bool frees(const Nodes& nodes, uint32_t after) const {
    uint64_t freed = 0, added = 0;
    std::set<ValueId> inputs;
    uint32_t end = 0;
    for (uint32_t at : nodes) {
      inputs.insert(read_[at].begin(), read_[at].end());
      end = std::max(end, places_[at]);
      for (ValueId result : made_[at]) {
        const Space& space = spaces_[result];
        if (space.given || last_outside(space, nodes, 0) > after) added += space.bytes;
      }
    }
    for (ValueId input : inputs) {
      const Space& space = spaces_[input];
      if (space.maker != kNobody && nodes.count(space.maker) != 0) continue;
      if (!space.given && last(space) > after && last_outside(space, nodes, 0) <= after) freed += space.bytes;
    }
    return freed > added && end > after + nodes.size();
  }

  // --- values that begin late

  // Moves a node that allocates more than it frees before its first reader, together with the nodes that are only
  // computed for it.
  void begin_late() {
    for (uint32_t place = static_cast<uint32_t>(order_.size()); place-- > 0 && left_ > 0;) {
      const uint32_t at = order_[place];
      if (!begins_late(at)) continue;
      Nodes nodes{at};
      if (sink(nodes, at)) continue;
      for (bool grown = true; grown && nodes.size() < kMostTogether;) grown = grow(&nodes);
      if (nodes.size() > 1) sink(nodes, at);
    }
  }

  // False if a node with a fixed place, such as an exchange, waits for it.
  bool begins_late(uint32_t at) const { return movable_[at] && !waits_[at]; }

  // Adds a node whose results only `nodes` read.
  bool grow(Nodes* nodes) const {
    for (uint32_t at : *nodes) {
      for (ValueId input : read_[at]) {
        const uint32_t maker = spaces_[input].maker;
        if (maker == kNobody || !begins_late(maker) || nodes->count(maker) != 0) continue;
        const bool alone = std::all_of(made_[maker].begin(), made_[maker].end(), [&](ValueId made) {
          const std::vector<uint32_t>& readers = spaces_[made].readers;
          return (!spaces_[made].given || spaces_[made].bytes == 0) &&
                 std::all_of(readers.begin(), readers.end(), [&](uint32_t each) { return nodes->count(each) != 0; });
        });
        if (alone) return nodes->insert(maker).second;
      }
    }
    return false;
  }

  bool sink(const Nodes& nodes, uint32_t top) {
    uint32_t before = static_cast<uint32_t>(nodes_.size());
    uint64_t made = 0, longer = 0;
    for (ValueId result : made_[top]) {
      if (spaces_[result].given) return false;
      made += spaces_[result].bytes;
      for (uint32_t reader : spaces_[result].readers) before = std::min(before, places_[reader]);
    }
    if (before == nodes_.size()) return false;
    spend(before - places_[top]);
    for (uint32_t place = places_[top] + 1; place < before; ++place) {
      if (waits_[order_[place]]) before = place;
    }
    if (before <= places_[top] + 1) return false;
    std::set<ValueId> inputs;
    for (uint32_t at : nodes) inputs.insert(read_[at].begin(), read_[at].end());
    for (ValueId input : inputs) {
      const Space& space = spaces_[input];
      if (space.maker != kNobody && nodes.count(space.maker) != 0) continue;
      // Other nodes read the state last, so these nodes must not move after them.
      if (space.state && nodes.count(last_reader(space)) == 0 && last(space) < before) return false;
      if (last(space) < before) longer += space.bytes;
    }
    if (made <= longer) return false;
    move(nodes, before);
    return true;
  }

  // --- moving

  void spend(size_t looks) const { left_ -= std::min(left_, looks); }

  // Moves `nodes`, in their present order, before `place`.
  void move(const Nodes& nodes, uint32_t place) {
    uint32_t begin = place, end = place;
    for (uint32_t at : nodes) {
      begin = std::min(begin, places_[at]);
      end = std::max(end, places_[at] + 1);
    }
    spend(size_t{8} * (end - begin));
    const auto moves = [&](uint32_t at) { return nodes.count(at) != 0; };
    const auto at = [&](uint32_t i) { return order_.begin() + static_cast<ptrdiff_t>(i); };
    std::stable_partition(at(begin), at(place), [&](uint32_t each) { return !moves(each); });
    std::stable_partition(at(place), at(end), moves);
    for (uint32_t i = begin; i < end; ++i) places_[order_[i]] = i;
  }

  void apply() {
    std::set<NodeId> placed;
    for (uint32_t at : order_) place(nodes_[at], &placed);
    for (NodeId id : lives_.order()) place(id, &placed);
  }

  // Appends node `id`, after the views that it reads.
  void place(NodeId id, std::set<NodeId>* placed) {
    if (!placed->insert(id).second) return;
    for (ValueId input : graph_.node(id).inputs) {
      const NodeId producer = input == 0 ? kNoNode : graph_[input].producer;
      if (producer != kNoNode && is_view(producer)) place(producer, placed);
    }
    graph_.move(id, kNoNode);
  }

  Graph& graph_;
  const Lives lives_;
  const Held& held_;
  std::vector<NodeId> nodes_;               // indexed by number
  std::vector<uint32_t> order_, places_;    // numbers by place, places by number
  std::vector<Space> spaces_;               // indexed by root
  std::vector<std::vector<ValueId>> read_;  // by number: the roots that it reads
  std::vector<std::vector<ValueId>> made_;  // indexed by number
  std::vector<bool> movable_;               // indexed by number
  std::vector<bool> waits_;                 // by number: a node with a fixed place, such as an exchange, waits for it
  bool fixed_ = false;                      // some nodes have a fixed place
  mutable size_t left_ = kMostLooks;
};

}  // namespace

void order_nodes(Graph* graph, const PassOptions& options) {
  Held held;
  held.all_inputs = true;
  Ordering(graph, options.recompute != nullptr ? options.recompute->held : held).run();
}

}  // namespace tenon::graph
