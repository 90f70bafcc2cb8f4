#include "core/graph/passes/recompute.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "core/graph/effort.h"
#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"
#include "core/ops/control.h"
#include "ep_api/ep_api.h"
#include "primitives/dtype/dtype.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

// Time is estimated in bytes of memory traffic: a processor computes so many operations while a byte comes.
constexpr double kFlopsPerByte = 8;
constexpr double kFreely = 0.01;         // of the estimated time of a program, without a limit
constexpr size_t kMostNodesAgain = 256;  // for one value

class Planner {
 public:
  Planner(Graph* graph, const RecomputeOptions& options) : graph_(*graph), options_(options) {}

  void run() {
    survey();
    RecomputeReport report;
    report.live_before = most_alive().bytes;
    report.saved_before = saved();
    if (options_.freely) shrink_saved();
    if (options_.limit != 0) shrink_alive();
    report.live = most_alive().bytes;
    report.saved = saved();
    for (const auto& [name, count] : again_) {
      report.ops += report.ops.empty() ? "" : ", ";
      report.ops += count == 1 ? std::string(name) : fmt::format("{} {}", count, name);
    }
    if (options_.report != nullptr) *options_.report = std::move(report);
  }

 private:
  // The elements of one value, which its views share.
  struct Room {
    std::vector<ValueId> values;  // the root first
    uint64_t bytes = 0;           // 0: not ours to count, or not known
    uint32_t made = 0, last = 0;  // positions
    bool held = false;            // an input or a constant that is there anyway
    bool given = false;           // an output
  };
  struct Reader {
    uint32_t position = 0;
    ValueId value = 0;
    Use use;
  };
  // A value to be computed again, and what that takes.
  struct Move {
    ValueId root = 0;
    std::vector<NodeId> nodes;  // in order
    uint64_t gain = 0;
    double cost = 0;
  };
  enum class Allowed : uint8_t { light, light_behind, all };
  struct Most {
    uint32_t position = 0;
    uint64_t bytes = 0;
  };

  // --- what there is

  std::optional<uint64_t> elements(const Value& value) const {
    uint64_t count = 1;
    for (SymDim dim : value.dims) {
      const std::optional<int64_t> hint = dim.is_number() ? dim.number() : graph_.arena().hint(dim);
      if (!hint) return std::nullopt;
      count *= static_cast<uint64_t>(*hint);
    }
    return count;
  }
  uint64_t bytes_of(ValueId id) const {
    const std::optional<uint64_t> count = elements(graph_[id]);
    return count ? static_cast<uint64_t>(dtype_bytes(graph_[id].dtype, static_cast<int64_t>(*count))) : 0;
  }

  void survey() {
    order_.clear();
    NodeId last = 0;
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.next(id)) {
      order_.push_back(id);
      last = std::max(last, id);
    }
    positions_.assign(last + 1, 0);
    for (uint32_t at = 0; at < order_.size(); ++at) positions_[order_[at]] = at;
    roots_.assign(graph_.value_count(), 0);
    rooms_.assign(graph_.value_count(), Room());
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const bool held = i < options_.held_inputs.size() && options_.held_inputs[i];
      open(graph_.inputs()[i], 0).held = held;
    }
    for (uint32_t at = 0; at < order_.size(); ++at) visit(at);
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId id = graph_.outputs()[i];
      Room& room = rooms_[root_of(id)];
      room.given = true;
      room.last = static_cast<uint32_t>(order_.size());
      if (i < options_.held_outputs.size() && options_.held_outputs[i]) room.held = true;
    }
    for (Room& room : rooms_) {
      if (room.held) room.bytes = 0;
    }
  }

  Room& open(ValueId id, uint32_t at) {
    roots_[id] = id;
    Room& room = rooms_[id];
    room.values = {id};
    room.bytes = bytes_of(id);
    room.made = room.last = at;
    return room;
  }

  void visit(uint32_t at) {
    const Node& node = graph_.node(order_[at]);
    for (ValueId input : node.inputs) {
      if (input != 0) rooms_[root_of(input)].last = at;
    }
    for (ValueId result : node.results) {
      if (node.op->form == OpForm::view) {
        roots_[result] = root_of(node.inputs[0]);
        rooms_[roots_[result]].values.push_back(result);
      } else {
        open(result, at);
      }
    }
  }

  // A constant is met where it is read.
  ValueId root_of(ValueId id) {
    if (roots_[id] == 0) open(id, 0).held = true;
    return roots_[id];
  }

  std::vector<Reader> readers(const Room& room, uint32_t from) const {
    std::vector<Reader> found;
    for (ValueId value : room.values) {
      for (const Use& use : graph_[value].uses) {
        if (positions_[use.node] >= from) found.push_back({positions_[use.node], value, use});
      }
    }
    return found;
  }

  // Where backward begins; none: nowhere.
  std::optional<uint32_t> begin() const {
    if (options_.begin == kNoNode) return std::nullopt;
    for (uint32_t at = 0; at < order_.size(); ++at) {
      if (order_[at] >= options_.begin) return at;
    }
    return std::nullopt;
  }

  uint64_t saved() const {
    const std::optional<uint32_t> at = begin();
    uint64_t bytes = 0;
    for (const Room& room : rooms_) {
      if (at && room.made < *at && !readers(room, *at).empty()) bytes += room.bytes;
    }
    return bytes;
  }

  Most most_alive() const {
    std::vector<int64_t> change(order_.size() + 2, 0);
    for (const Room& room : rooms_) {
      change[room.made] += static_cast<int64_t>(room.bytes);
      change[room.last + 1] -= static_cast<int64_t>(room.bytes);
    }
    Most most;
    int64_t now = 0;
    for (uint32_t at = 0; at < order_.size(); ++at) {
      now += change[at];
      if (static_cast<uint64_t>(now) > most.bytes) most = {at, static_cast<uint64_t>(now)};
    }
    return most;
  }

  // --- what it costs

  // A size that nobody knows is 0.
  Dims dims_of(ValueId id) const {
    Dims dims;
    for (SymDim dim : graph_[id].dims) {
      dims.push_back(dim.is_number() ? dim.number() : graph_.arena().hint(dim).value_or(0));
    }
    return dims;
  }
  double flops_of(const Node& node) const {
    std::vector<Dims> inputs;
    for (ValueId id : node.inputs) inputs.push_back(id == 0 ? Dims() : dims_of(id));
    return graph::flops_of(*node.op, inputs, dims_of(node.results[0]));
  }

  double traffic_of(const Node& node) const {
    double bytes = 0;
    for (ValueId id : node.inputs) bytes += id == 0 ? 0 : static_cast<double>(bytes_of(id));
    for (ValueId id : node.results) bytes += static_cast<double>(bytes_of(id));
    return bytes;
  }

  double cost_of(const Node& node) const {
    if (node.op->form == OpForm::view) return 0;
    return traffic_of(node) + flops_of(node) / kFlopsPerByte;
  }

  double cost_of_all() const {
    double cost = 0;
    for (NodeId id : order_) cost += cost_of(graph_.node(id));
    return cost;
  }

  // --- what may be computed again

  bool possible(const Node& node) const {
    if (control::is_control(*node.op)) return false;
    if (node.op->form != OpForm::elementwise && node.op->form != OpForm::kernel) return false;
    switch (node.op->kind) {
      case EP_PRIMITIVE_random:
      case EP_PRIMITIVE_unique:
      case EP_PRIMITIVE_nonzero: return false;
      default: break;
    }
    return std::all_of(node.results.begin(), node.results.end(),
                       [&](ValueId id) { return elements(graph_[id]).has_value(); });
  }

  static bool is_map(const Node& node) { return node.op->form == OpForm::elementwise; }

  bool light(const Node& node) const {
    if (!possible(node)) return false;
    if (is_map(node)) return true;
    switch (node.op->kind) {
      case EP_PRIMITIVE_fill:
      case EP_PRIMITIVE_copy:
      case EP_PRIMITIVE_reduce:
      case EP_PRIMITIVE_softmax:
      case EP_PRIMITIVE_layer_norm:
      case EP_PRIMITIVE_rms_norm:
      case EP_PRIMITIVE_group_norm:
      case EP_PRIMITIVE_batch_norm: return true;
      default: return false;
    }
  }

  // The value that was computed again for `root` before, if it is there when node `first` runs, and after `at`.
  ValueId twin_of(ValueId root, uint32_t at, uint32_t first) const {
    const auto found = twins_.find(root);
    if (found == twins_.end() || found->second >= roots_.size() || roots_[found->second] != found->second) return 0;
    const Room& room = rooms_[found->second];
    return room.made < first && room.last >= at ? found->second : 0;
  }

  // What it takes to compute `root` again before its first reader from position `at` on.
  std::optional<Move> plan(ValueId root, uint32_t at, Allowed allowed) {
    const std::vector<Reader> late = readers(rooms_[root], at);
    const NodeId producer = graph_[root].producer;
    const Node& made_by = graph_.node(producer);
    if (!(allowed == Allowed::light ? light(made_by) : possible(made_by))) return std::nullopt;
    uint32_t first = UINT32_MAX;
    for (const Reader& reader : late) first = std::min(first, reader.position);
    Move move;
    move.root = root;
    std::set<uint32_t> nodes{positions_[producer]};  // by position
    std::vector<NodeId> next{producer};
    std::set<ValueId> longer;  // roots that must live longer
    while (!next.empty()) {
      const Node& node = graph_.node(next.back());
      next.pop_back();
      for (ValueId input : node.inputs) {
        if (input == 0) continue;
        const ValueId id = root_of(input);
        const Room& room = rooms_[id];
        if (graph_[id].constant.defined() || (room.last >= at && id != root)) continue;
        if (room.held && allowed != Allowed::light) continue;
        if (twin_of(id, at, first) != 0) continue;
        const NodeId maker = graph_[id].producer;
        const bool again = !room.held && maker != kNoNode &&
                           (allowed == Allowed::all ? possible(graph_.node(maker)) : light(graph_.node(maker)));
        if (!again) {
          if (room.held) return std::nullopt;  // nobody may write it then, and so far somebody may
          longer.insert(id);
        } else if (nodes.insert(positions_[maker]).second) {
          next.push_back(maker);
        }
      }
      if (nodes.size() > kMostNodesAgain) return std::nullopt;
    }
    uint64_t added = 0;
    for (ValueId id : longer) added += rooms_[id].bytes;
    if (added >= rooms_[root].bytes) return std::nullopt;
    move.gain = rooms_[root].bytes - added;
    for (uint32_t position : nodes) move.nodes.push_back(order_[position]);
    move.cost = cost_of_move(move, late);
    return move;
  }

  double cost_of_move(const Move& move, const std::vector<Reader>& late) const {
    double traffic = 0, flops = 0;
    bool maps = options_.fused;
    for (const Reader& reader : late) maps = maps && is_map(graph_.node(reader.use.node));
    for (NodeId id : move.nodes) {
      const Node& node = graph_.node(id);
      maps = maps && is_map(node);
      traffic += traffic_of(node);
      flops += flops_of(node);
    }
    // In one kernel with its readers the value is neither stored nor loaded, and what it is made of is read there.
    return flops / kFlopsPerByte + (maps ? -static_cast<double>(rooms_[move.root].bytes) : traffic);
  }

  // --- doing it

  struct Again {
    NodeId before = kNoNode;
    std::unordered_map<ValueId, ValueId> known;  // the new value for an old one
  };

  NodeId insert_again(NodeId id, Again* again) {
    Node node = graph_.node(id);
    const size_t results = node.results.size();
    node.results.clear();
    for (ValueId& input : node.inputs) input = mapped(input, again);
    const NodeId made = graph_.insert(again->before, std::move(node), results);
    for (size_t i = 0; i < results; ++i) again->known[graph_.node(id).results[i]] = graph_.node(made).results[i];
    return made;
  }

  ValueId mapped(ValueId id, Again* again) {
    if (id == 0) return 0;
    if (const auto found = again->known.find(id); found != again->known.end()) return found->second;
    const NodeId producer = graph_[id].producer;
    if (producer == kNoNode || graph_.node(producer).op->form != OpForm::view) return id;
    const ValueId from = graph_.node(producer).inputs[0];
    if (mapped(from, again) == from) return id;
    insert_again(producer, again);
    return again->known.at(id);
  }

  void apply(const Move& move, uint32_t at) {
    const std::vector<Reader> late = readers(rooms_[move.root], at);
    uint32_t first = UINT32_MAX;
    for (const Reader& reader : late) first = std::min(first, reader.position);
    Again again{order_[first], {}};
    for (const auto& [root, twin] : twins_) {
      if (root < roots_.size() && roots_[root] == root && rooms_[root].last < at && twin_of(root, at, first) != 0) {
        again.known[root] = twin;
      }
    }
    for (NodeId id : move.nodes) {
      insert_again(id, &again);
      ++again_[graph_.node(id).op->name];
      for (ValueId result : graph_.node(id).results) twins_[result] = again.known.at(result);
    }
    for (const Reader& reader : late) {
      const NodeId producer = graph_[reader.value].producer;
      if (reader.value != move.root && positions_[producer] >= at) continue;  // a view that is late itself
      std::vector<ValueId> inputs = graph_.node(reader.use.node).inputs;
      inputs[reader.use.input] = mapped(reader.value, &again);
      graph_.set_inputs(reader.use.node, std::move(inputs));
    }
    remove_dead_code(&graph_);
    survey();
  }

  // Values that are alive before position `at` and needed after it, and that node `at - 1` neither makes nor, if
  // `not_there`, reads.
  std::vector<ValueId> crossing(uint32_t at, bool not_there) const {
    std::vector<ValueId> found;
    for (ValueId id = 1; id < rooms_.size(); ++id) {
      const Room& room = rooms_[id];
      if (room.bytes == 0 || room.given || graph_[id].producer == kNoNode || room.last < at) continue;
      if (room.made + (not_there ? 1 : 0) >= at) continue;
      if (not_there) {
        const std::vector<Reader> here = readers(room, at - 1);
        if (std::any_of(here.begin(), here.end(), [&](const Reader& r) { return r.position == at - 1; })) continue;
      }
      found.push_back(id);
    }
    return found;
  }

  std::optional<Move> cheapest(uint32_t at, bool not_there, std::initializer_list<Allowed> ways, double most) {
    std::optional<Move> best;
    for (ValueId id : crossing(at, not_there)) {
      for (Allowed way : ways) {
        std::optional<Move> move = plan(id, at, way);
        if (!move || move->cost > most) continue;
        if (!best || move->cost * static_cast<double>(best->gain) < best->cost * static_cast<double>(move->gain)) {
          best = std::move(move);
        }
      }
    }
    return best;
  }

  void shrink_saved() {
    double left = kFreely * cost_of_all();
    for (size_t moves = rooms_.size(); moves > 0; --moves) {
      const std::optional<uint32_t> at = begin();
      const std::optional<Move> move = at ? cheapest(*at, false, {Allowed::light}, left) : std::nullopt;
      if (!move) return;
      left -= std::max(0.0, move->cost);
      apply(*move, *at);
    }
  }

  void shrink_alive() {
    uint64_t least = UINT64_MAX;
    for (size_t moves = 4 * rooms_.size(); moves > 0; --moves) {
      const Most most = most_alive();
      least = std::min(least, most.bytes);
      if (least <= options_.limit) return;
      const uint32_t at = most.position + 1;
      const std::optional<Move> move = cheapest(at, true, {Allowed::light_behind, Allowed::all}, kAnyCost);
      if (!move) break;
      apply(*move, at);
    }
    throw Error(Code::invalid_argument,
                fmt::format("{}: its values take at least {} bytes at once, and the limit is {} bytes.",
                            graph_.arena().name(), least, options_.limit),
                "Raise the limit, or give the function a smaller batch.");
  }

  static constexpr double kAnyCost = 1e300;

  Graph& graph_;
  const RecomputeOptions& options_;
  std::vector<NodeId> order_;
  std::vector<uint32_t> positions_;  // by node
  std::vector<ValueId> roots_;       // by value; 0: a constant that nobody has read yet
  std::vector<Room> rooms_;          // by value; of roots
  std::unordered_map<ValueId, ValueId> twins_;
  std::map<std::string_view, size_t> again_;  // nodes that are computed again, by op
};

}  // namespace

void compute_again(Graph* graph, const RecomputeOptions& options) {
  remove_dead_code(graph);
  Planner(graph, options).run();
}

void recompute(Graph* graph, const PassOptions& options) {
  if (options.recompute != nullptr) compute_again(graph, *options.recompute);
}

}  // namespace tenon::graph
