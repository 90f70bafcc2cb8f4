// Random graphs: each pass alone on 2,000 of them, and all together. An exact pass keeps every bit, a bounded one stays
// within its bound; each is idempotent. A failing graph is shrunk, and printed as text.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "core/graph/passes/passes.h"
#include "core/graph/passes/recompute.h"
#include "core/graph/recorder.h"
#include "tests/unit/graph/random_program.h"
#include "tests/unit/graph/shrink.h"

namespace tenon::graph {
namespace {

constexpr uint32_t kGraphs = kSanitized ? 100 : 1000;
constexpr int kOps = 16;

TensorList inputs_of(uint32_t seed) {
  return {random_tensor({4, 4}, seed), random_tensor({4, 4}, seed + 100000), random_numbers({4, 4}, seed + 200000)};
}

std::string record(uint32_t seed, bool smooth) {
  Recorder recorder(Device::current());
  InterpreterScope scope(recorder);
  TensorList values;
  for (const Tensor& input : inputs_of(seed)) values.push_back(recorder.input(input.dtype(), input.dims()));
  Graph graph = recorder.finish(RandomProgram(seed, kOps, smooth)(values));
  // Passes also get graphs with known values, with unused nodes, and with epilogues.
  if (seed % 4 == 1) graph.replace(graph.inputs()[1], graph.add_constant(random_tensor({4, 4}, seed)));
  if (seed % 4 == 2) graph.set_outputs({graph.outputs()[0], graph.outputs()[3]});
  if (seed % 4 == 3) take_epilogues(&graph, {});
  return print(graph);
}

// True if `rewriting` changes the graph of `text`.
bool changes(const std::string& text, const Rewriting& rewriting) {
  Graph graph = parse(text);
  const std::string before = print(graph);
  rewriting.run(&graph);
  return print(graph) != before;
}

// `changed` counts the graphs that `rewriting` changes.
void expect_right(const Rewriting& rewriting, uint32_t* changed = nullptr) {
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    const std::string text = record(seed, !rewriting.exact);
    if (changed != nullptr) *changed += changes(text, rewriting) ? 1 : 0;
    if (!fault(text, rewriting, seed)) continue;
    const std::string small = shrink(text, rewriting, seed);
    FAIL() << rewriting.name << ", seed " << seed << ": " << *fault(small, rewriting, seed) << "\n" << small;
  }
}

class EveryPass : public ::testing::TestWithParam<const Pass*> {};

// Runs the pass with a memory limit below the need of the graph. Does nothing if the limit cannot be met.
void run_under_a_limit(const Pass& pass, Graph* graph) {
  RecomputeReport report;
  RecomputeOptions recompute{.report = &report};
  Graph tried = graph->copy();
  compute_again(&tried, recompute);
  recompute.limit = report.live_before * 9 / 10;
  try {
    pass.run(&tried, {.recompute = &recompute});
  } catch (const Error&) {
    return;
  }
  *graph = std::move(tried);
}

TEST_P(EveryPass, KeepsTheResultsOfRandomGraphs) {
  const Pass& pass = *GetParam();
  uint32_t changed = 0;
  const auto rewrite = [&](Graph* graph) {
    if (pass.name == "recompute") return run_under_a_limit(pass, graph);
    pass.run(graph, {.fuse = pass.name == "picked" ? std::optional(true) : std::nullopt});
  };
  expect_right({std::string(pass.name), pass.bound.empty(), rewrite, pass.name != "recompute"}, &changed);
  EXPECT_GT(changed, kGraphs / 10) << "too few graphs have what the pass looks for";
}

std::vector<const Pass*> rows() {
  std::vector<const Pass*> all;
  for (const Pass& pass : passes()) all.push_back(&pass);
  return all;
}

INSTANTIATE_TEST_SUITE_P(RandomGraphs, EveryPass, ::testing::ValuesIn(rows()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(RandomGraphs, AllPassesKeepTheResults) {
  // A later pass may create a pattern that an earlier pass looks for.
  expect_right({"all passes", false, [](Graph* graph) { optimise(graph); }, false});
}

TEST(RandomGraphs, ExactPassesKeepEveryBit) {
  expect_right({"exact passes", true, [](Graph* graph) { optimise(graph, {.exact = true}); }});
}

// Recorded programs give the bits of eager ones.
TEST(RandomGraphs, GiveWhatEagerRunsGive) {
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    const TensorList eager = RandomProgram(seed, kOps, false)(inputs_of(seed));
    Recorder recorder(Device::current());
    InterpreterScope scope(recorder);
    TensorList values;
    for (const Tensor& input : inputs_of(seed)) values.push_back(recorder.input(input.dtype(), input.dims()));
    const Graph graph = recorder.finish(RandomProgram(seed, kOps, false)(values));
    InterpreterScope run_eagerly(eager_interpreter());
    const auto different = difference(run(prepare(graph), inputs_of(seed)), eager, true);
    ASSERT_FALSE(different.has_value()) << "seed " << seed << ": " << *different << "\n" << print(graph);
  }
}

// A wrong pass is detected, and the shrunk graph is small.
TEST(RandomGraphs, AWrongPassIsFoundAndItsGraphShrinks) {
  const Rewriting wrong{"wrong", true, [](Graph* graph) {
                          for (NodeId id = graph->first(); id != kNoNode; id = graph->next(id)) {
                            if (graph->node(id).op->name != "sub" || graph->node(id).inputs[0] == 0) continue;
                            graph->replace(graph->node(id).results[0], graph->node(id).inputs[0]);
                          }
                          remove_dead_code(graph);
                        }};
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const std::string text = record(seed, true);
    if (!fault(text, wrong, seed)) continue;
    const Graph small = parse(shrink(text, wrong, seed));
    EXPECT_LE(small.size(), 3u) << print(small);
    return;
  }
  FAIL() << "no graph shows that the pass is wrong";
}

}  // namespace
}  // namespace tenon::graph
