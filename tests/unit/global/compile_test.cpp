// Compiled functions of global tensors on every rank of a launch: results, state and gradients equal those of the eager
// function, and exchanges are in the program.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/autograd/autograd.h"
#include "core/compile/compile.h"
#include "core/compile/recorded_function.h"
#include "core/device/deterministic.h"
#include "core/global/communicator.h"
#include "core/graph/regions/control_flow.h"
#include "core/graph/text.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "core/optim/optim.h"
#include "core/tensor/generator.h"
#include "primitives/text/format.h"
#include "tests/unit/global/spread.h"

namespace tenon::global {
namespace {

using Function = std::function<TensorList(const TensorList&)>;

void expect_close(const Tensor& actual, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.dims(), expected.dims()) << what;
  const std::vector<double> a = elements_of(actual), b = elements_of(expected);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5 * (1 + std::abs(b[i]))) << what << " at " << i;
}

// Calls three times: the first call is recorded, the second is recorded again and compared, the third runs. Arguments
// have every spread; results have the layouts of the eager ones.
void expect_as_eager(const std::string& name, const Function& function, const std::vector<Dims>& shapes) {
  const Placement all = Placement::all(devices());
  CompileOptions options;
  options.name = name;
  options.exact = true;
  const CompiledList compiled(function, options);
  const std::pair<Sbp, Sbp> spreads[] = {{S0, B}, {S1, S0}, {P, B}};
  for (const auto& [first, second] : spreads) {
    for (uint64_t call = 0; call < 3; ++call) {
      TensorList inputs;
      for (size_t i = 0; i < shapes.size(); ++i) {
        inputs.push_back(spread(some(shapes[i], 10 * call + i), all, {i == 0 ? first : second}));
      }
      const TensorList actual = compiled(inputs);
      if (call == 1) continue;
      const TensorList expected = function(inputs);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i) {
        const std::string what = fmt::format("{} {} {}, result {}", name, to_string(first), to_string(second), i);
        ASSERT_EQ(layout_of(actual[i]), layout_of(expected[i])) << what;
        expect_same(actual[i], expected[i], what);
      }
    }
  }
  EXPECT_EQ(compiled.stats().recordings, std::size(spreads)) << name;
  EXPECT_EQ(compiled.stats().eager, 0u) << name;
}

TEST(Compiled, OpsAndSpreads) {
  expect_as_eager("maps", [](const TensorList& in) { return TensorList{relu(in[0]) * in[1] - in[0] * 2}; },
                  {{5, 3}, {5, 3}});
  expect_as_eager("a row beside", [](const TensorList& in) { return TensorList{exp(in[0] * 0.1) + in[1]}; },
                  {{5, 3}, {3}});
  expect_as_eager("products", [](const TensorList& in) { return TensorList{matmul(in[0], in[1])}; }, {{5, 3}, {3, 4}});
  expect_as_eager("sums",
                  [](const TensorList& in) {
                    return TensorList{in[0].sum(0), in[0].mean(1), in[1].sum()};
                  },
                  {{5, 3}, {2, 7}});
  expect_as_eager("softmax",
                  [](const TensorList& in) {
                    return TensorList{softmax(in[0], 1), log_softmax(in[1], 0)};
                  },
                  {{5, 3}, {4, 2}});
  expect_as_eager("views",
                  [](const TensorList& in) {
                    return TensorList{in[0].t() + in[1], in[0].slice(0, 1, 4), reshape(in[0], {15}), in[0][2]};
                  },
                  {{5, 3}, {3, 5}});
  expect_as_eager("norms", [](const TensorList& in) { return TensorList{rms_norm(in[0], {4}, in[1])}; }, {{6, 4}, {4}});
  expect_as_eager("composites",
                  [](const TensorList& in) {
                    return TensorList{huber_loss(in[0], in[1]), flip(in[0], {0}), concat({in[0], in[1]}, 0)};
                  },
                  {{5, 3}, {5, 3}});
  expect_as_eager(
      "moves",
      [](const TensorList& in) {
        return TensorList{to_global(in[0], {S1}), to_global(in[1], {B}), to_global(to_global(in[0], {B}), {P})};
      },
      {{5, 3}, {5, 3}});
  expect_as_eager("writes of what it made",
                  [](const TensorList& in) {
                    const Tensor made = clone(in[0]);
                    made[1].fill_(3);
                    made.slice(1, 1, 3).mul_(2);
                    made.t()[0].add_(in[1].sum());
                    return TensorList{made};
                  },
                  {{5, 3}, {4}});
}

size_t count_in(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::vector<int64_t> exchanged_sizes(const graph::Graph& program) {
  std::vector<int64_t> sizes;
  for (graph::NodeId id = program.first(); id != graph::kNoNode; id = program.next(id)) {
    const graph::Node& node = program.node(id);
    if (node.op->name == "global::exchange") sizes.push_back(program[node.results[0]].dims[0].number());
  }
  return sizes;
}

TEST(Compiled, ExchangesAreNodesOfTheSameNumberOnEveryRank) {
  const Placement all = Placement::all(devices());
  const Tensor w = spread(some({3, 4}, 2), all, {S0}).detach().requires_grad_();
  const auto step = [&](const TensorList& in) {
    const Tensor loss = mean(square(matmul(in[0], w)));
    loss.backward();
    const NoGrad scope;
    Tensor state = w;
    state.sub_(w.grad() * 0.1);
    state.set_grad({});
    return TensorList{loss};
  };
  const TensorList inputs{spread(some({5, 3}, 1), all, {S0})};
  CompileOptions options;
  options.name = "the step";
  const compilation::Taken taken =
      compilation::record(step, options, inputs, compilation::shape_of("the step", inputs), nullptr);
  const std::string text = graph::print(taken.recording->recorded);
  const size_t count = count_in(text, "= global::exchange(");
  const Tensor counts = to_global(Tensor::from(NestedList({static_cast<float>(count)})), all, {S0});
  for (const double each : elements_of(counts)) EXPECT_EQ(each, static_cast<double>(count));
  EXPECT_EQ(count_in(graph::print(taken.recording->forward), "= global::exchange("), count);
  if (ranks() == 1) return;
  EXPECT_GT(count, 2u) << text;
  for (const char* part : {"{kind: \"all_to_all\", of: \"matmul\"", "{kind: \"reduce_scatter\", of: \"sub_\""}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  const std::string again = graph::print(graph::parse(text));
  EXPECT_EQ(count_in(again, "= global::exchange("), count);
  EXPECT_EQ(graph::print(graph::parse(again)), again);
}

TEST(Compiled, ExchangesStayInOrderThroughPasses) {
  if (ranks() == 1) return;  // with one rank nothing is exchanged
  const Placement all = Placement::all(devices());
  // The first is unused; the second and the third are equal; the last reads only constants.
  const auto function = [&](const TensorList& in) {
    to_global(in[0] * 5, {B});
    const Tensor twice = to_global(in[0], {B}) + to_global(in[0], {B});
    return TensorList{twice + to_global(ones({2 * ranks(), 3}, all, {S0}), {B})};
  };
  const TensorList inputs{spread(some({2 * ranks(), 3}, 1), all, {S0})};
  const compilation::Taken taken =
      compilation::record(function, CompileOptions(), inputs, compilation::shape_of("function", inputs), nullptr);
  EXPECT_EQ(count_in(graph::print(taken.recording->forward), "= global::exchange("), 4u);
  for (int i = 0; i < 3; ++i) expect_close(CompiledList(function, {})(inputs)[0], function(inputs)[0], "in order");
}

// Gradients are needed from the first weight to the last, and computed from the last to the first.
TEST(Compiled, SumsBeginWhereTheyAreReady) {
  if (ranks() == 1) return;
  const Placement all = Placement::all(devices());
  const std::vector<int64_t> widths{6, 260, 270, 280};
  TensorList weights, moments;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    const Tensor whole = some({widths[i], widths[i + 1]}, i) * 0.01;
    weights.push_back(spread(whole, all, {B}).detach().requires_grad_());
    moments.push_back(spread(whole, all, {B}).detach());
  }
  const auto step = [&](const TensorList& in) {
    Tensor x = in[0];
    for (const Tensor& weight : weights) x = tanh(matmul(x, weight));
    const Tensor loss = sum(square(x));
    loss.backward();
    const NoGrad scope;
    for (size_t i = 0; i < weights.size(); ++i) {
      Tensor weight = weights[i], moment = moments[i];
      moment.mul_(0.9).add_(weight.grad());
      weight.sub_(moment * 0.001);
      weight.set_grad({});
    }
    return TensorList{loss};
  };
  const TensorList inputs{spread(some({2 * ranks(), widths[0]}, 9), all, {S0})};
  const compilation::Taken taken =
      compilation::record(step, CompileOptions(), inputs, compilation::shape_of("the step", inputs), nullptr);
  const graph::Graph& program = taken.recording->forward;
  bool is_behind = false;  // true after the first exchange
  size_t products_behind = 0;
  for (graph::NodeId id = program.first(); id != graph::kNoNode; id = program.next(id)) {
    const std::string_view op = program.node(id).op->name;
    is_behind = is_behind || op == "global::exchange";
    if (op == "matmul" && is_behind) ++products_behind;
  }
  EXPECT_EQ(exchanged_sizes(program), (std::vector<int64_t>{270 * 280, 260 * 270, 6 * 260}));
  EXPECT_GE(products_behind, 3u) << graph::print(program);  // backward has six products

  const uint64_t before = Communicator::traffic().beside;
  const CompiledList compiled(step, {});
  for (int i = 0; i < 3; ++i) static_cast<void>(elements_of(compiled(inputs)[0]));
  EXPECT_GE(Communicator::traffic().beside - before, 4u);
}

TEST(Compiled, SmallSumsTravelTogether) {
  if (ranks() == 1) return;
  const Placement all = Placement::all(devices());
  const auto train = [&](bool compiles) {
    TensorList weights;
    int64_t elements = 0;
    for (uint64_t i = 0; i < 12; ++i) {  // more weights than one concat accepts
      const auto width = static_cast<int64_t>(6 + i);
      weights.push_back(spread(some({width, width + 1}, i) * 0.1, all, {B}).detach().requires_grad_());
      elements += width * (width + 1);
    }
    const auto step = [weights](const TensorList& in) {
      Tensor x = in[0];
      for (const Tensor& weight : weights) x = tanh(matmul(x, weight));
      const Tensor loss = sum(square(x));
      loss.backward();
      const NoGrad scope;
      for (Tensor weight : weights) {
        weight.sub_(weight.grad() * 0.01);
        weight.set_grad({});
      }
      return TensorList{loss};
    };
    const TensorList inputs{spread(some({2 * ranks() + 1, 6}, 9), all, {S0})};
    if (compiles) {
      const compilation::Taken taken =
          compilation::record(step, CompileOptions(), inputs, compilation::shape_of("the step", inputs), nullptr);
      EXPECT_EQ(exchanged_sizes(taken.recording->recorded).size(), weights.size());
      EXPECT_EQ(exchanged_sizes(taken.recording->forward), std::vector<int64_t>{elements})
          << graph::print(taken.recording->forward);
    }
    const CompiledList compiled(step, {});
    std::vector<double> values;
    for (int i = 0; i < 4; ++i) values.push_back((compiles ? compiled(inputs) : step(inputs))[0].item<float>());
    for (const Tensor& weight : weights) {
      for (const double each : elements_of(weight.detach())) values.push_back(each);
    }
    return values;
  };
  const std::vector<double> eager = train(false), compiled = train(true);
  ASSERT_EQ(eager.size(), compiled.size());
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_NEAR(compiled[i], eager[i], 1e-5 * (1 + std::abs(eager[i]))) << i;
}

TEST(Compiled, ASumThatIsMadeOfAnotherGoesBehindIt) {
  if (ranks() == 1) return;
  const Placement all = Placement::all(devices());
  const auto sum_of = [](const Tensor& partial) { return to_global(partial, {B}); };
  const auto function = [&](const TensorList& in) {
    // Made before the first sum, and used to write it afterwards.
    Tensor late = in[0] * 2, early = in[0] * 3;
    const Tensor first = sum_of(early);
    late.add_(to_global(first, {P}));
    const Tensor second = sum_of(late);
    const Tensor third = sum_of(to_global(tanh(second), {P}) * 2);
    return TensorList{first, second, third, sum_of(in[1])};
  };
  const TensorList inputs{spread(some({4, 5}, 1), all, {P}), spread(some({7}, 2), all, {P})};
  const compilation::Taken taken =
      compilation::record(function, CompileOptions(), inputs, compilation::shape_of("function", inputs), nullptr);
  // The last was there from the beginning, so it is sent with the first.
  EXPECT_EQ(exchanged_sizes(taken.recording->forward), (std::vector<int64_t>{27, 20, 20}));
  const CompiledList compiled(function, {});
  const TensorList expected = function(inputs);
  for (int call = 0; call < 3; ++call) {
    const TensorList actual = compiled(inputs);
    for (size_t i = 0; i < expected.size(); ++i) expect_close(actual[i], expected[i], "a sum of sums");
  }
}

// Updates by hand or by an optimiser, with parameters and states spread as the case says.
struct Way {
  Sbp data, first, second, state;
};

TEST(Compiled, StepsTrainAsEagerOnesAndAsOneProcess) {
  const Placement all = Placement::all(devices());
  const auto data = [](int i) {
    const Dims dims[] = {{7, 6}, {6, 5}, {5, 3}, {7, 3}};
    return some(dims[i], static_cast<uint64_t>(20 + i), DType::f64) * 0.2;
  };
  const auto train = [&](const std::function<Tensor(const Tensor&, Sbp)>& placed, const Way& way, bool compiles,
                         bool fuses = false) {
    Tensor a = placed(data(1), way.first).detach().requires_grad_();
    Tensor b = placed(data(2), way.second).detach().requires_grad_();
    Tensor of_a = placed(zeros_like(data(1)), way.state), of_b = placed(zeros_like(data(2)), way.state);
    auto step = [=](const TensorList& in) mutable {
      const Tensor loss = mean(square(matmul(tanh(matmul(in[0], a)), b) - in[1]));
      loss.backward();
      const NoGrad scope;
      of_a.mul_(0.9).add_(a.grad());
      of_b.mul_(0.9).add_(b.grad());
      a.sub_(of_a * 0.1);
      b.sub_(of_b * 0.1);
      a.set_grad({});
      b.set_grad({});
      return TensorList{loss};
    };
    CompileOptions options;
    options.fuse = fuses;
    const CompiledList compiled(step, options);
    std::vector<double> losses;
    for (int i = 0; i < 4; ++i) {
      const TensorList in{placed(data(0) + i, way.data), placed(data(3), way.data)};
      losses.push_back((compiles ? compiled(in) : step(in))[0].item<double>());
    }
    EXPECT_EQ(compiled.stats().runs, compiles ? 4u : 0u);
    for (const double each : elements_of(a.detach())) losses.push_back(each);
    for (const double each : elements_of(of_b)) losses.push_back(each);
    return losses;
  };
  const std::vector<double> alone = train([](const Tensor& whole, Sbp) { return whole; }, {}, false);
  for (const Way& way : {Way{S0, B, B, B}, Way{B, S1, S0, S0}, Way{S0, S0, S0, S0}, Way{S1, S0, S1, S1}}) {
    const auto placed = [&](const Tensor& whole, Sbp sbp) { return spread(whole, all, {sbp}); };
    const std::vector<double> eager = train(placed, way, false), compiled = train(placed, way, true);
    ASSERT_EQ(eager.size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_NEAR(compiled[i], eager[i], 1e-10) << i;
      EXPECT_NEAR(compiled[i], alone[i], 1e-10) << i;
    }
  }
  const auto placed = [&](const Tensor& whole, Sbp sbp) { return spread(whole, all, {sbp}); };
  const std::vector<double> fused = train(placed, {S0, B, B, S0}, true, true);
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(fused[i], alone[i], 1e-10) << i;
}

TEST(Compiled, OptimisersKeepGlobalStates) {
  const Placement all = Placement::all(devices());
  const auto train = [&](bool compiles) {
    const Tensor w = spread(some({6, 5}, 1) * 0.1, all, {S1}).detach().requires_grad_();
    const Tensor v = spread(some({5, 2}, 2) * 0.1, all, {S0}).detach().requires_grad_();
    optim::AdamW optimiser(TensorList{w, v});
    const auto step = [&](const TensorList& in) {
      optimiser.zero_grad();
      const Tensor loss = mean(square(matmul(gelu(matmul(in[0], w)), v)));
      loss.backward();
      optimiser.step();
      return TensorList{loss};
    };
    const CompiledList compiled(step, {});
    std::vector<double> losses;
    for (int i = 0; i < 5; ++i) {
      const TensorList in{spread(some({7, 6}, static_cast<uint64_t>(i)), all, {B})};
      losses.push_back((compiles ? compiled(in) : step(in))[0].item<double>());
    }
    for (const double each : elements_of(w.detach())) losses.push_back(each);
    return losses;
  };
  const std::vector<double> eager = train(false), compiled = train(true);
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_NEAR(compiled[i], eager[i], 2e-5 * (1 + std::abs(eager[i]))) << i;
}

TEST(Compiled, GradientsOfResultsGoToArgumentsAndToWhatIsOutside) {
  const Placement all = Placement::all(devices());
  for (const Sbp of_x : {S0, S1, B}) {
    for (const Sbp of_w : {S0, S1, B}) {
      const Tensor w = spread(some({3, 4}, 2, DType::f64), all, {of_w}).detach().requires_grad_();
      const auto function = [&](const TensorList& in) {
        const Tensor h = matmul(in[0], w);
        return TensorList{h, to_global(square(h), {B}), in[0].sum(0)};
      };
      const CompiledList compiled(function, {});
      for (size_t used = 0; used < 4; ++used) {  // the gradient of one result, or of all of them
        TensorList gradients[2];
        for (const bool compiles : {false, true}) {
          const Tensor x = spread(some({5, 3}, used, DType::f64), all, {of_x}).detach().requires_grad_();
          const TensorList results = compiles ? compiled({x}) : function({x});
          const Tensor total =
              used == 3 ? results[0].sum() + results[1].mean() + results[2].sum() : results[used].sum();
          total.backward();
          gradients[compiles] = {x.grad(), w.grad()};
          Tensor(w).set_grad({});
        }
        const std::string what = fmt::format("{} {} result {}", to_string(of_x), to_string(of_w), used);
        expect_close(gradients[1][0], gradients[0][0], what);
        EXPECT_EQ(gradients[0][1].defined(), used != 2) << what;
        ASSERT_EQ(gradients[1][1].defined(), used != 2) << what;  // undefined instead of zeros
        if (used != 2) expect_close(gradients[1][1], gradients[0][1], what);
      }
    }
  }
}

// These have no gradient if no used result depends on them: an argument, a tensor from outside, and a tensor that an op
// outside made from one. Also in a backward that creates a graph.
TEST(Compiled, WhatIsNotReachedHasNoGradient) {
  const Placement all = Placement::all(devices());
  const auto leaf = [&](uint64_t seed, Sbp sbp) {
    return spread(some({5, 3}, seed, DType::f64), all, {sbp}).detach().requires_grad_();
  };
  const TensorList leaves{leaf(1, S0), leaf(2, S1), leaf(3, B), leaf(4, S0)};
  const Tensor outside = square(leaves[2]);
  const auto function = [&](const TensorList& in) {
    return TensorList{in[0] * 2.0, in[1] + leaves[3], square(in[0]) * in[1], outside * in[2]};
  };
  const CompiledList compiled(function, {});
  for (size_t used = 1; used < 16; ++used) {  // bit i: output i is used
    for (const bool creates : {false, true}) {
      if (creates && used % 5 != 0) continue;  // only some combinations are recorded
      TensorList gradients[2];
      for (const bool compiles : {false, true}) {
        const TensorList arguments{leaves[0], leaves[1], square(leaves[1])};
        const TensorList results = compiles ? compiled(arguments) : function(arguments);
        TensorList wanted;
        for (size_t i = 0; i < 4; ++i) {
          if ((used >> i & 1) != 0) wanted.push_back(square(results[i]).sum());
        }
        gradients[compiles] =
            grad(wanted, leaves, {}, {.retain_graph = true, .create_graph = creates, .allow_unused = true});
      }
      for (size_t i = 0; i < leaves.size(); ++i) {
        const std::string what = fmt::format("results {:b}, leaf {}, graph {}", used, i, creates);
        ASSERT_EQ(gradients[1][i].defined(), gradients[0][i].defined()) << what;
        if (gradients[0][i].defined()) expect_close(gradients[1][i], gradients[0][i], what);
      }
    }
  }
}

TEST(Compiled, GradientsOfGradients) {
  const Placement all = Placement::all(devices());
  const Tensor w = spread(some({3, 4}, 2, DType::f64), all, {S0}).detach().requires_grad_();
  const auto function = [&](const TensorList& in) { return TensorList{matmul(square(in[0]), w)}; };
  const CompiledList compiled(function, {});
  TensorList seconds[2];
  for (const bool compiles : {false, true}) {
    const Tensor x = spread(some({5, 3}, 1, DType::f64), all, {S0}).detach().requires_grad_();
    const Tensor total = square((compiles ? compiled({x}) : function({x}))[0]).sum();
    const Tensor first = grad({total}, {x}, {}, {.create_graph = true})[0];
    seconds[compiles] = grad({square(first).sum()}, {x, w});
  }
  for (size_t i = 0; i < 2; ++i) expect_close(seconds[1][i], seconds[0][i], "second order");
}

TEST(Compiled, LeavesThatAreArgumentsKeepGradients) {
  const Placement all = Placement::all(devices());
  const auto compiled = compile([](const Tensor& x, const Tensor& w) {
    const Tensor loss = square(matmul(x, w)).sum();
    loss.backward();
    return loss;
  });
  const Tensor w = spread(some({3, 4}, 2), all, {S1}).detach().requires_grad_();
  const Tensor x = spread(some({5, 3}, 1), all, {S0});
  const Tensor own = some({3, 4}, 2).requires_grad_();
  for (int i = 0; i < 4; ++i) {  // they add up
    compiled(x, w);
    square(matmul(some({5, 3}, 1), own)).sum().backward();
    expect_same(w.grad(), own.grad(), fmt::format("call {}", i));
  }
}

TEST(Compiled, StateIsWrittenAndSeen) {
  const Placement all = Placement::all(devices());
  for (const Sbp sbp : {S0, S1, B, P}) {
    const Tensor base = spread(some({6, 4}, 1), all, {sbp});
    Tensor whole = some({6, 4}, 1);
    const Tensor row = base[1], column = base.t()[2];  // views, some of which must be moved
    const auto function = [](Tensor state) {
      return [state](const Tensor& x) mutable {
        state.add_(x);
        state[1].mul_(2);
        state.slice(1, 1, 3).sub_(1);
        return state.sum(0);
      };
    };
    const auto compiled = compile(function(base));
    auto eager = function(whole);
    for (uint64_t i = 0; i < 4; ++i) {
      const Tensor x = some({6, 4}, 7 + i);
      expect_same(compiled(spread(x, all, {S0})), eager(x), to_string(sbp));
      expect_same(base, whole, to_string(sbp));
      expect_same(row, whole[1], to_string(sbp));
      expect_same(column, whole.t()[2], to_string(sbp));
    }
    // A function that writes its argument.
    const auto writes = compile([](Tensor x) { return x.add_(1); });
    for (int i = 0; i < 3; ++i) {
      expect_same(writes(base), whole.add_(1), to_string(sbp));
      expect_same(row, whole[1], to_string(sbp));
    }
  }
}

TEST(Compiled, ALayoutIsPartOfWhatARecordingIsFor) {
  const Placement all = Placement::all(devices());
  std::vector<int32_t> backwards(static_cast<size_t>(ranks()));
  for (size_t i = 0; i < backwards.size(); ++i) backwards[i] = ranks() - 1 - static_cast<int32_t>(i);
  const Placement turned(devices(), backwards);
  const auto compiled = compile([](const Tensor& x) { return x.sum(0) * 2; });
  size_t kinds = 0;
  for (const Dims& dims : {Dims{5, 3}, Dims{6, 3}}) {
    for (const Sbp sbp : {S0, B}) {
      for (const bool local : {false, true}) {
        if (local && (sbp == B || dims[0] == 6)) continue;
        ++kinds;
        for (int i = 0; i < 3; ++i) {
          const Tensor x = some(dims, static_cast<uint64_t>(i));
          const Tensor result = compiled(local ? x : spread(x, all, {sbp}));
          EXPECT_EQ(is_global(result), !local);
          expect_same(result, x.sum(0) * 2, to_string(sbp));
        }
      }
    }
  }
  if (ranks() > 1) {
    ++kinds;
    const Tensor result = compiled(spread(some({5, 3}, 1), turned, {S0}));
    EXPECT_EQ(layout_of(result).placement, turned);
    expect_same(result, some({5, 3}, 1).sum(0) * 2, "turned");
  }
  EXPECT_EQ(compiled.stats().recordings, kinds);
}

TEST(Compiled, StagesOfAPipelineStandOnPlacements) {
  const Placement first(devices(), {0}), last(devices(), {ranks() - 1});
  const auto train = [&](bool compiles) {
    const Tensor a = spread(some({3, 4}, 1, DType::f64) * 0.1, first, {B}).detach().requires_grad_();
    const Tensor b = spread(some({4, 2}, 2, DType::f64) * 0.1, last, {B}).detach().requires_grad_();
    const auto step = [=](const TensorList& in) {
      const Tensor h = tanh(matmul(in[0], a));
      const Tensor loss = mean(square(matmul(to_global(h, last, {B}), b) - in[1]));
      loss.backward();
      const NoGrad scope;
      for (Tensor p : {a, b}) {
        p.sub_(p.grad() * 0.1);
        p.set_grad({});
      }
      return TensorList{loss};
    };
    const CompiledList compiled(step, {});
    std::vector<double> losses;
    for (uint64_t i = 0; i < 5; ++i) {
      const TensorList in{spread(some({7, 3}, i, DType::f64), first, {B}),
                          spread(some({7, 2}, 9, DType::f64), last, {B})};
      const Tensor loss = (compiles ? compiled(in) : step(in))[0];
      EXPECT_EQ(layout_of(loss).placement, last);
      if (last.here()) losses.push_back(loss.item<double>());
    }
    if (first.here()) {
      for (const double each : elements_of(to_local(a.detach()))) losses.push_back(each);
    }
    return losses;
  };
  const std::vector<double> eager = train(false), compiled = train(true);
  ASSERT_EQ(eager.size(), compiled.size());
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_NEAR(compiled[i], eager[i], 1e-12) << i;
}

TEST(Compiled, PartsBecomeWholesInside) {
  const Placement all = Placement::all(devices());
  const auto compiled = compile([&](const Tensor& part) {
    const Tensor rows = to_global(part, all, {S0});
    return to_local(to_global(rows.sum(0), {B})) + part.sum(0) * 0;
  });
  for (uint64_t i = 0; i < 3; ++i) {
    const Tensor part = some({2, 3}, i);
    expect_same(compiled(part), part.sum(0) * ranks(), "parts");
  }
}

TEST(Compiled, RandomNumbersAreThoseOfTheEagerRun) {
  const Placement all = Placement::all(devices());
  const auto function = [&](const TensorList& in) {
    return TensorList{in[0] + rand({5, 3}, all, {S0}), dropout(in[0], 0.5, true)};
  };
  const TensorList in{spread(some({5, 3}, 1), all, {S0})};
  const CompiledList compiled(function, {});
  std::vector<TensorList> drawn[2];
  for (const bool compiles : {false, true}) {
    manual_seed(7);
    for (int i = 0; i < 3; ++i) drawn[compiles].push_back(compiles ? compiled(in) : function(in));
  }
  for (size_t i = 0; i < 3; ++i) {
    expect_same(drawn[1][i][0], drawn[0][i][0], "rand");
    expect_same(drawn[1][i][1], drawn[0][i][1], "dropout");
  }
}

TEST(Compiled, SumsGoInTheOrderOfRanksWhereThatIsWanted) {
  const Placement all = Placement::all(devices());
  std::vector<float> values(101);
  std::mt19937 generator(static_cast<uint32_t>(rank()));
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(generator);
  const Tensor sum = to_global(Tensor::from(std::span<const float>(values), {101}, own_device()), all, {P});
  const auto compiled = compile([](const Tensor& x) { return to_global(x, {B}); });
  compiled(sum);
  use_deterministic_algorithms(true);
  const Tensor expected = to_global(sum, {B});
  for (int i = 0; i < 2; ++i) expect_same(compiled(sum), expected, "in order");
  use_deterministic_algorithms(false);
  EXPECT_EQ(compiled.stats().recordings, 2u);
}

TEST(Compiled, WhatARecordingCannotSeeIsRefused) {
  const Placement all = Placement::all(devices());
  const Tensor x = spread(some({6, 4}, 1), all, {S0});
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  for (const bool whole : {true, false}) {
    CompileOptions options;
    options.name = "reads";
    options.whole = whole;
    const CompiledList reads([](const TensorList& in) { return TensorList{in[0] * in[0].sum().item<float>()}; },
                             options);
    expect(error_of([&] { reads({x}); }), "reads: ");
    expect(error_of([&] { reads({x}); }), "lets the host see the elements");
  }
  const auto branches = compile([](const Tensor& in) {
    return cond(
        in.sum() > 0, [&] { return TensorList{in}; }, [&] { return TensorList{in * 2}; })[0];
  });
  expect(error_of([&] { branches(x); }), "of a global tensor is not recorded");
  const auto mixes = compile([](const Tensor& in) { return in + some({6, 4}, 2); });
  expect(error_of([&] { mixes(x); }), "a local tensor of shape [6, 4] cannot be used with a tensor on");
  Tensor kept;
  const auto leaks = compile([&](const Tensor& in) { return kept = in + 1, in * 2; });
  leaks(x);
  expect(error_of([&] { kept.sum(); }), "is a value of a program that was recorded");
  if (ranks() > 1) {
    const Tensor row = x[1];
    const auto captures = compile([&](const Tensor& in) { return in[0] + row; });
    expect(error_of([&] { captures(x); }), "a view whose elements had to move");
    const auto writes = compile([](Tensor in) { return in.add_(1); });
    expect(error_of([&] { writes(row); }), "writes its argument 0, a view whose elements had to move");
  }
}

}  // namespace
}  // namespace tenon::global
