// Parts of a program that run as whole graphs on the asynchronous fake: the results have the bits of the plain run.
#include "core/graph/execute/islands.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <random>

#include "core/device/device_state.h"
#include "core/graph/recorder.h"
#include "core/interpreter/execution_report.h"
#include "core/ops/ops.h"
#include "core/primitive/compiled_graph.h"
#include "loader/loader.h"
#include "tests/fakes/async/control.h"

namespace tenon::graph {
namespace {

using Program = std::function<TensorList(const TensorList&)>;
using fakes::async_control;

class Islands : public ::testing::Test {
 protected:
  // The fake with all primitives of the reference and whole graphs.
  static Device device() {
    static const Device one = [] {
      async_control().memory = uint64_t{64} << 20;
      async_control().reference = async_control().graphs = true;
      loader::register_provider("islands", fakes::async_query);
      return Device("islands:0");
    }();
    return one;
  }

  void SetUp() override {
    static_cast<void>(device());
    async_control().graph_seed = 1;
    async_control().compile_answer = EP_STATUS_OK;
    async_control().fail_graph = -1;
    async_control().lose_device = false;
    async_control().delay_us = 50;
  }
  void TearDown() override { EXPECT_EQ(async_control().violation(), ""); }

  static Tensor random_tensor(const Dims& dims, uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> values(0.5f, 2.0f);
    std::vector<float> data(static_cast<size_t>(element_count(dims)));
    for (float& value : data) value = values(random);
    return Tensor::from<float>(data, dims, device());
  }

  static Executable record(const TensorList& inputs, const Program& code) {
    Recorder recorder(device());
    InterpreterScope scope(recorder);
    TensorList values;
    for (const Tensor& input : inputs) values.push_back(recorder.input(input.dtype(), input.dims()));
    return prepare(recorder.finish(code(values)), {.whole_graphs = false, .scheduled = false});
  }

  static size_t islands(const Executable& graph) {
    size_t count = 0;
    for (const Step& step : graph.steps) count += step.island != nullptr;
    return count;
  }
  static size_t nodes(const Executable& graph) {
    size_t count = 0;
    for (const Step& step : graph.steps) count += step.island != nullptr ? step.island->nodes.size() : 0;
    return count;
  }

  // The bits of all elements.
  static std::vector<std::vector<uint32_t>> values(const TensorList& results) {
    std::vector<std::vector<uint32_t>> all;
    for (const Tensor& result : results) {
      std::vector<uint32_t>& bits = all.emplace_back();
      for (float value : result.to_host<float>()) bits.push_back(std::bit_cast<uint32_t>(value));
    }
    return all;
  }

  // Runs `code` plainly, and under `seeds` draws of islands. Returns the number of nodes that ran in islands.
  static size_t expect_same(const TensorList& inputs, const Program& code, uint64_t seeds) {
    const std::vector<std::vector<uint32_t>> wanted = values(run(record(inputs, code), inputs));
    size_t in_islands = 0;
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      async_control().graph_seed = seed;
      Executable graph = record(inputs, code);
      take_islands(&graph);
      in_islands += nodes(graph);
      for (int round = 0; round < 2; ++round) EXPECT_EQ(values(run(graph, inputs)), wanted) << "seed " << seed;
    }
    return in_islands;
  }
};

TEST_F(Islands, TwoOpsRunAsOneGraph) {
  async_control().graph_seed = 0;
  const TensorList inputs = {random_tensor({3, 4}, 1), random_tensor({4}, 2)};
  Executable graph = record(inputs, [](const TensorList& in) -> TensorList { return {relu(sub(in[0], in[1]))}; });
  take_islands(&graph);
  const uint64_t launched = async_control().launched_graphs, single = async_control().launches;
  const std::vector<float> result = run(graph, inputs)[0].to_host<float>();
  EXPECT_EQ(async_control().launched_graphs - launched, 1u);
  EXPECT_EQ(async_control().launches - single, 0u);
  EXPECT_EQ(result, relu(sub(inputs[0], inputs[1])).to_host<float>());
  EXPECT_EQ(islands(graph), 1u);
  EXPECT_EQ(nodes(graph), 2u);
}

TEST_F(Islands, ViewsBetweenNodesNeedNoNodes) {
  const TensorList inputs = {random_tensor({4, 6}, 3)};
  const Program code = [](const TensorList& in) -> TensorList {
    const Tensor wave = exp(in[0]);
    const Tensor part = slice(permute(wave, {1, 0}), 0, 1, 5, 2);
    const Tensor flat = reshape(contiguous(part), {8});
    return {mul(flat, select(reshape(wave, {3, 8}), 0, 2)), add(select(wave, 0, 1), select(wave, 0, 3))};
  };
  EXPECT_GT(expect_same(inputs, code, 20), 0u);
  async_control().graph_seed = 0;
  Executable graph = record(inputs, code);
  take_islands(&graph);
  EXPECT_EQ(graph.steps.size(), 1u);
}

TEST_F(Islands, ViewsOfAnIslandsResultsAreTakenOutside) {
  const Program code = [](const TensorList& in) -> TensorList {
    const Tensor wave = exp(in[0]);
    return {permute(wave, {1, 0}), select(neg(wave), 0, 1)};
  };
  EXPECT_GT(expect_same({random_tensor({4, 6}, 4)}, code, 10), 0u);
}

TEST_F(Islands, ConstantsAreGivenByReference) {
  const Tensor weight = random_tensor({6, 5}, 5), bias = random_tensor({5}, 6);
  const Program code = [&](const TensorList& in) -> TensorList {
    return {softmax(add(matmul(in[0], weight), bias), -1), matmul(relu(in[0]), mul(weight, Scalar(0.5)))};
  };
  EXPECT_GT(expect_same({random_tensor({3, 6}, 7)}, code, 20), 0u);
}

TEST_F(Islands, MoreBordersThanAnOpHasOperands) {
  const Program code = [](const TensorList& in) -> TensorList {
    TensorList results;
    for (size_t i = 0; i < in.size(); ++i) results.push_back(add(exp(in[i]), in[(i + 7) % in.size()]));
    return results;
  };
  TensorList inputs;
  for (uint32_t i = 0; i < 40; ++i) inputs.push_back(random_tensor({3, 2}, 10 + i));
  EXPECT_GT(expect_same(inputs, code, 10), 0u);
  async_control().graph_seed = 0;
  Executable graph = record(inputs, code);
  take_islands(&graph);
  EXPECT_EQ(graph.steps.size(), 1u);
}

TEST_F(Islands, StepsThatWriteInPlaceKeepTheirOrder) {
  const Program code = [](const TensorList& in) -> TensorList {
    Tensor state = exp(in[0]);
    const Tensor before = neg(state);
    add_(state, Scalar(1.0));
    const Tensor apart = exp(neg(in[0]));
    const Tensor after = mul(state, apart);
    relu_(state);
    return {square(after), square(state), before, sqrt(add(apart, before))};
  };
  EXPECT_GT(expect_same({random_tensor({5, 3}, 8)}, code, 20), 0u);
}

// The island runs when its last node can run, and the step that reads `state` waits for the island. The step that
// writes `state` needs neither of them, but must still run after the reader.
TEST_F(Islands, AWriteInPlaceWaitsForAReaderThatWaitsForAnIsland) {
  const Program code = [](const TensorList& in) -> TensorList {
    Tensor state = exp(in[0]);
    const Tensor early = neg(in[0]);
    const Tensor before = mul(state, early);
    add_(state, Scalar(1.0));
    const Tensor late = square(in[0]);
    return {before, late, state};
  };
  EXPECT_GT(expect_same({random_tensor({5, 3}, 9)}, code, 5), 0u);
}

// A program of `size` ops, each on random earlier values; many are views.
Program random_program(uint32_t seed, int size) {
  return [seed, size](const TensorList& in) -> TensorList {
    std::mt19937 random(seed);
    TensorList all = in;
    const auto pick = [&] { return all[random() % all.size()]; };
    for (int i = 0; i < size; ++i) {
      const Tensor a = pick(), b = pick();
      switch (random() % 8) {
        case 0: all.push_back(mul(a, Scalar(0.5))); break;
        case 1: all.push_back(add(a, b)); break;
        case 2: all.push_back(maximum(a, neg(b))); break;
        case 3: all.push_back(permute(a, {1, 0})); break;
        case 4: all.push_back(softmax(a, static_cast<int64_t>(random() % 2))); break;
        case 5: all.push_back(matmul(a, b)); break;
        case 6: all.push_back(expand(slice(a, 0, 1, 2, 1), {4, 4})); break;
        default: all.push_back(sub(reshape(contiguous(a), {4, 4}), select(b, 0, 2))); break;
      }
    }
    return {all.back(), all[all.size() / 2], pick()};
  };
}

TEST_F(Islands, RandomProgramsHaveTheBitsOfPlainRuns) {
  size_t in_islands = 0;
  for (uint32_t program = 0; program < 12; ++program) {
    in_islands += expect_same({random_tensor({4, 4}, program), random_tensor({4, 4}, program + 100)},
                              random_program(program, 25), 8);
  }
  EXPECT_GT(in_islands, 500u);
}

class IslandErrors : public Islands {
 protected:
  // gather(exp(x), i) and more, with labels.
  Executable gathers(const Tensor& x, const Tensor& index) {
    Recorder recorder(device());
    InterpreterScope scope(recorder);
    const Tensor a = recorder.input(x.dtype(), x.dims());
    const Tensor i = recorder.input(index.dtype(), index.dims());
    recorder.label("node 0 (/first/Exp)");
    const Tensor wave = exp(a);
    recorder.label("node 1 (/second/Gather)");
    const Tensor rows = gather_slices(wave, 0, i);
    recorder.label("node 2 (/third/Neg)");
    const Tensor last = neg(rows);
    return prepare(recorder.finish(std::vector<Tensor>{last, wave}), {.whole_graphs = false, .scheduled = false});
  }

  static Tensor indices(std::vector<int64_t> values) {
    return Tensor::from<int64_t>(values, {static_cast<int64_t>(values.size())}, device());
  }

  static std::string error_of(const std::function<void()>& code) {
    try {
      code();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_F(IslandErrors, AFaultNamesItsNodeAsAPlainRunDoes) {
  const Tensor x = random_tensor({3, 2}, 1), bad = indices({1, 9}), good = indices({1, 2});
  Executable plain = gathers(x, bad), whole = gathers(x, bad);
  async_control().graph_seed = 0;
  take_islands(&whole);
  ASSERT_EQ(nodes(whole), 3u);
  const std::string wanted = error_of([&] { run(plain, std::vector<Tensor>{x, bad})[0].to_host<float>(); });
  EXPECT_NE(wanted.find("index 9 is out of range for an axis of length 3"), std::string::npos) << wanted;
  EXPECT_NE(wanted.find("while running node 1 (/second/Gather) on islands:0"), std::string::npos) << wanted;
  for (int output = 0; output < 2; ++output) {
    const auto read = [&] { run(whole, std::vector<Tensor>{x, bad})[static_cast<size_t>(output)].to_host<float>(); };
    EXPECT_EQ(error_of(read), wanted);
  }
  // The next run succeeds.
  EXPECT_EQ(values(run(whole, std::vector<Tensor>{x, good})), values(run(plain, std::vector<Tensor>{x, good})));
}

TEST_F(IslandErrors, ACompileThatRefusesLeavesTheStepsAsTheyWere) {
  const Tensor x = random_tensor({3, 2}, 1), index = indices({1, 2});
  Executable plain = gathers(x, index), refused = gathers(x, index);
  async_control().compile_answer = EP_STATUS_UNSUPPORTED;
  async_control().graph_seed = 0;
  take_islands(&refused);
  EXPECT_EQ(islands(refused), 0u);
  EXPECT_EQ(refused.steps.size(), plain.steps.size());
  EXPECT_EQ(refused.steps[1].alone, "its graph of 3 nodes was refused: the compiler was told to fail.");
  EXPECT_EQ(values(run(refused, std::vector<Tensor>{x, index})), values(run(plain, std::vector<Tensor>{x, index})));
}

TEST_F(IslandErrors, ACompileThatFailsIsAnError) {
  const Tensor x = random_tensor({3, 2}, 1), index = indices({1, 2});
  Executable graph = gathers(x, index);
  async_control().compile_answer = EP_STATUS_INTERNAL;
  async_control().graph_seed = 0;
  EXPECT_EQ(error_of([&] { take_islands(&graph); }),
            "the compiler was told to fail.\n  while compiling a graph of 3 nodes on islands:0");
  async_control().compile_answer = EP_STATUS_OK;
}

TEST_F(IslandErrors, ALaunchWithoutMemoryFailsAloneAndNamesTheGraph) {
  const Tensor x = random_tensor({3, 2}, 1), index = indices({1, 2});
  Executable graph = gathers(x, index);
  async_control().graph_seed = 0;
  take_islands(&graph);
  const std::vector<Tensor> inputs = {x, index};
  const std::vector<std::vector<uint32_t>> wanted = values(run(graph, inputs));
  async_control().fail_graph = 0;
  const std::string error = error_of([&] { run(graph, inputs)[0].to_host<float>(); });
  EXPECT_NE(error.find("this graph was told to find no room"), std::string::npos) << error;
  EXPECT_NE(error.find("while running the graph of 3 nodes, node 0 (/first/Exp) to node 2 (/third/Neg) on islands:0"),
            std::string::npos)
      << error;
  EXPECT_EQ(values(run(graph, inputs)), wanted);
}

TEST_F(IslandErrors, WorkAfterAFailedGraphIsPoisoned) {
  const Tensor x = random_tensor({3, 2}, 1), bad = indices({1, 9});
  Executable graph = gathers(x, bad);
  async_control().graph_seed = 0;
  take_islands(&graph);
  const Tensor result = run(graph, std::vector<Tensor>{x, bad})[1];
  const std::string error = error_of([&] { exp(result).to_host<float>(); });
  EXPECT_NE(error.find("/second/Gather"), std::string::npos) << error;
  const Tensor later = run(graph, std::vector<Tensor>{x, bad})[1];
  EXPECT_NE(error_of([&] { device().synchronize(); }), "no error");
  EXPECT_EQ(error_of([&] { later.to_host<float>(); }), error_of([&] { result.to_host<float>(); }));
  EXPECT_NE(error_of([&] { later.to_host<float>(); }), "no error");
}

TEST_F(IslandErrors, AGraphOutlivesItsProgramWhileItRuns) {
  const uint64_t compiled = async_control().compiled_graphs, destroyed = async_control().destroyed_graphs;
  const Tensor x = random_tensor({3, 2}, 1), index = indices({1, 2});
  async_control().graph_seed = 0;
  async_control().hold = true;
  TensorList results;
  {
    Executable graph = gathers(x, index);
    take_islands(&graph);
    results = run(graph, std::vector<Tensor>{x, index});
  }
  EXPECT_EQ(async_control().destroyed_graphs - destroyed, 0u);
  async_control().hold = false;
  EXPECT_EQ(results[0].to_host<float>().size(), 4u);
  device().synchronize();
  EXPECT_EQ(async_control().compiled_graphs - compiled, 1u);
  EXPECT_EQ(async_control().destroyed_graphs - destroyed, 1u);
}

TEST_F(IslandErrors, ReportsWhatRanAsOneAndWhyTheRestDidNot) {
  const Tensor x = random_tensor({3, 2}, 1), index = indices({1, 2});
  Executable graph = gathers(x, index);
  for (uint64_t seed = 1; islands(graph) == 0 || nodes(graph) == 3; ++seed) {
    async_control().graph_seed = seed;
    graph = gathers(x, index);
    take_islands(&graph);
  }
  std::vector<StepExecution> executions;
  run(graph, std::vector<Tensor>{x, index}, {}, &executions);
  size_t in_graphs = 0, alone = 0;
  for (const StepExecution& execution : executions) {
    const ExecutionEntry& entry = execution.entry;
    EXPECT_EQ(entry.device, "islands:0");
    EXPECT_EQ(entry.implementation, "reference");
    if (entry.op.rfind("graph of ", 0) == 0) {
      ++in_graphs;
    } else {
      ++alone;
      EXPECT_EQ(entry.reason, "alone: the draw has left it out");
    }
  }
  EXPECT_EQ(in_graphs, islands(graph));
  EXPECT_EQ(alone, 3 - nodes(graph));
  uint64_t counted = 0;
  for (const ExecutionEntry& entry : execution_report())
    counted += entry.op.rfind("graph of ", 0) == 0 ? entry.launches : 0;
  EXPECT_GE(counted, in_graphs);
}

// A demand that the device meets anyway is not in the table. A demand above the device's statement keeps the node out
// of all tables.
TEST_F(Islands, ANodeThatDemandsMoreThanTheDeviceStatesStaysOutside) {
  async_control().graph_seed = 0;
  const Tensor x = random_tensor({3, 2}, 1);
  const auto recorded = [&] {
    return record({x}, [](const TensorList& in) {
      const PrecisionScope scope(Precision::full);
      const Tensor exact = exp(in[0]);
      const PrecisionScope inner(Precision::stated);
      return TensorList{relu(exact)};
    });
  };
  Executable whole = recorded();
  take_islands(&whole);
  EXPECT_EQ(nodes(whole), 2u);
  Accuracy& stated = device().state()->opened->info.accuracy;
  stated.relaxed = uint64_t{1} << EP_DTYPE_f32;
  Executable parted = recorded();
  take_islands(&parted);
  stated = {};
  EXPECT_EQ(nodes(parted), 1u);
  std::string alone;
  for (const Step& step : parted.steps) alone += step.alone;
  EXPECT_EQ(alone, "f32 is of tier relaxed, and the program demands full");
  EXPECT_EQ(values(run(parted, std::vector<Tensor>{x})), values(run(whole, std::vector<Tensor>{x})));
}

// The device stays lost, so this must be the last test that uses it.
TEST_F(IslandErrors, XLostDeviceIsTheErrorOfTheRun) {
  const Tensor x = random_tensor({3, 2}, 1), index = indices({1, 2});
  Executable graph = gathers(x, index);
  async_control().graph_seed = 0;
  take_islands(&graph);
  const std::vector<Tensor> inputs = {x, index};
  run(graph, inputs)[0].to_host<float>();
  async_control().lose_device = true;
  EXPECT_THROW(run(graph, inputs)[0].to_host<float>(), Error);
  async_control().lose_device = false;
}

}  // namespace
}  // namespace tenon::graph
