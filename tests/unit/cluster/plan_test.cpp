// The choice of spreads against an exhaustive search, and against the layout of Megatron.
#include "core/cluster/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/cluster/network.h"
#include "primitives/text/format.h"
#include "tests/unit/cluster/programs.h"

namespace tenon::cluster {
namespace {

using global::Sbp;

constexpr double kNever = std::numeric_limits<double>::infinity();

// Calls `visit` with every list whose element i is below counts[i].
template <class Visit>
void for_each_choice(const std::vector<uint32_t>& counts, const Visit& visit) {
  std::vector<uint32_t> choice(counts.size(), 0);
  while (true) {
    visit(choice);
    size_t i = 0;
    while (i < counts.size() && ++choice[i] == counts[i]) choice[i++] = 0;
    if (i == counts.size()) return;
  }
}

TEST(Network, FindsWhatTryingAllFinds) {
  std::mt19937_64 generator(5);
  const auto costs = [&](size_t count) {
    std::vector<double> made(count);
    for (double& cost : made) cost = generator() % 9 == 0 ? kNever : static_cast<double>(generator() % 1000);
    made[0] = 7;  // so that something is always possible
    return made;
  };
  for (int trial = 0; trial < 60; ++trial) {
    Network network;
    std::vector<uint32_t> counts;
    std::vector<std::vector<uint32_t>> allowed;
    for (int i = 0; i < 6; ++i) {
      counts.push_back(1 + static_cast<uint32_t>(generator() % 4));
      network.add(costs(counts.back()));
      allowed.emplace_back();
      for (uint32_t state = 0; state < counts.back(); ++state) allowed.back().push_back(state);
    }
    for (int i = 0; i < 9; ++i) {
      const auto a = static_cast<uint32_t>(generator() % 6), b = static_cast<uint32_t>(generator() % 6);
      if (a != b) network.connect(a, b, costs(counts[a] * counts[b]));
    }
    double least = kNever;
    for_each_choice(counts,
                    [&](const std::vector<uint32_t>& states) { least = std::min(least, network.cost(states)); });
    std::vector<uint32_t> states(6, 0);
    ASSERT_TRUE(network.minimise(allowed, 1e9, &states));
    EXPECT_DOUBLE_EQ(network.cost(states), least) << trial;
    // Variables that must not change keep their values.
    allowed[2] = {counts[2] - 1};
    ASSERT_TRUE(network.minimise(allowed, 1e9, &states));
    EXPECT_EQ(states[2], counts[2] - 1);
  }
}

TEST(Network, RefusesWhatTakesTooLong) {
  Network network;
  std::vector<std::vector<uint32_t>> allowed;
  for (uint32_t i = 0; i < 8; ++i) {
    network.add(std::vector<double>(10, 1.0));
    allowed.push_back({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    for (uint32_t other = 0; other < i; ++other) network.connect(i, other, std::vector<double>(100, 1.0));
  }
  std::vector<uint32_t> states(8, 3);
  EXPECT_FALSE(network.minimise(allowed, 1e6, &states));
  EXPECT_EQ(states, std::vector<uint32_t>(8, 3));
}

// Every spread that a value may have. Results and inputs have no partial sums.
std::vector<NdSbp> spreads_of(const Program::Value& value, int32_t axes) {
  std::vector<NdSbp> all{NdSbp()};
  for (int32_t axis = 0; axis < axes; ++axis) {
    std::vector<NdSbp> longer;
    for (const NdSbp& begin : all) {
      for (int64_t split = -2; split < value.dims.rank(); ++split) {
        if (split == -2 && (value.is_input || value.is_result)) continue;
        longer.push_back(begin);
        longer.back().push_back(split == -2 ? Sbp::partial() : split == -1 ? Sbp::broadcast() : Sbp::split(split));
      }
    }
    all = std::move(longer);
  }
  return all;
}

// The least cost over all spreads of all values, with each call computed in its best way.
double least_of_all(const Program& program, const Dims& grid, const Topology& topology) {
  const Lines lines(topology, grid);
  std::vector<std::vector<NdSbp>> spreads;
  std::vector<uint32_t> counts;
  for (ValueId id = 0; id < program.values().size(); ++id) {
    const bool alone = id == 0 || program.is_constant(id);
    spreads.push_back(alone ? std::vector<NdSbp>{NdSbp::filled(grid.rank(), Sbp::broadcast())}
                            : spreads_of(program.values()[id], grid.rank()));
    counts.push_back(static_cast<uint32_t>(spreads.back().size()));
  }
  std::vector<std::vector<Way>> ways;
  for (const Program::Call& call : program.calls()) ways.push_back(ways_of(program, call, grid, topology));
  std::map<std::string, double> known;
  const auto move = [&](ValueId id, const NdSbp& from, const NdSbp& to) {
    const Program::Value& value = program.values()[id];
    const auto [found, is_new] =
        known.emplace(fmt::format("{} {} {}", id, global::to_string(from), global::to_string(to)), 0.0);
    if (is_new) found->second = seconds_of_move(value.dtype, value.dims, from, to, grid, topology, lines);
    return found->second;
  };
  double least = kNever;
  for_each_choice(counts, [&](const std::vector<uint32_t>& choice) {
    double sum = 0;
    for (size_t i = 0; i < program.calls().size() && sum < least; ++i) {
      const Program::Call& call = program.calls()[i];
      double best = kNever;
      for (const Way& way : ways[i]) {
        double cost = way.seconds;
        for (size_t k = 0; k < call.inputs.size(); ++k) {
          const ValueId id = call.inputs[k];
          if (id != 0) cost += move(id, spreads[id][choice[id]], way.inputs[k]);
        }
        for (size_t k = 0; k < call.outputs.size(); ++k) {
          cost += move(call.outputs[k], way.outputs[k], spreads[call.outputs[k]][choice[call.outputs[k]]]);
        }
        best = std::min(best, cost);
      }
      sum += best;
    }
    least = std::min(least, sum);
  });
  return least;
}

constexpr const char* kSlowLinks =
    "rank: 1 MFLOP/s, 1 MB/s, 1 us\nnode: 2 ranks, 1 us, 1 MB/s\ncluster: 4 nodes, 9 us, 200 kB/s";
constexpr const char* kSlowSteps = "rank: 1 MFLOP/s, 1 MB/s\nnode: 8 ranks, 30 us, 20 MB/s";

TEST(Plan, CostsTheLeastOfAllChoices) {
  for (const char* text : {kSlowLinks, kSlowSteps}) {
    const Topology topology = parse_topology(text);
    for (uint64_t seed = 0; seed < 12; ++seed) {
      const Program program = program_of(random_graph(seed, 3));
      for (const int64_t ranks : {2, 3}) {
        PlanOptions options;
        options.grids = {{ranks}};
        const Plan plan = make_plan(program, topology, ranks, options);
        EXPECT_TRUE(plan.is_best);
        const double least = least_of_all(program, {ranks}, topology);
        EXPECT_NEAR(forecast(program, plan, topology).seconds(), least, 1e-6 * least) << "graph " << seed;
      }
    }
  }
}

TEST(Plan, CostsTheLeastOfAllChoicesOnAGrid) {
  const Topology topology = parse_topology(kSlowLinks);
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const Program program = program_of(random_graph(seed, 1));
    PlanOptions options;
    options.grids = {{2, 2}};
    const Plan plan = make_plan(program, topology, 4, options);
    EXPECT_TRUE(plan.is_best);
    const double least = least_of_all(program, {2, 2}, topology);
    EXPECT_NEAR(forecast(program, plan, topology).seconds(), least, 1e-6 * least) << "graph " << seed;
  }
}

// A program that is searched, because no table holds it.
TEST(Plan, OfADecoderIsAsGoodAsTheLayoutOfMegatron) {
  const Topology topology = parse_topology(kBigCluster);
  const Decoder sizes{.layers = 2};
  const Program program = decoder_program(sizes, false);
  PlanOptions options;
  options.effort = 1e5;
  options.grids = {{512, 8}};
  const Plan plan = make_plan(program, topology, 4096, options);
  EXPECT_FALSE(plan.is_best);
  options.given = megatron(program, sizes, false);
  const Plan theirs = make_plan(program, topology, 4096, options);
  for (const auto& [id, sbp] : options.given) EXPECT_EQ(theirs.kept[id], sbp);
  EXPECT_LE(forecast(program, plan, topology).seconds(), 1.05 * forecast(program, theirs, topology).seconds());
}

TEST(Plan, KeepsToTheMemoryOfARank) {
  const Program program = program_of(perceptron(64, 64, 64, 64));
  const std::string begin = "rank: 1 GFLOP/s, 1 GB/s, ", end = "\nnode: 4 ranks, 1 ms, 1 GB/s";
  const Plan fast = make_plan(program, parse_topology(begin + "1 MB" + end), 4);
  const Topology narrow = parse_topology(begin + "40 kB" + end);
  const Plan small = make_plan(program, narrow, 4);
  EXPECT_TRUE(fast.fits);
  EXPECT_GT(forecast(program, fast, narrow).memory, 40000U);
  EXPECT_TRUE(small.fits);
  EXPECT_LE(forecast(program, small, narrow).memory, 40000U);
  EXPECT_GT(forecast(program, small, narrow).seconds(), forecast(program, fast, narrow).seconds());
  EXPECT_FALSE(make_plan(program, parse_topology(begin + "1 kB" + end), 4).fits);
}

TEST(Plan, NewParametersAreWhereTheOldOnesAre) {
  const Program program = program_of(perceptron(), {.train = true, .parameters = {1, 2, 3}});
  ASSERT_EQ(program.results().size(), 4U);  // the loss, and three parameters
  const Plan plan = make_plan(program, parse_topology(kSlowLinks), 8);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(plan.kept[program.results()[i + 1]], plan.kept[program.inputs()[i + 1]]);
  }
}

TEST(Plan, RefusesWhatDoesNotFit) {
  const Program program = program_of(perceptron());
  const Topology topology = parse_topology(kSlowSteps);
  const auto error_of = [&](int64_t ranks, const PlanOptions& options) -> std::string {
    try {
      make_plan(program, topology, ranks, options);
    } catch (const Error& error) {
      return error.status().message();
    }
    return "no error";
  };
  const ValueId x = program.inputs()[0];
  EXPECT_EQ(error_of(9, {}), "A plan for 9 ranks is not possible: the topology has 1 to 8.");
  EXPECT_EQ(error_of(8, {.grids = {{2, 3}}}), "The grid [2, 3] does not have 8 ranks.");
  EXPECT_EQ(error_of(8, {.grids = {{2, 2, 2, 1}}}), "The grid [2, 2, 2, 1] has more than 3 axes.");
  EXPECT_EQ(error_of(8, {.given = {{x, {Sbp::split(0)}}}}), "A spread is given, so the grid must be given too.");
  EXPECT_EQ(error_of(8, {.grids = {{2, 4}}, .given = {{x, {Sbp::split(0)}}}}),
            "The spread S(0) has 1 entries, and the grid [2, 4] has 2 axes.");
  EXPECT_EQ(error_of(8, {.grids = {{8}}, .given = {{x, {Sbp::split(2)}}}}),
            "A value of shape [7, 5] cannot be spread as S(2).");
  EXPECT_EQ(error_of(8, {.grids = {{8}}, .given = {{x, {Sbp::partial()}}}}),
            "A value of shape [7, 5] cannot be spread as P.");
}

}  // namespace
}  // namespace tenon::cluster
