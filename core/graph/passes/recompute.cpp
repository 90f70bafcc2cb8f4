#include "core/graph/passes/recompute.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "core/graph/effort.h"
#include "core/graph/passes/lives.h"
#include "core/graph/passes/passes.h"
#include "core/graph/regions/regions.h"
#include "core/ops/control.h"
#include "ep_api/ep_api.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

// Estimated time is in bytes of memory traffic: a processor does this many operations per byte.
constexpr double kFlopsPerByte = 8;
constexpr double kFreely = 0.01;         // fraction of the estimated time of a program, without a limit
constexpr size_t kMostNodesAgain = 256;  // nodes that are repeated for one value

class Planner {
 public:
  Planner(Graph* graph, const RecomputeOptions& options)
      : graph_(*graph), options_(options), lives_(*graph, options.held) {}

  void run() {
    find_states();
    RecomputeReport report;
    report.live_before = lives_.most().bytes;
    report.saved_before = saved();
    if (options_.freely && options_.begin != kNoNode) shrink_saved();
    if (options_.freely && options_.begin == kNoNode) shrink_alive_freely();
    if (options_.limit != 0) shrink_alive();
    report.live = lives_.most().bytes;
    report.saved = saved();
    for (const auto& [name, count] : again_) {
      report.ops += report.ops.empty() ? "" : ", ";
      report.ops += count == 1 ? std::string(name) : fmt::format("{} {}", count, name);
    }
    if (options_.report != nullptr) *options_.report = std::move(report);
  }

 private:
  struct Reader {
    uint32_t position = 0;
    ValueId value = 0;
    Use use;
  };
  // The results of one node that are computed again, and the cost.
  struct Move {
    std::vector<ValueId> roots;
    std::vector<NodeId> nodes;  // in order
    uint64_t gain = 0;
    double cost = 0;
  };
  enum class Allowed : uint8_t { light, light_behind, all };

  // --- the values

  const Room& room(ValueId root) const { return lives_.rooms()[root]; }
  ValueId root_of(ValueId id) const { return lives_.root_of(id); }

  void find_states() {
    states_.clear();
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      if (options_.held.state(i) != kNoState) states_.insert(graph_.inputs()[options_.held.state(i)]);
    }
  }

  void survey() { lives_ = Lives(graph_, options_.held); }

  std::vector<Reader> readers(const Room& room, uint32_t from) const {
    std::vector<Reader> found;
    for (ValueId value : room.values) {
      for (const Use& use : graph_[value].uses) {
        if (lives_.position(use.node) >= from) found.push_back({lives_.position(use.node), value, use});
      }
    }
    return found;
  }

  // The position where backward begins; nothing if there is no backward.
  std::optional<uint32_t> begin() const {
    if (options_.begin == kNoNode) return std::nullopt;
    for (uint32_t at = 0; at < lives_.order().size(); ++at) {
      if (lives_.order()[at] >= options_.begin) return at;
    }
    return std::nullopt;
  }

  uint64_t saved() const {
    const std::optional<uint32_t> at = begin();
    uint64_t bytes = 0;
    for (const Room& room : lives_.rooms()) {
      if (at && room.made < *at && !readers(room, *at).empty()) bytes += room.bytes;
    }
    return bytes;
  }

  // --- costs

  // The dims at hints; an unknown size is 0.
  static Dims dims_of(const Graph& graph, ValueId id) {
    Dims dims;
    for (SymDim dim : graph[id].dims) {
      dims.push_back(dim.is_number() ? dim.number() : graph.arena().hint(dim).value_or(0));
    }
    return dims;
  }
  static double flops_of(const Graph& graph, const Node& node) {
    if (is_fused(node)) return flops_of_all(*node.regions[0]);
    std::vector<Dims> inputs;
    for (ValueId id : node.inputs) inputs.push_back(id == 0 ? Dims() : dims_of(graph, id));
    return graph::flops_of(*node.op, inputs, dims_of(graph, node.results[0]));
  }
  static double flops_of_all(const Graph& graph) {
    double flops = 0;
    for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
      if (graph.node(id).op->form != OpForm::view) flops += flops_of(graph, graph.node(id));
    }
    return flops;
  }

  double traffic_of(const Node& node) const {
    double bytes = 0;
    for (ValueId id : node.inputs) bytes += id == 0 ? 0 : static_cast<double>(bytes_of(graph_, id));
    for (ValueId id : node.results) bytes += static_cast<double>(bytes_of(graph_, id));
    return bytes;
  }

  double cost_of(const Node& node) const {
    if (node.op->form == OpForm::view) return 0;
    return traffic_of(node) + flops_of(graph_, node) / kFlopsPerByte;
  }

  double cost_of_all() const {
    double cost = 0;
    for (NodeId id : lives_.order()) cost += cost_of(graph_.node(id));
    return cost;
  }

  // --- which values may be computed again

  static bool every(const Graph& graph, bool (*holds)(const Graph&, const Node&)) {
    for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
      if (graph.node(id).op->form != OpForm::view && !holds(graph, graph.node(id))) return false;
    }
    return true;
  }

  static bool possible(const Graph& graph, const Node& node) {
    if (is_fused(node)) return every(*node.regions[0], possible);
    if (control::is_control(*node.op)) return false;
    if (node.op->form != OpForm::elementwise && node.op->form != OpForm::kernel) return false;
    switch (node.op->kind) {
      case EP_PRIMITIVE_random:
      case EP_PRIMITIVE_unique:
      case EP_PRIMITIVE_nonzero: return false;
      default: break;
    }
    return std::all_of(node.results.begin(), node.results.end(),
                       [&](ValueId id) { return elements_of(graph, id).has_value(); });
  }

  static bool is_map(const Node& node) { return node.op->form == OpForm::elementwise; }

  static bool light(const Graph& graph, const Node& node) {
    if (is_fused(node)) return every(*node.regions[0], light);
    if (!possible(graph, node)) return false;
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

  // The earlier copy of `root`, if it exists when node `first` runs and still does after `at`.
  ValueId twin_of(ValueId root, uint32_t at, uint32_t first) const {
    const auto found = twins_.find(root);
    if (found == twins_.end() || root_of(found->second) != found->second) return 0;
    const Room& twin = room(found->second);
    return twin.made < first && twin.last >= at ? found->second : 0;
  }

  std::vector<Reader> readers_of(const std::vector<ValueId>& roots, uint32_t from) const {
    std::vector<Reader> found;
    for (ValueId root : roots) {
      const std::vector<Reader> more = readers(room(root), from);
      found.insert(found.end(), more.begin(), more.end());
    }
    return found;
  }

  static uint32_t first_of(const std::vector<Reader>& readers) {
    uint32_t first = UINT32_MAX;
    for (const Reader& reader : readers) first = std::min(first, reader.position);
    return first;
  }

  // The plan for computing `root`, and the other results of its node, again before the first reader from position `at`
  // on.
  std::optional<Move> plan(ValueId root, uint32_t at, Allowed allowed) {
    const NodeId producer = graph_[root].producer;
    const Node& made_by = graph_.node(producer);
    if (!(allowed == Allowed::light ? light(graph_, made_by) : possible(graph_, made_by))) return std::nullopt;
    Move move;
    uint64_t gained = 0;
    for (ValueId result : made_by.results) {
      if (room(result).given || room(result).last < at) continue;
      move.roots.push_back(result);
      gained += room(result).bytes;
    }
    const std::vector<Reader> late = readers_of(move.roots, at);
    const uint32_t first = first_of(late);
    std::set<uint32_t> nodes{lives_.position(producer)};  // indexed by position
    std::vector<NodeId> next{producer};
    std::set<ValueId> longer;  // roots that live longer
    while (!next.empty()) {
      const Node& node = graph_.node(next.back());
      next.pop_back();
      for (ValueId input : node.inputs) {
        if (input == 0) continue;
        const ValueId id = root_of(input);
        const Room& read = room(id);
        if (graph_[id].constant.defined()) continue;
        if (states_.count(id) != 0 && first > read.last) return std::nullopt;  // the state has changed by then
        if (read.last >= at && graph_[id].producer != producer) continue;
        if (read.held && allowed != Allowed::light) continue;
        if (twin_of(id, at, first) != 0) continue;
        const NodeId maker = graph_[id].producer;
        const bool again =
            !read.held && maker != kNoNode && (allowed == Allowed::all ? possible : light)(graph_, graph_.node(maker));
        if (!again) {
          // the input would become read-only until then, and it may be overwritten now
          if (read.held) return std::nullopt;
          longer.insert(id);
        } else if (nodes.insert(lives_.position(maker)).second) {
          next.push_back(maker);
        }
      }
      if (nodes.size() > kMostNodesAgain) return std::nullopt;
    }
    uint64_t added = 0;
    for (ValueId id : longer) added += room(id).bytes;
    if (added >= gained) return std::nullopt;
    move.gain = gained - added;
    for (uint32_t position : nodes) move.nodes.push_back(lives_.order()[position]);
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
      flops += flops_of(graph_, node);
    }
    // In one kernel with its readers, the value is neither stored nor loaded, and its inputs are read there.
    if (maps) {
      traffic = 0;
      for (ValueId root : move.roots) traffic -= static_cast<double>(room(root).bytes);
    }
    return flops / kFlopsPerByte + traffic;
  }

  // --- rewriting

  struct Again {
    NodeId before = kNoNode;
    std::unordered_map<ValueId, ValueId> known;  // by old value: the new value
  };

  // Computes those results of node `id` again for which `wanted` is true.
  void insert_again(NodeId id, const std::vector<bool>& wanted, Again* again) {
    const std::vector<ValueId> results = graph_.node(id).results;
    Node node = is_fused(graph_.node(id)) ? part_of(graph_.node(id), wanted) : graph_.node(id);
    const bool all = !is_fused(node);
    node.results.clear();
    for (ValueId& input : node.inputs) input = mapped(input, again);
    const NodeId made = graph_.insert(again->before, std::move(node), results.size());
    for (size_t i = 0, k = 0; i < results.size(); ++i) {
      if (all || wanted[i]) again->known[results[i]] = graph_.node(made).results[k++];
    }
  }

  ValueId mapped(ValueId id, Again* again) {
    if (id == 0) return 0;
    if (const auto found = again->known.find(id); found != again->known.end()) return found->second;
    const NodeId producer = graph_[id].producer;
    if (producer == kNoNode || graph_.node(producer).op->form != OpForm::view) return id;
    const ValueId from = graph_.node(producer).inputs[0];
    if (mapped(from, again) == from) return id;
    insert_again(producer, {true}, again);
    return again->known.at(id);
  }

  void apply(const Move& move, uint32_t at) {
    const std::vector<Reader> late = readers_of(move.roots, at);
    const uint32_t first = first_of(late);
    Again again{lives_.order()[first], {}};
    for (const auto& [root, twin] : twins_) {
      if (root_of(root) == root && room(root).last < at && twin_of(root, at, first) != 0) again.known[root] = twin;
    }
    for (NodeId id : move.nodes) {
      const std::vector<ValueId> results = graph_.node(id).results;
      insert_again(id, wanted_of(results, move), &again);
      count(graph_.node(id));
      for (ValueId result : results) {
        if (again.known.count(result) != 0) twins_[result] = again.known.at(result);
      }
    }
    for (const Reader& reader : late) {
      const NodeId producer = graph_[reader.value].producer;
      const bool root = reader.value == root_of(reader.value);
      if (!root && lives_.position(producer) >= at) continue;  // the view itself is late
      std::vector<ValueId> inputs = graph_.node(reader.use.node).inputs;
      inputs[reader.use.input] = mapped(reader.value, &again);
      graph_.set_inputs(reader.use.node, std::move(inputs));
    }
    remove_dead_code(&graph_);
    for (NodeId id : move.nodes) drop_unread(id);
    survey();
  }

  // By result: true if it, or a view of it, is a root of `move`, or if another node of `move` reads it.
  std::vector<bool> wanted_of(const std::vector<ValueId>& results, const Move& move) const {
    std::vector<bool> wanted;
    for (ValueId result : results) {
      bool read = std::count(move.roots.begin(), move.roots.end(), result) != 0;
      for (NodeId id : move.nodes) {
        for (ValueId input : graph_.node(id).inputs) read = read || (input != 0 && root_of(input) == result);
      }
      wanted.push_back(read);
    }
    return wanted;
  }

  // Removes results of a kernel that are no longer read.
  void drop_unread(NodeId id) {
    if (graph_.node(id).op == nullptr || !is_fused(graph_.node(id))) return;
    const std::vector<ValueId> results = graph_.node(id).results;
    std::vector<bool> wanted;
    for (ValueId result : results) wanted.push_back(!graph_[result].uses.empty() || graph_.is_output(result));
    if (std::count(wanted.begin(), wanted.end(), false) == 0) return;
    const NodeId made = graph_.insert(id, part_of(graph_.node(id), wanted));
    for (size_t i = 0, k = 0; i < results.size(); ++i) {
      if (wanted[i]) graph_.replace(results[i], graph_.node(made).results[k++]);
    }
    graph_.erase(id);
  }

  void count(const Node& node) {
    if (node.op->form == OpForm::view) return;
    if (!is_fused(node)) {
      ++again_[node.op->name];
      return;
    }
    const Graph& region = *node.regions[0];
    for (NodeId id = region.first(); id != kNoNode; id = region.next(id)) count(region.node(id));
  }

  // Values that live before position `at` and are needed after it, and that node `at - 1` does not compute. If
  // `not_there`, it must not read them either.
  std::vector<ValueId> crossing(uint32_t at, bool not_there) const {
    std::vector<ValueId> found;
    for (ValueId id = 1; id < lives_.rooms().size(); ++id) {
      const Room& room = lives_.rooms()[id];
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
    for (size_t moves = lives_.rooms().size(); moves > 0; --moves) {
      const std::optional<uint32_t> at = begin();
      const std::optional<Move> move = at ? cheapest(*at, false, {Allowed::light}, left) : std::nullopt;
      if (!move) return;
      left -= std::max(0.0, move->cost);
      apply(*move, *at);
    }
  }

  // For a whole program: recomputes as long as fewer bytes live at once.
  void shrink_alive_freely() {
    double left = kFreely * cost_of_all();
    uint64_t least = lives_.most().bytes;
    Graph best = graph_.copy();
    auto again = again_;
    for (size_t moves = lives_.rooms().size(); moves > 0; --moves) {
      const uint32_t at = lives_.most().position + 1;
      const std::optional<Move> move = cheapest(at, true, {Allowed::light, Allowed::light_behind}, left);
      if (!move) break;
      left -= std::max(0.0, move->cost);
      apply(*move, at);
      if (lives_.most().bytes >= least) continue;
      least = lives_.most().bytes;
      best = graph_.copy();
      again = again_;
    }
    graph_ = std::move(best);
    again_ = std::move(again);
    survey();
  }

  void shrink_alive() {
    uint64_t least = UINT64_MAX;
    for (size_t moves = 4 * lives_.rooms().size(); moves > 0; --moves) {
      const Lives::Most most = lives_.most();
      least = std::min(least, most.bytes);
      if (least <= options_.limit) return;
      const uint32_t at = most.position + 1;
      const std::optional<Move> move = cheapest(at, true, {Allowed::light_behind, Allowed::all}, kAnyCost);
      if (!move) break;
      apply(*move, at);
    }
    throw Error(
        Subject{graph_.arena().name()}, Code::invalid_argument,
        fmt::format("its values take at least {} bytes at once, and the limit is {} bytes.", least, options_.limit),
        "Raise the limit, or give the function a smaller batch.");
  }

  static constexpr double kAnyCost = 1e300;

  Graph& graph_;
  const RecomputeOptions& options_;
  Lives lives_;
  std::set<ValueId> states_;  // inputs whose later states are outputs
  std::unordered_map<ValueId, ValueId> twins_;
  std::map<std::string_view, size_t> again_;  // by op: number of repeated nodes
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
