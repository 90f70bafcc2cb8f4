// Random graphs: each pass alone on 2,000 of them, and all together. An exact pass keeps every bit, a bounded one stays
// within its bound; each is idempotent. A graph that fails is made smaller, and printed as text.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "core/graph/execute/executable.h"
#include "core/graph/passes/passes.h"
#include "core/graph/recorder.h"
#include "core/graph/text.h"
#include "core/graph/verify.h"
#include "primitives/text/format.h"
#include "tests/unit/graph/random_program.h"

namespace tenon::graph {
namespace {

#ifdef __has_feature
#define TENON_SLOW (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define TENON_SLOW 0
#endif
constexpr uint32_t kGraphs = TENON_SLOW ? 100 : 2000;
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
  // Passes also get graphs with known values, with nodes that nobody needs, and with epilogues.
  if (seed % 4 == 1) graph.replace(graph.inputs()[1], graph.add_constant(random_tensor({4, 4}, seed)));
  if (seed % 4 == 2) graph.set_outputs({graph.outputs()[0], graph.outputs()[3]});
  if (seed % 4 == 3) take_epilogues(&graph, {});
  return print(graph);
}

// Runs into outputs full of a pattern that no result has.
TensorList results_of(const Graph& graph, uint32_t seed) {
  const Executable program = prepare(graph);
  TensorList inputs, outputs;
  for (uint32_t id : program.inputs) {
    const TensorMeta& meta = program.values[id].meta;
    const Tensor given = random_tensor(meta.dims, seed + 100000 * static_cast<uint32_t>(inputs.size()));
    inputs.push_back(is_floating(meta.dtype) ? cast(given, meta.dtype) : random_numbers(meta.dims, seed));
    if (!is_floating(meta.dtype)) inputs.back() = cast(inputs.back(), meta.dtype);
  }
  for (ValueId id : graph.outputs()) {
    const TensorMeta& meta = program.values[id].meta;
    const std::string poison(static_cast<size_t>(dtype_bytes(meta.dtype, element_count(meta.dims))), '\x5a');
    outputs.push_back(Tensor::copy_from_host(poison.data(), meta.dims, meta.dtype, Device::current()));
  }
  return run(program, inputs, outputs);
}

std::string bytes_of(const Tensor& tensor) {
  std::string bytes(static_cast<size_t>(tensor.bytes()), '\0');
  tensor.copy_to_host(bytes.data());
  return bytes;
}

// What differs between results; nothing if they have the same bits, or are near where `exact` is false.
std::optional<std::string> difference(const TensorList& got, const TensorList& expected, bool exact) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (bytes_of(got[i]) == bytes_of(expected[i])) continue;
    if (exact || !is_floating(expected[i].dtype())) return fmt::format("output {} has other bits", i);
    const std::vector<double> a = cast(got[i], DType::f64).to_host<double>();
    const std::vector<double> b = cast(expected[i], DType::f64).to_host<double>();
    for (size_t k = 0; k < a.size(); ++k) {
      const bool near = std::fabs(a[k] - b[k]) <= 1e-4 * (1 + std::fabs(b[k]));
      if (!near && !(std::isnan(a[k]) && std::isnan(b[k])))
        return fmt::format("output {}[{}] is {}, not {}", i, k, a[k], b[k]);
    }
  }
  return std::nullopt;
}

// A pass, or all of them.
struct Rewriting {
  std::string name;
  bool exact = false;
  std::function<void(Graph*)> run;
  bool idempotent = true;
};

// What `rewriting` does wrong to the graph of `text`; nothing if all is right.
std::optional<std::string> fault(const std::string& text, const Rewriting& rewriting, uint32_t seed) {
  Graph plain = parse(text), graph = parse(text);
  const TensorList expected = results_of(plain, seed);
  try {
    rewriting.run(&graph);
    if (const Status status = verify(graph); !status.ok()) return status.message();
    const std::string once = print(graph);
    if (rewriting.idempotent) rewriting.run(&graph);
    if (print(graph) != once) return "it is not idempotent";
    return difference(results_of(graph, seed), expected, rewriting.exact);
  } catch (const Error& error) {
    return std::string(error.what());
  }
}

// Smaller graphs than `text`: one output less, or a node less whose users read an input of its own type or a new input.
std::vector<std::string> smaller(const std::string& text) {
  std::vector<std::string> all;
  const Graph graph = parse(text);
  const auto add = [&](Graph&& changed) {
    remove_dead_code(&changed);
    all.push_back(print(changed));
  };
  for (size_t i = 0; graph.outputs().size() > 1 && i < graph.outputs().size(); ++i) {
    Graph changed = parse(text);
    changed.set_outputs({changed.outputs()[i]});
    add(std::move(changed));
  }
  for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
    if (graph.node(id).results.size() != 1) continue;
    const Value& result = graph[graph.node(id).results[0]];
    for (ValueId input : graph.node(id).inputs) {
      if (input == 0 || graph[input].dtype != result.dtype || !(to_string(graph[input].dims) == to_string(result.dims)))
        continue;
      Graph changed = parse(text);
      changed.replace(changed.node(id).results[0], input);
      add(std::move(changed));
    }
    Graph changed = parse(text);
    changed.replace(changed.node(id).results[0], changed.add_input(result.dtype, result.dims, result.device));
    add(std::move(changed));
  }
  return all;
}

// Makes `text`, which fails, smaller as long as it still fails.
std::string shrink(std::string text, const Rewriting& rewriting, uint32_t seed) {
  for (bool found = true; found;) {
    found = false;
    for (const std::string& candidate : smaller(text)) {
      bool fails = false;
      try {
        fails = candidate.size() < text.size() && fault(candidate, rewriting, seed).has_value();
      } catch (const Error&) {
        continue;  // no graph, or one that cannot run as it is
      }
      if (!fails) continue;
      text = candidate;
      found = true;
      break;
    }
  }
  return text;
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

TEST_P(EveryPass, KeepsTheResultsOfRandomGraphs) {
  const Pass& pass = *GetParam();
  uint32_t changed = 0;
  expect_right({std::string(pass.name), pass.bound.empty(), [&](Graph* graph) { pass.run(graph, {}); }}, &changed);
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
  // A later pass may make what an earlier one looks for.
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

// A wrong pass is found, and what is left of the graph is small.
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
