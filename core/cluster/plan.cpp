#include "core/cluster/plan.h"

#include <algorithm>
#include <compare>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "core/cluster/classes.h"
#include "core/cluster/network.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::cluster {
namespace {

using global::Sbp;

constexpr int32_t kDepth =
    3;  // distance in calls within which surroundings must look alike for one choice to serve both
constexpr double kTie =
    1e-7;  // cost of a byte of memory, relative to the time to read it once; decides between plans of equal time
constexpr double kSmallEffort = 4e5;
constexpr size_t kMostRounds = 12;
constexpr size_t kMostGrids = 12;     // most grids that are tried if none is given
constexpr size_t kSearchedGrids = 3;  // the grids that are searched longer

double bytes_of(DType dtype, const Dims& dims) { return static_cast<double>(dtype_bytes(dtype, element_count(dims))); }

uint64_t code_of(const NdSbp& sbp) {
  uint64_t code = 1;
  for (const Sbp each : sbp) code = code << 4 | static_cast<uint64_t>(each.axis() + 2);
  return code;
}

// The seconds of moves, each computed once.
class Moves {
 public:
  Moves(const Dims& grid, const Topology& topology) : grid_(grid), topology_(topology), lines_(topology, grid) {}

  double seconds(const Program::Value& value, const NdSbp& from, const NdSbp& to) {
    if (from == to) return 0;
    auto& known = known_[{static_cast<int64_t>(value.dtype), {value.dims.begin(), value.dims.end()}}];
    const auto [found, is_new] = known.emplace(code_of(from) << 32 | code_of(to), 0.0);
    if (is_new) found->second = seconds_of_move(value.dtype, value.dims, from, to, grid_, topology_, lines_);
    return found->second;
  }

 private:
  const Dims& grid_;
  const Topology& topology_;
  Lines lines_;
  std::map<std::pair<int64_t, std::vector<int64_t>>, std::unordered_map<uint64_t, double>> known_;
};

// The lifetimes of values, by call. Views that are not copies live as long as their base.
struct Lives {
  std::vector<size_t> made, last;
  std::vector<uint64_t> bytes;  // on the rank; 0 for views
};

Lives lives_of(const Program& program, const Plan& plan, const Dims& coordinates) {
  const auto& values = program.values();
  const auto& calls = program.calls();
  Lives lives{std::vector<size_t>(values.size()), std::vector<size_t>(values.size()),
              std::vector<uint64_t>(values.size())};
  std::vector<ValueId> root(values.size());
  std::iota(root.begin(), root.end(), ValueId{0});
  for (ValueId id = 1; id < values.size(); ++id) {
    const Dims dims = global::box_of(values[id].dims, plan.kept[id], plan.grid, coordinates).dims;
    lives.bytes[id] = static_cast<uint64_t>(dtype_bytes(values[id].dtype, element_count(dims)));
    if (values[id].is_input) lives.last[id] = calls.size();
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    const Program::Call& call = calls[i];
    for (const ValueId id : call.inputs) lives.last[root[id]] = std::max(lives.last[root[id]], i);
    for (const ValueId id : call.outputs) lives.made[id] = lives.last[id] = i;
    if (call.node->op->form != OpForm::view || call.inputs[0] == 0) continue;
    const Way& way = plan.ways[i];
    if (!(way.inputs[0] == plan.kept[call.inputs[0]]) || !(way.outputs[0] == plan.kept[call.outputs[0]])) continue;
    root[call.outputs[0]] = root[call.inputs[0]];
    lives.bytes[call.outputs[0]] = 0;
  }
  for (const ValueId id : program.results()) lives.last[root[id]] = calls.size();
  for (ValueId id = 1; id < values.size(); ++id) {
    if (!values[id].is_input && !values[id].read && !values[id].is_result) lives.bytes[id] = 0;
    if (program.is_constant(id)) lives.bytes[id] = 0;
    // A new parameter is written into the memory of the old one.
    if (values[id].home != id) lives.bytes[id] = 0;
  }
  return lives;
}

// The call at which the most bytes are alive, and the number of bytes.
std::pair<size_t, uint64_t> most_alive(const Lives& lives, size_t calls) {
  std::vector<int64_t> change(calls + 2, 0);
  for (size_t id = 1; id < lives.bytes.size(); ++id) {
    change[lives.made[id]] += static_cast<int64_t>(lives.bytes[id]);
    change[lives.last[id] + 1] -= static_cast<int64_t>(lives.bytes[id]);
  }
  std::pair<size_t, uint64_t> most{0, 0};
  int64_t now = 0;
  for (size_t at = 0; at <= calls; ++at) {
    now += change[at];
    if (static_cast<uint64_t>(now) > most.second) most = {at, static_cast<uint64_t>(now)};
  }
  return most;
}

// The search for layouts on one grid, as a network.
class Search {
 public:
  Search(const Program& program, const Topology& topology, const Dims& grid, const PlanOptions& options)
      : program_(program),
        topology_(topology),
        grid_(grid),
        options_(options),
        moves_(grid, topology),
        classes_(classes_of(program, options.given, program.calls().size() > options.most_alone ? kDepth : -1)),
        is_shared_(classes_.call_of.size() < program.calls().size()) {
    find_ways();
    find_uses();
    find_spreads();
    connect();
  }

  // `weight`: the cost in seconds of a byte of memory, for values alive at the peak of `before`. If no plan is known to
  // be the best, a long search may find a better one than a short search.
  Plan best(double weight, const Plan* before, bool is_long) {
    Network network = network_;
    if (weight > 0) weigh(&network, weight, *before);
    std::vector<uint32_t> states(network.size(), 0);
    const bool exact = network.minimise(everything(), options_.effort, &states);
    if (!exact) states = searched(network, is_long);
    return plan_of(states, exact && !is_shared_ && weight == 0);
  }

 private:
  // A use of a value by a call, by class. Slots number the inputs and then the outputs of the call.
  struct Use {
    uint32_t value = 0, call = 0;
    size_t slot = 0;
    friend auto operator<=>(const Use&, const Use&) = default;
  };

  uint32_t of_value(ValueId id) const { return classes_.values[id]; }
  uint32_t of_call(size_t call) const { return static_cast<uint32_t>(classes_.value_of.size() + classes_.calls[call]); }

  void find_ways() {
    const std::vector<uint64_t> records = records_of(program_);
    std::map<uint64_t, std::shared_ptr<const std::vector<Way>>> known;
    for (const size_t call : classes_.call_of) {
      auto& ways = known[records[call]];
      if (ways == nullptr) {
        ways = std::make_shared<std::vector<Way>>(ways_of(program_, program_.calls()[call], grid_, topology_));
      }
      ways_.push_back(ways);
    }
  }

  const std::vector<Way>& ways(size_t call) const { return *ways_[classes_.calls[call]]; }

  // Finds which values and calls are connected, by class, and how often.
  void find_uses() {
    counts_.assign(classes_.call_of.size(), 0.0);
    for (size_t i = 0; i < program_.calls().size(); ++i) {
      const Program::Call& call = program_.calls()[i];
      ++counts_[classes_.calls[i]];
      const auto note = [&](ValueId id, size_t slot) {
        if (id != 0) ++uses_[{of_value(id), classes_.calls[i], slot}];
      };
      for (size_t k = 0; k < call.inputs.size(); ++k) note(call.inputs[k], k);
      for (size_t k = 0; k < call.outputs.size(); ++k) note(call.outputs[k], call.inputs.size() + k);
    }
  }

  // The layout that a way gives to a slot: inputs first, then outputs.
  static const NdSbp& at_slot(const Way& way, size_t slot) {
    return slot < way.inputs.size() ? way.inputs[slot] : way.outputs[slot - way.inputs.size()];
  }

  // The candidate layouts of a value along each axis of the grid: broadcast, and the layouts that the calls around it
  // make or want.
  void find_spreads() {
    const size_t classes = classes_.value_of.size();
    const auto axes = static_cast<size_t>(grid_.rank());
    std::vector<std::vector<std::vector<Sbp>>> seen(classes, std::vector<std::vector<Sbp>>(axes, {Sbp::broadcast()}));
    for (const auto& [use, count] : uses_) {
      for (const Way& way : *ways_[use.call]) {
        for (size_t axis = 0; axis < axes; ++axis) {
          std::vector<Sbp>& all = seen[use.value][axis];
          const Sbp each = at_slot(way, use.slot)[static_cast<int64_t>(axis)];
          if (std::find(all.begin(), all.end(), each) == all.end()) all.push_back(each);
        }
      }
    }
    std::vector<bool> whole(classes, false), alone(classes, false);
    for (ValueId id = 1; id < program_.values().size(); ++id) {
      const Program::Value& value = program_.values()[id];
      if (value.is_input || value.is_result) whole[of_value(id)] = true;
      if (program_.is_constant(id)) alone[of_value(id)] = true;
    }
    spreads_.resize(classes);
    for (size_t each = 0; each < classes; ++each) {
      const auto given = options_.given.find(classes_.value_of[each]);
      if (given != options_.given.end()) {
        spreads_[each] = {given->second};
        continue;
      }
      spreads_[each] = {NdSbp()};
      for (size_t axis = 0; axis < axes; ++axis) {
        std::vector<NdSbp> longer;
        for (const NdSbp& begin : spreads_[each]) {
          for (const Sbp sbp : seen[each][axis]) {
            if ((whole[each] && sbp.is_partial()) || (alone[each] && !sbp.is_broadcast())) continue;
            longer.push_back(begin);
            longer.back().push_back(sbp);
          }
        }
        spreads_[each] = std::move(longer);
      }
    }
  }

  void connect() {
    const Dims first = Dims::filled(grid_.rank(), 0);
    for (size_t each = 0; each < spreads_.size(); ++each) {
      const Program::Value& value = program_.values()[classes_.value_of[each]];
      std::vector<double> costs;
      for (const NdSbp& kept : spreads_[each]) {
        costs.push_back(kTie / topology_.bandwidth *
                        bytes_of(value.dtype, global::box_of(value.dims, kept, grid_, first).dims));
      }
      network_.add(std::move(costs));
    }
    for (size_t each = 0; each < ways_.size(); ++each) {
      std::vector<double> costs;
      for (const Way& way : *ways_[each]) costs.push_back(counts_[each] * way.seconds);
      network_.add(std::move(costs));
    }
    for (const auto& [use, count] : uses_) {
      network_.connect(use.value, static_cast<uint32_t>(spreads_.size()) + use.call, moves(use, count));
    }
  }

  // The seconds of each move from a layout of the value to the layout that a way of the call needs.
  std::vector<double> moves(const Use& use, double count) {
    const Program::Value& facts = program_.values()[classes_.value_of[use.value]];
    std::vector<double> seconds;
    for (const NdSbp& kept : spreads_[use.value]) {
      for (const Way& way : *ways_[use.call]) {
        const NdSbp& wanted = at_slot(way, use.slot);
        const bool is_read = use.slot < way.inputs.size();
        seconds.push_back(count * moves_.seconds(facts, is_read ? kept : wanted, is_read ? wanted : kept));
      }
    }
    return seconds;
  }

  void weigh(Network* network, double weight, const Plan& before) const {
    const Dims first = Dims::filled(grid_.rank(), 0);
    const Lives lives = lives_of(program_, before, first);
    const size_t at = most_alive(lives, program_.calls().size()).first;
    for (ValueId id = 1; id < program_.values().size(); ++id) {
      const Program::Value& value = program_.values()[id];
      if (lives.bytes[id] == 0 || lives.made[id] > at || lives.last[id] < at) continue;
      std::vector<double> costs;
      for (const NdSbp& kept : spreads_[of_value(id)]) {
        costs.push_back(weight * bytes_of(value.dtype, global::box_of(value.dims, kept, grid_, first).dims));
      }
      network->add_costs(of_value(id), costs);
    }
  }

  std::vector<std::vector<uint32_t>> everything() const {
    std::vector<std::vector<uint32_t>> all(network_.size());
    for (uint32_t variable = 0; variable < network_.size(); ++variable) {
      all[variable].resize(network_.states(variable));
      std::iota(all[variable].begin(), all[variable].end(), 0U);
    }
    return all;
  }

  // True if two states of a variable differ at most along `axis` of the grid.
  bool are_near(uint32_t variable, uint32_t a, uint32_t b, int32_t axis) const {
    const auto same = [axis](const NdSbp& one, const NdSbp& other) {
      for (int32_t each = 0; each < one.rank(); ++each) {
        if (each != axis && !(one[each] == other[each])) return false;
      }
      return true;
    };
    if (variable < spreads_.size()) return same(spreads_[variable][a], spreads_[variable][b]);
    const std::vector<Way>& ways = *ways_[variable - spreads_.size()];
    for (size_t i = 0; i < ways[a].inputs.size(); ++i) {
      if (!same(ways[a].inputs[i], ways[b].inputs[i])) return false;
    }
    for (size_t i = 0; i < ways[a].outputs.size(); ++i) {
      if (!same(ways[a].outputs[i], ways[b].outputs[i])) return false;
    }
    return true;
  }

  // The states that differ from the current ones only along `axis`; along any axis if it is -1.
  std::vector<std::vector<uint32_t>> along(const std::vector<uint32_t>& states, int32_t axis) const {
    std::vector<std::vector<uint32_t>> allowed = everything();
    for (uint32_t variable = 0; axis >= 0 && variable < allowed.size(); ++variable) {
      std::erase_if(allowed[variable],
                    [&](uint32_t state) { return !are_near(variable, state, states[variable], axis); });
    }
    return allowed;
  }

  // Searches the axes in order, forwards and backwards, and returns the better result.
  std::vector<uint32_t> searched(const Network& network, bool is_long) const {
    std::optional<std::vector<uint32_t>> best;
    for (const bool backwards : {false, true}) {
      std::vector<uint32_t> states = search(network, backwards, is_long);
      if (!best || network.cost(states) < network.cost(*best)) best = std::move(states);
      if (grid_.rank() == 1 || !is_long) break;
    }
    return *best;
  }

  std::vector<uint32_t> search(const Network& network, bool backwards, bool is_long) const {
    std::vector<uint32_t> states(network.size(), 0);
    double cost = network.cost(states);
    for (size_t round = 0; round < (is_long ? kMostRounds : 1); ++round) {
      for (int32_t i = 0; i < grid_.rank(); ++i) {
        const int32_t axis = backwards ? grid_.rank() - 1 - i : i;
        if (!network.minimise(along(states, axis), options_.effort, &states)) improve_around(network, axis, &states);
      }
      if (grid_.rank() > 1 && is_long) improve_around(network, -1, &states);
      const double now = network.cost(states);
      if (!(now < cost * (1 - 1e-9))) break;
      cost = now;
    }
    return states;
  }

  // Around each value, chooses as many variables again as small tables allow; the others stay fixed.
  void improve_around(const Network& network, int32_t axis, std::vector<uint32_t>* states) const {
    std::vector<bool> was_free(network.size(), false);
    size_t most = network.size();
    for (uint32_t seed = 0; seed < spreads_.size(); ++seed) {
      if (was_free[seed]) continue;
      const std::vector<std::vector<uint32_t>> wide = along(*states, axis);
      const std::vector<uint32_t> near = around(network, seed);
      for (size_t count = std::min(near.size(), most); count > 0; count /= 2) {
        std::vector<std::vector<uint32_t>> allowed(network.size());
        for (uint32_t variable = 0; variable < network.size(); ++variable) allowed[variable] = {(*states)[variable]};
        for (size_t i = 0; i < count; ++i) allowed[near[i]] = wide[near[i]];
        if (!network.minimise(allowed, kSmallEffort, states)) continue;
        // For the inner variables, all neighbours were free.
        for (size_t i = 0; i < count / 4; ++i) was_free[near[i]] = true;
        most = 2 * count;
        break;
      }
    }
  }

  static std::vector<uint32_t> around(const Network& network, uint32_t seed) {
    std::vector<uint32_t> found{seed};
    std::vector<bool> is_found(network.size(), false);
    is_found[seed] = true;
    for (size_t i = 0; i < found.size() && found.size() < 256; ++i) {
      for (const uint32_t next : network.neighbours(found[i])) {
        if (is_found[next]) continue;
        is_found[next] = true;
        found.push_back(next);
      }
    }
    return found;
  }

  Plan plan_of(const std::vector<uint32_t>& states, bool is_best) const {
    Plan plan;
    plan.grid = grid_;
    plan.is_best = is_best;
    plan.kept.resize(program_.values().size(), NdSbp::filled(grid_.rank(), Sbp::broadcast()));
    for (ValueId id = 1; id < plan.kept.size(); ++id) plan.kept[id] = spreads_[of_value(id)][states[of_value(id)]];
    for (size_t i = 0; i < program_.calls().size(); ++i) plan.ways.push_back(ways(i)[states[of_call(i)]]);
    return plan;
  }

  const Program& program_;
  const Topology& topology_;
  Dims grid_;
  const PlanOptions& options_;
  Moves moves_;
  Classes classes_;
  bool is_shared_;
  std::vector<std::shared_ptr<const std::vector<Way>>> ways_;  // by class of calls
  std::vector<std::vector<NdSbp>> spreads_;                    // by class of values
  std::vector<double> counts_;                                 // number of calls, by class
  std::map<Use, double> uses_;                                 // number of uses
  Network network_;
};

// A list of all ranks, and every grid of two axes; if there are many, those with the shortest inner axes.
std::vector<Dims> grids_of(int64_t ranks) {
  std::vector<Dims> grids{{ranks}};
  for (int64_t inner = 2; inner < ranks && grids.size() < kMostGrids; ++inner) {
    if (ranks % inner == 0) grids.push_back({ranks / inner, inner});
  }
  return grids;
}

void check(const Program& program, const Topology& topology, int64_t ranks, const PlanOptions& options) {
  const auto refuse = [](const std::string& why) { throw Error(Code::invalid_argument, why); };
  if (ranks < 1 || ranks > topology.ranks()) {
    refuse(fmt::format("A plan for {} ranks is not possible: the topology has 1 to {}.", ranks, topology.ranks()));
  }
  for (const Dims& grid : options.grids) {
    if (element_count(grid) != ranks || grid.empty())
      refuse(fmt::format("The grid {} does not have {} ranks.", grid, ranks));
    if (grid.rank() > 3) refuse(fmt::format("The grid {} has more than 3 axes.", grid));
  }
  for (const auto& [id, sbp] : options.given) {
    if (options.grids.empty()) refuse("A spread is given, so the grid must be given too.");
    for (const Dims& grid : options.grids) {
      if (sbp.rank() == grid.rank()) continue;
      refuse(fmt::format("The spread {} has {} entries, and the grid {} has {} axes.", global::to_string(sbp),
                         sbp.rank(), grid, grid.rank()));
    }
    const Program::Value& value = program.values()[id];
    for (const Sbp each : sbp) {
      const bool fits = each.is_split() ? each.axis() < value.dims.rank() : !each.is_partial() || !value.is_input;
      if (!fits) refuse(fmt::format("A value of shape {} cannot be spread as {}.", value.dims, global::to_string(sbp)));
    }
  }
}

}  // namespace

Dims coordinates_of(const Dims& grid, int64_t position) {
  Dims coordinates = grid;
  for (int32_t axis = grid.rank() - 1; axis >= 0; --axis) {
    coordinates[axis] = position % grid[axis];
    position /= grid[axis];
  }
  return coordinates;
}

double seconds_of_move(DType dtype, const Dims& dims, const NdSbp& from, const NdSbp& to, const Dims& grid,
                       const Topology& topology, const Lines& lines) {
  // Parts differ by one along an axis: the first rank has the most, and sends the least of sums.
  double slowest = 0;
  for (const int64_t position : {int64_t{0}, element_count(grid) - 1}) {
    double seconds = 0;
    for (const global::Sent& sent : global::sent_between(dims, from, to, grid, coordinates_of(grid, position))) {
      seconds += lines.seconds(sent, static_cast<double>(dtype_bytes(dtype, sent.elements)));
    }
    slowest = std::max(slowest, seconds);
  }
  // A tensor that becomes a partial sum is filled with zeros.
  for (int32_t axis = 0; axis < grid.rank(); ++axis) {
    if (!to[axis].is_partial() || from[axis].is_partial()) continue;
    const Dims first = Dims::filled(grid.rank(), 0);
    slowest += topology.start + bytes_of(dtype, global::box_of(dims, to, grid, first).dims) / topology.bandwidth;
  }
  return slowest;
}

Plan make_plan(const Program& program, const Topology& topology, int64_t ranks, const PlanOptions& options) {
  check(program, topology, ranks, options);
  std::optional<Plan> best;
  double least = 0;
  uint64_t memory = 0;
  const auto offer = [&](Plan plan) {
    const Forecast cast = forecast(program, plan, topology);
    plan.fits = topology.memory == 0 || static_cast<double>(cast.memory) <= topology.memory;
    const bool is_better = !best || (plan.fits && !best->fits) ||
                           (plan.fits == best->fits && (plan.fits ? cast.seconds() < least : cast.memory < memory));
    const bool fits = plan.fits;
    if (is_better) best = std::move(plan), least = cast.seconds(), memory = cast.memory;
    return fits;
  };
  // The cost of a byte of memory rises until the program fits.
  const auto search_long = [&](const Dims& grid) {
    Search search(program, topology, grid, options);
    Plan plan = search.best(0, nullptr, true);
    double weight = 0.01 / topology.bandwidth;
    for (int32_t trial = 0; trial < 6 && !offer(plan); ++trial, weight *= 10) plan = search.best(weight, &plan, true);
  };
  const std::vector<Dims> grids = options.grids.empty() ? grids_of(ranks) : options.grids;
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < grids.size(); ++i) {
    order.emplace_back(0, i);
    if (grids.size() <= kSearchedGrids) continue;
    Plan plan = Search(program, topology, grids[i], options).best(0, nullptr, false);
    order[i].first = forecast(program, plan, topology).seconds();
    offer(std::move(plan));
  }
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size() && (i < kSearchedGrids || !best->fits); ++i) search_long(grids[order[i].second]);
  return std::move(*best);
}

Forecast forecast(const Program& program, const Plan& plan, const Topology& topology, int64_t position) {
  Forecast cast;
  cast.bytes_per_level.assign(topology.levels.size(), 0);
  const Lines lines(topology, plan.grid);
  const Dims coordinates = coordinates_of(plan.grid, position);
  Moves moves(plan.grid, topology);
  const auto move = [&](ValueId id, const NdSbp& from, const NdSbp& to) {
    if (from == to) return;
    const Program::Value& value = program.values()[id];
    cast.moving += moves.seconds(value, from, to);
    for (const global::Sent& sent : global::sent_between(value.dims, from, to, plan.grid, coordinates)) {
      const int64_t bytes = dtype_bytes(value.dtype, sent.elements);
      ++cast.exchanges;
      cast.bytes += static_cast<uint64_t>(bytes);
      lines.add_bytes(sent, static_cast<double>(bytes), &cast.bytes_per_level);
    }
  };
  for (size_t i = 0; i < program.calls().size(); ++i) {
    const Program::Call& call = program.calls()[i];
    const Way& way = plan.ways[i];
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      if (call.inputs[k] != 0) move(call.inputs[k], plan.kept[call.inputs[k]], way.inputs[k]);
    }
    cast.computing += way.seconds;
    for (size_t k = 0; k < call.outputs.size(); ++k) move(call.outputs[k], way.outputs[k], plan.kept[call.outputs[k]]);
  }
  const Lives lives = lives_of(program, plan, coordinates);
  cast.memory = most_alive(lives, program.calls().size()).second;
  for (const ValueId id : program.inputs()) cast.held += lives.bytes[id];
  return cast;
}

}  // namespace tenon::cluster
