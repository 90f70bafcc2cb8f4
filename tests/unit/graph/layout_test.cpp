// The layout pass: which values get channels last, and which reorders that costs.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <random>

#include "core/graph/execute/executable.h"
#include "core/graph/passes/min_cut.h"
#include "core/graph/passes/passes.h"
#include "core/graph/recorder.h"
#include "core/graph/text.h"
#include "core/graph/verify.h"
#include "core/interpreter/order.h"
#include "core/ops/attributes.h"
#include "core/ops/op_rows.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "tests/unit/tensor/expect_error.h"

namespace tenon::graph {
namespace {

using Program = std::function<TensorList(const TensorList&)>;

Tensor random_tensor(const Dims& dims, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> magnitudes(0.5f, 1.5f);
  std::vector<float> data(static_cast<size_t>(element_count(dims)));
  for (float& value : data) value = random() % 2 == 0 ? magnitudes(random) : -magnitudes(random);
  return Tensor::from<float>(data, dims);
}

Graph record(const TensorList& inputs, const Program& code) {
  Recorder recorder(Device::current());
  InterpreterScope scope(recorder);
  TensorList values;
  for (const Tensor& input : inputs) values.push_back(recorder.input(input.dtype(), input.dims()));
  return recorder.finish(code(values));
}

// The ops in order; reorders are shown as "last" and "rows".
std::string ops_of(const Graph& graph) {
  std::string text;
  for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
    const Node& node = graph.node(id);
    text += text.empty() ? "" : " ";
    const bool cast = node.op == &op_row(OpId::cast);
    const CastAttributes attributes = cast ? node.attributes_as<CastAttributes>() : CastAttributes{};
    text += attributes.channels_last != 0 ? "last" : attributes.row_major != 0 ? "rows" : std::string(node.op->name);
  }
  return text;
}

// `plain` holds the results of the program before the pass.
void expect_close(const TensorList& found, const TensorList& plain, const TensorList& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].dims(), wanted[i].dims());
    ASSERT_EQ(found[i].strides(), plain[i].strides()) << "output " << i;
    const std::vector<float> a = found[i].to_host<float>(), b = wanted[i].to_host<float>();
    for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-4f * (1 + std::fabs(b[k]))) << i << " at " << k;
  }
}

// The ops after the pass on `code`. Checks that the graph is valid, computes the same, and does not change the second
// time.
Graph laid_out(const TensorList& inputs, const Program& code) {
  Graph graph = record(inputs, code);
  const TensorList plain = run(prepare(graph), inputs);
  choose_orders(&graph);
  const Status status = verify(graph);
  EXPECT_TRUE(status.ok()) << status.message();
  const std::string once = print(graph);
  choose_orders(&graph);
  EXPECT_TRUE(print(graph) == once) << "the pass is not idempotent";
  EXPECT_EQ(ops_of(parse(once)), ops_of(graph));
  expect_close(run(prepare(graph), inputs), plain, code(inputs));
  return graph;
}

TEST(MinCut, IsTheCheapestOfAllCuts) {
  std::mt19937 random(7);
  const auto below = [&](uint32_t end) { return static_cast<uint32_t>(random() % end); };
  for (int round = 0; round < 300; ++round) {
    MinCut cut;
    const uint32_t nodes = 2 + below(7);
    for (uint32_t i = 2; i < nodes; ++i) ASSERT_EQ(cut.add_node(), i);
    std::vector<std::array<uint32_t, 3>> costs;
    for (uint32_t i = 0; i < 3 * nodes; ++i) {
      costs.push_back({below(nodes), below(nodes), below(20)});
      cut.add_cost(costs.back()[0], costs.back()[1], costs.back()[2]);
    }
    const auto price = [&](auto first) {
      uint64_t sum = 0;
      for (const auto& [from, to, cost] : costs) sum += first(from) && !first(to) ? cost : 0;
      return sum;
    };
    uint64_t least = UINT64_MAX;
    for (uint32_t sides = 1; sides < 1u << nodes; sides += 4) {  // node 0 is on the first side, node 1 is not
      least = std::min(least, price([&](uint32_t node) { return (sides >> node & 1) != 0; }));
    }
    const std::vector<bool> first = cut.run();
    ASSERT_TRUE(first[MinCut::kFirst] && !first[MinCut::kSecond]);
    ASSERT_EQ(price([&](uint32_t node) { return first[node]; }), least) << "round " << round;
  }
}

TEST(Layout, ConvolutionsRunWithChannelsLast) {
  const TensorList in{random_tensor({1, 8, 12, 12}, 1)};
  const Tensor a = random_tensor({16, 8, 3, 3}, 2), b = random_tensor({8, 16, 3, 3}, 3);
  const Graph graph = laid_out(
      in, [&](const TensorList& x) -> TensorList { return {conv2d(relu(conv2d(x[0], a, {}, 1, 1)), b, {}, 1, 1)}; });
  EXPECT_EQ(ops_of(graph), "last conv relu conv rows");
}

TEST(Layout, AResidualHasTheOrderOfItsSum) {
  const TensorList in{random_tensor({1, 8, 12, 12}, 1)};
  const Tensor a = random_tensor({8, 8, 3, 3}, 2);
  const Graph graph = laid_out(in, [&](const TensorList& x) -> TensorList {
    Tensor y = max_pool2d(conv2d(x[0], a, {}, 1, 1), 3, 1, 1);
    for (int i = 0; i < 2; ++i) y = relu(add(conv2d(y, a, {}, 1, 1), y));
    return {concat({mean(y, {2, 3}), flatten(mean(y, {2, 3}, true), 1)}, 1)};
  });
  EXPECT_EQ(ops_of(graph).find("rows"), std::string::npos) << ops_of(graph);
  EXPECT_EQ(ops_of(graph).rfind("last", 12), 0u) << "one reorder serves all: " << ops_of(graph);
}

TEST(Layout, EpiloguesHaveTheOrderOfTheirProduct) {
  const TensorList in{random_tensor({1, 8, 12, 12}, 1)};
  const Tensor a = random_tensor({8, 8, 3, 3}, 2);
  Graph graph = record(in, [&](const TensorList& x) -> TensorList {
    const Tensor y = conv2d(x[0], a, {}, 1, 1);
    return {relu(add(conv2d(y, a, {}, 1, 1), y))};
  });
  const TensorList wanted = run(prepare(graph), in);
  take_epilogues(&graph, {});
  choose_orders(&graph);
  EXPECT_EQ(ops_of(graph), "last conv conv rows");
  expect_close(run(prepare(graph), in), wanted, wanted);
}

TEST(Layout, WhatGainsNothingStays) {
  const TensorList in{random_tensor({2, 3, 4, 4}, 1)};
  const Graph graph = laid_out(in, [](const TensorList& x) -> TensorList {
    return {softmax(mul(relu(x[0]), Scalar(0.5)), 1), permute(x[0], {0, 2, 3, 1})};
  });
  EXPECT_EQ(ops_of(graph).find("last"), std::string::npos) << ops_of(graph);
}

TEST(Layout, ImagesWithChannelsLastNeedNoReorder) {
  const TensorList in{random_tensor({1, 12, 12, 8}, 1)};
  const Tensor a = random_tensor({8, 8, 3, 3}, 2);
  const Graph graph = laid_out(in, [&](const TensorList& x) -> TensorList {
    return {permute(conv2d(permute(x[0], {0, 3, 1, 2}), a, {}, 1, 1), {0, 2, 3, 1})};
  });
  EXPECT_EQ(ops_of(graph), "permute conv permute");
}

TEST(Layout, AReorderThatSomebodyWroteIsNoReason) {
  const TensorList in{random_tensor({2, 3, 4, 4}, 1)};
  Graph graph = record(in, [](const TensorList& x) -> TensorList { return {relu(clone(x[0]))}; });
  choose_orders(&graph);
  EXPECT_EQ(ops_of(graph), "relu");
}

// An executable follows the graph: steps that read or make channels last use these strides.
TEST(Layout, StepsHaveTheOrdersThatThePassChose) {
  const TensorList in{random_tensor({2, 4, 10, 10}, 1)};
  const Tensor a = random_tensor({8, 4, 3, 3}, 2);
  const Graph graph = laid_out(in, [&](const TensorList& x) -> TensorList {
    const Tensor y = conv2d(x[0], a, {}, 1, 1);
    return {conv2d(concat({max_pool2d(y, 3, 1, 1), avg_pool2d(y, 3, 1, 1)}, 1), random_tensor({4, 16, 3, 3}, 3))};
  });
  const Executable made = prepare(graph);
  for (const Step& step : made.steps) {
    if (step.op->keeps_channels == KeepsChannels::no) continue;
    const TensorMeta& meta = made.values[step.outputs[0]].meta;
    EXPECT_EQ(meta.strides, channels_last_strides(meta.dims)) << step.op->name;
  }
}

TEST(Layout, SizesAreHints) {
  const std::string text = R"(graph "test"
symbol S0 "axis 0 of input 'x'" in [2, ] hint 4
%1 = input f32[S0, 8, 12, 12] on cpu:0
%2 = input f32[8, 8, 3, 3] on cpu:0
)";
  const std::string window =
      "{window.spatial_rank: 2, window.groups: 1, window.stride: [1, 1, 0], window.dilation: [1, 1, 0]}";
  Graph graph =
      parse(fmt::format("{0}%3 = conv(%1, %2, _) {1} : f32[S0, 8, 10, 10]\n"
                        "%4 = conv(%3, %2, _) {1} : f32[S0, 8, 8, 8]\nreturn %4\n",
                        text, window));
  choose_orders(&graph);
  EXPECT_EQ(ops_of(graph), "last conv conv rows");
  symbolic::Values sizes(graph.arena());
  ASSERT_TRUE(sizes.bind(0, 3).ok());
  const TensorList in{random_tensor({3, 8, 12, 12}, 1), random_tensor({8, 8, 3, 3}, 2)};
  const TensorList wanted{conv2d(conv2d(in[0], in[1]), in[1])};
  expect_close(run(prepare(graph, &sizes), in), wanted, wanted);
}

TEST(Layout, ACastToChannelsLastNeedsChannels) {
  const Status status = testing::error_of([] {
    parse(
        "graph \"test\"\n%1 = input f32[2, 3] on cpu:0\n%2 = cast(%1) {dtype: f32, channels_last: 1} : f32[2, "
        "3]\nreturn %2\n");
  });
  EXPECT_NE(status.message().find("has rank 3 to 5, but input has rank 2"), std::string::npos) << status.message();
}

// A program of `size` ops over images of one size, with branches and sums.
Program random_images(uint32_t seed, int size) {
  return [seed, size](const TensorList& in) -> TensorList {
    std::mt19937 random(seed);
    TensorList all{relu(in[0])};
    const auto pick = [&] { return all[random() % all.size()]; };
    for (int i = 0; i < size; ++i) {
      const Tensor a = pick(), b = pick();
      const Tensor weight = random_tensor({4, random() % 4 == 0 ? 1 : 4, 3, 3}, seed * 100 + static_cast<uint32_t>(i));
      switch (random() % 12) {
        case 0:
        case 1:
        case 2: all.push_back(tanh(conv2d(a, weight, {}, 1, 1, 1, 4 / weight.dims()[1]))); break;
        case 3: all.push_back(add(a, b)); break;
        case 4: all.push_back(mul(a, mean(b, {2, 3}, true))); break;
        case 5: all.push_back(max_pool2d(a, 3, 1, 1)); break;
        case 6: all.push_back(avg_pool2d(a, 3, 1, 1)); break;
        case 7: all.push_back(slice(concat({a, b}, 1), 1, 2, 6, 1)); break;
        case 8: all.push_back(softmax(a, static_cast<int64_t>(random() % 4))); break;
        case 9: all.push_back(permute(a, {0, 1, 3, 2})); break;
        case 10: all.push_back(reshape(permute(reshape(a, {2, 2, 2, 36}), {0, 2, 1, 3}), {2, 4, 6, 6})); break;
        default: all.push_back(slice(pad(a, {1, 1}), 3, 1, 7, 1)); break;
      }
    }
    return {all.back(), all[all.size() / 2], mean(pick(), {1}), flatten(pick(), 1)};
  };
}

TEST(Layout, RandomImageProgramsComputeTheSame) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    laid_out({random_tensor({2, 4, 6, 6}, seed)}, random_images(seed, 14));
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace tenon::graph
