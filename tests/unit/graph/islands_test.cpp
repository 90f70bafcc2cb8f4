// Parts of a program that run as whole graphs on the asynchronous fake: the results have the bits of the plain run.
#include "core/graph/islands.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <random>

#include "core/graph/recorder.h"
#include "core/kernel/compiled_graph.h"
#include "core/ops/ops.h"
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

  static Graph record(const TensorList& inputs, const Program& code) {
    Recorder recorder(device());
    InterpreterScope scope(recorder);
    TensorList values;
    for (const Tensor& input : inputs) values.push_back(recorder.input({input.dtype(), input.dims(), input.strides()}));
    return recorder.finish(code(values));
  }

  static size_t islands(const Graph& graph) {
    size_t count = 0;
    for (const Step& step : graph.steps) count += step.island != nullptr;
    return count;
  }
  static size_t nodes(const Graph& graph) {
    size_t count = 0;
    for (const Step& step : graph.steps) count += step.island != nullptr ? step.island->nodes.size() : 0;
    return count;
  }

  static std::vector<std::vector<float>> values(const TensorList& results) {
    std::vector<std::vector<float>> all;
    for (const Tensor& result : results) all.push_back(result.to_host<float>());
    return all;
  }

  // Runs `code` plainly, and under `seeds` draws of islands. Gives how many nodes ran in islands.
  static size_t expect_same(const TensorList& inputs, const Program& code, uint64_t seeds) {
    const std::vector<std::vector<float>> wanted = values(run(record(inputs, code), inputs));
    size_t in_islands = 0;
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      async_control().graph_seed = seed;
      Graph graph = record(inputs, code);
      take_islands(&graph, device());
      in_islands += nodes(graph);
      for (int round = 0; round < 2; ++round) EXPECT_EQ(values(run(graph, inputs)), wanted) << "seed " << seed;
    }
    return in_islands;
  }
};

// Every node in one island.
constexpr uint64_t kWhole = 35;

TEST_F(Islands, TwoOpsRunAsOneGraph) {
  const TensorList inputs = {random_tensor({3, 4}, 1), random_tensor({4}, 2)};
  Graph graph = record(inputs, [](const TensorList& in) -> TensorList { return {relu(sub(in[0], in[1]))}; });
  ASSERT_EQ(graph.steps.size(), 2u);
  for (async_control().graph_seed = 0; nodes(graph) != 2;) {
    async_control().graph_seed = async_control().graph_seed + 1;
    graph = record(inputs, [](const TensorList& in) -> TensorList { return {relu(sub(in[0], in[1]))}; });
    take_islands(&graph, device());
  }
  const uint64_t launched = async_control().launched_graphs, single = async_control().launches;
  const TensorList results = run(graph, inputs);
  EXPECT_EQ(results[0].to_host<float>(), relu(sub(inputs[0], inputs[1])).to_host<float>());
  EXPECT_EQ(islands(graph), 1u);
  EXPECT_EQ(async_control().launched_graphs - launched, 1u);
  EXPECT_EQ(async_control().launches - single, 2u);  // the eager ones
}

}  // namespace
}  // namespace tenon::graph
