// Plans on every rank of a launch. For any plan, the bytes that a rank sends in a run equal the forecast, and the
// results equal those of one process.
#include <gtest/gtest.h>

#include <random>

#include "core/cluster/measure.h"
#include "core/global/global.h"
#include "core/graph/execute/executable.h"
#include "primitives/text/format.h"
#include "tests/unit/cluster/programs.h"

namespace tenon::cluster {
namespace {

using global::Sbp;

Topology small_cluster(int64_t ranks) {
  return parse_topology(fmt::format("rank: 1 GFLOP/s, 1 GB/s\nnode: {} ranks, 10 us, 1 GB/s", ranks));
}

std::vector<Dims> grids() {
  const int64_t ranks = global::world_size();
  std::vector<Dims> all{{ranks}, {ranks, 1}};
  if (ranks == 4) all.push_back({2, 2});
  return all;
}

// A random spread for each value, and a random way for each call.
Plan random_plan(const Program& program, const Dims& grid, std::mt19937_64* generator) {
  const Topology topology = small_cluster(element_count(grid));
  Plan plan;
  plan.grid = grid;
  for (ValueId id = 0; id < program.values().size(); ++id) {
    const Program::Value& value = program.values()[id];
    NdSbp sbp;
    for (int32_t axis = 0; axis < grid.rank(); ++axis) {
      const auto pick = static_cast<int64_t>((*generator)() % static_cast<uint64_t>(value.dims.rank() + 2));
      const bool is_sum = pick == value.dims.rank() + 1 && !value.is_input && is_floating(value.dtype);
      sbp.push_back(pick < value.dims.rank() ? Sbp::split(pick) : is_sum ? Sbp::partial() : Sbp::broadcast());
    }
    plan.kept.push_back(sbp);
  }
  for (ValueId id = 0; id < plan.kept.size(); ++id) plan.kept[id] = plan.kept[program.values()[id].home];
  for (const Program::Call& call : program.calls()) {
    const std::vector<Way> ways = ways_of(program, call, grid, topology);
    plan.ways.push_back(ways[(*generator)() % ways.size()]);
  }
  return plan;
}

void expect_as_forecast(const Program& program, const Plan& plan, const std::string& what) {
  const TensorList inputs = sample_inputs(program, 3);
  const Measured measured = run_plan(program, plan, inputs);
  const Forecast cast = forecast(program, plan, small_cluster(global::world_size()), global::rank());
  EXPECT_EQ(measured.exchanges, cast.exchanges) << what;
  EXPECT_EQ(measured.bytes, cast.bytes) << what;
  const TensorList expected = graph::run(graph::prepare(program.graph()), inputs);
  ASSERT_EQ(measured.results.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::vector<float> got = measured.results[i].to_host<float>(), wanted = expected[i].to_host<float>();
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t at = 0; at < got.size(); ++at)
      ASSERT_NEAR(got[at], wanted[at], 1e-4 * (1 + std::abs(wanted[at]))) << what;
  }
}

void expect_random_plans(const graph::Graph& graph, const ProgramOptions& options, int32_t count) {
  const Program program = program_of(graph, options);
  std::mt19937_64 generator(11);
  for (const Dims& grid : grids()) {
    for (int32_t trial = 0; trial < count; ++trial) {
      expect_as_forecast(program, random_plan(program, grid, &generator), fmt::format("grid {}, plan {}", grid, trial));
    }
  }
}

TEST(Ranks, SendWhatAnyPlanOfAPerceptronSays) { expect_random_plans(perceptron(), {}, 6); }

TEST(Ranks, SendWhatAnyPlanOfAttentionSays) { expect_random_plans(attention(), {}, 3); }

TEST(Ranks, SendWhatAnyPlanOfATrainingStepSays) {
  expect_random_plans(perceptron(), {.train = true, .parameters = {1, 2, 3}}, 3);
}

TEST(Ranks, SendWhatTheChosenPlanSays) {
  const int64_t ranks = global::world_size();
  for (const bool train : {false, true}) {
    const Program program = program_of(perceptron(65, 33, 40, 24), {.train = train, .parameters = {1, 2, 3}});
    for (const Dims& grid : grids()) {
      PlanOptions options;
      options.grids = {grid};
      const Plan plan = make_plan(program, small_cluster(ranks), ranks, options);
      expect_as_forecast(program, plan, fmt::format("grid {}", grid));
    }
  }
}

// The times of ops on this machine are stored by name, the same on every rank, and used in a forecast.
TEST(Ranks, NoteThePacesOfOps) {
  const int64_t ranks = global::world_size();
  const Program program = program_of(perceptron(65, 33, 40, 24), {.train = true, .parameters = {1, 2, 3}});
  Topology topology = small_cluster(ranks);
  topology.start = 1e-6;
  const Plan plan = make_plan(program, topology, ranks);
  measure_ops(program, plan, sample_inputs(program, 1), &topology);
  const Plan again = make_plan(program, topology, ranks);
  const global::Placement all = global::Placement::all("cpu");
  double expected = 0;
  for (size_t i = 0; i < program.calls().size(); ++i) {
    const OpInfo& op = *program.calls()[i].node->op;
    if (op.form == OpForm::view) continue;
    const auto pace = topology.paces.find(op.name);
    ASSERT_NE(pace, topology.paces.end()) << op.name;
    const Tensor own = Tensor::from<double>(std::vector<double>{pace->second}, {1});
    const std::vector<double> of_all = global::to_global(own, all, {Sbp::split(0)}).to_host<double>();
    EXPECT_EQ(of_all, std::vector<double>(static_cast<size_t>(ranks), pace->second)) << op.name;
    Topology alone = topology;
    alone.paces.clear();
    const double said =
        seconds_of(program, program.calls()[i], again.ways[i], again.grid, Dims::filled(again.grid.rank(), 0), alone) -
        alone.start;
    expected += alone.start + pace->second * said;
  }
  EXPECT_NEAR(forecast(program, again, topology).computing, expected, 1e-9 + 1e-6 * expected);
}

TEST(Ranks, RefuseAPlanOfAnotherNumber) {
  const Program program = program_of(perceptron());
  const int64_t more = global::world_size() + 1;
  const Plan plan = make_plan(program, small_cluster(more), more);
  EXPECT_THROW(run_plan(program, plan, sample_inputs(program, 1)), Error);
}

}  // namespace
}  // namespace tenon::cluster
