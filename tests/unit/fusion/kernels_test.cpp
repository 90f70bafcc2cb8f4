// Fused programs on a device that compiles kernels: which kernels run, and that results equal those of single ops.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "core/autograd/autograd.h"
#include "core/compile/compile.h"
#include "core/graph/execute/executable.h"
#include "core/graph/passes/passes.h"
#include "core/graph/recorder.h"
#include "core/graph/signature.h"
#include "core/graph/text.h"
#include "core/interpreter/execution_report.h"
#include "core/ops/functors/positions.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

using Program = std::function<TensorList(const TensorList&)>;

Tensor random_tensor(const Dims& dims, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(-2, 2);
  std::vector<float> data(static_cast<size_t>(element_count(dims)));
  for (float& value : data) value = numbers(random);
  return Tensor::from<float>(data, dims);
}

Graph record(const TensorList& inputs, const Program& code) {
  Recorder recorder(Device::current());
  const InterpreterScope scope(recorder);
  TensorList values;
  for (const Tensor& input : inputs) {
    std::vector<std::string> names(static_cast<size_t>(input.rank()));
    if (input.rank() > 1) names[0] = "rows";
    values.push_back(recorder.input(input.dtype(), input.dims(), names));
  }
  return recorder.finish(code(values));
}

std::string report_of(const std::vector<StepExecution>& executions) {
  std::string text;
  for (const StepExecution& one : executions) {
    text += fmt::format("{}{}", text.empty() ? "" : "; ", one.entry.op);
    EXPECT_TRUE(one.entry.op.find("fused") == std::string::npos || one.entry.rung == Rung::compiled);
  }
  return text;
}

void expect_close(const TensorList& got, const TensorList& expected, double bound) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::vector<double> a = cast(got[i], DType::f64).to_host<double>();
    const std::vector<double> b = cast(expected[i], DType::f64).to_host<double>();
    ASSERT_EQ(a.size(), b.size());
    for (size_t k = 0; k < b.size(); ++k) {
      if (std::isnan(a[k]) && std::isnan(b[k])) continue;
      ASSERT_NEAR(a[k], b[k], bound * (1 + std::fabs(b[k]))) << "output " << i << " [" << k << "]";
    }
  }
}

// `code`, recorded at the shapes of `inputs` with an open first axis and fused, launches what `report` says. At these
// and at other numbers of rows its results equal those of eager ops.
void expect_fused(const std::vector<Dims>& shapes, const Program& code, const std::string& report, double bound) {
  TensorList inputs;
  for (const Dims& dims : shapes) inputs.push_back(random_tensor(dims, static_cast<uint32_t>(inputs.size() + 1)));
  Graph graph = record(inputs, code);
  find_pass("fuse").run(&graph, {});
  for (const int64_t rows : {shapes[0][0], int64_t{2}, int64_t{5}, int64_t{67}}) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      Dims dims = shapes[i];
      if (dims.rank() > 1) dims[0] = rows;
      inputs[i] = random_tensor(dims, static_cast<uint32_t>(rows) + static_cast<uint32_t>(i));
    }
    symbolic::Values sizes(graph.arena());
    ASSERT_EQ(why_not(graph, inputs, &sizes), "");
    std::vector<StepExecution> executions;
    const TensorList got = run(prepare(graph, &sizes), inputs, {}, &executions);
    EXPECT_EQ(report_of(executions), report) << print(graph);
    expect_close(got, code(inputs), bound);
  }
}

TEST(FusedKernels, RmsNormInElementaryOps) {
  expect_fused(
      {{33, 768}, {768}},
      [](const TensorList& in) {
        return TensorList{in[0] * rsqrt(mean(square(in[0]), Dims{-1}, true) + Scalar(1e-6)) * in[1]};
      },
      "fused (square mean add rsqrt mul mul)", 1e-5);
}

TEST(FusedKernels, LayerNormWithThreeResults) {
  expect_fused(
      {{33, 257}, {257}, {257}},
      [](const TensorList& in) {
        const Tensor average = mean(in[0], Dims{-1}, true), centred = in[0] - average;
        const Tensor rstd = rsqrt(mean(square(centred), Dims{-1}, true) + Scalar(1e-5));
        return TensorList{centred * rstd * in[1] + in[2], average, rstd};
      },
      "fused (mean sub square mean add rsqrt mul mul add)", 1e-5);
}

TEST(FusedKernels, MaskedSoftmax) {
  expect_fused(
      {{33, 129}, {33, 129}},
      [](const TensorList& in) {
        const Scalar out(-std::numeric_limits<double>::infinity());
        const Tensor mask = gt(in[1], Scalar(0.0)), scores = in[0] * Scalar(0.5);
        return TensorList{softmax(where(mask, scores, out), -1)};
      },
      "fused (gt mul where softmax)", 1e-5);
}

TEST(FusedKernels, BiasGeluAndResidual) {
  expect_fused(
      {{33, 513}, {513}, {33, 513}}, [](const TensorList& in) { return TensorList{gelu(in[0] + in[1]) + in[2]}; },
      "fused (add gelu add)", 1e-5);
}

TEST(FusedKernels, SwiGlu) {
  expect_fused(
      {{33, 512}},
      [](const TensorList& in) { return TensorList{silu(slice(in[0], 1, 0, 256)) * slice(in[0], 1, 256, 512)}; },
      "fused (silu mul)", 1e-5);
}

TEST(FusedKernels, ColumnSums) {
  expect_fused(
      {{33, 65}, {33, 65}},
      [](const TensorList& in) {
        return TensorList{sum(in[0] * in[1], Dims{0}), sum(in[0], Dims{0})};
      },
      "fused (mul sum sum)", 1e-4);
}

// After the barriers of a sum there is a function that branches and splits numbers into their bits.
TEST(FusedKernels, GeluOfWhatWorkItemsAddedUp) {
  expect_fused(
      {{33, 9}}, [](const TensorList& in) { return TensorList{gelu(amax(in[0], Dims{0}))}; }, "fused (amax gelu)",
      1e-5);
  expect_fused(
      {{33, 65}}, [](const TensorList& in) { return TensorList{gelu(mean(in[0], Dims{1}))}; }, "fused (mean gelu)",
      1e-5);
}

TEST(FusedKernels, HalfPrecision) {
  expect_fused(
      {{33, 65}},
      [](const TensorList& in) {
        const Tensor x = cast(in[0], DType::bf16);
        return TensorList{exp(x) * Scalar(0.5) + x};
      },
      "fused (cast exp mul add)", 1e-2);
}

TEST(FusedKernels, LossesOfRows) {
  const Program code = [](const TensorList& in) {
    const auto picked = [&] { return functors::gather_at(log_softmax(in[0], 1), 1, in[1]); };
    return TensorList{neg(picked()), picked() * 0.5};
  };
  const Tensor x = random_tensor({5, 131}, 1);
  const auto positions = [](const std::vector<int64_t>& list) { return Tensor::from<int64_t>(list, Dims{5, 1}); };
  Graph graph = record({x, positions({0, 1, 2, 3, 4})}, code);
  find_pass("fuse").run(&graph, {});
  symbolic::Values sizes(graph.arena());
  ASSERT_EQ(why_not(graph, TensorList{x, positions({0, 1, 2, 3, 4})}, &sizes), "");
  const Executable program = prepare(graph, &sizes);
  for (const std::vector<int64_t>& list : {std::vector<int64_t>{0, 130, -1, -131, 64}, {1, 1, 1, 1, 1}}) {
    std::vector<StepExecution> executions;
    const TensorList in{x, positions(list)}, got = run(program, in, {}, &executions);
    EXPECT_EQ(report_of(executions), "fused (log_softmax gather neg log_softmax gather mul)") << print(graph);
    expect_close(got, code(in), 1e-5);
  }
  for (const int64_t wrong : {int64_t{131}, int64_t{-132}}) {
    try {
      run(program, TensorList{x, positions({0, 1, wrong, 3, 4})})[0].to_host<float>();
      FAIL() << wrong << " is taken";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(fmt::format("{}", wrong)), std::string::npos) << error.what();
    }
  }
  const TensorList in{x, positions({4, 3, 2, 1, 0})};
  expect_close(run(program, in), code(in), 1e-5);
}

// The number of launches of a kernel of these ops in this process.
uint64_t launches_of(const std::string& op) {
  uint64_t count = 0;
  for (const ExecutionEntry& entry : execution_report()) {
    if (entry.op == op) count += entry.launches;
  }
  return count;
}

TEST(FusedKernels, OfACompiledFunction) {
  const auto norm = [](const Tensor& x, const Tensor& weight) {
    return x * rsqrt(mean(square(x), Dims{-1}, true) + Scalar(1e-6)) * weight;
  };
  const auto step = compile(norm);
  const Tensor weight = random_tensor({192}, 1);
  for (const int64_t rows : {7, 7, 7, 64, 3}) {
    const std::string kernel = "fused (square mean add rsqrt mul mul)";
    const uint64_t before = launches_of(kernel);
    const Tensor x = random_tensor({rows, 192}, static_cast<uint32_t>(rows));
    const Tensor got = step(x, weight);
    EXPECT_EQ(launches_of(kernel), before + 1) << rows;
    expect_close({got}, {norm(x, weight)}, 1e-5);
  }
  EXPECT_EQ(step.stats().eager, 0u);
}

// The first kernel reduces parts of the data on the whole device, the second kernel their results.
TEST(FusedKernels, FewItemsOfManyElementsAreReducedTwice) {
  expect_fused(
      {{300, 1031}},
      [](const TensorList& in) {
        const Tensor average = mean(in[0]), centred = in[0] - average;
        return TensorList{average, mean(square(centred))};
      },
      "fused (mean sub square mean); fused (mean mean sub square add mean)", 1e-5);
  expect_fused(
      {{300, 1031}, {300, 1031}}, [](const TensorList& in) { return TensorList{mean(square(in[0] - in[1]))}; },
      "fused (sub square mean); mean", 1e-5);
  const Program long_row = [](const TensorList& in) { return TensorList{sum(exp(in[0]) * in[0], Dims{0}, true)}; };
  const Tensor x = random_tensor({300000}, 1);
  Graph graph = record({x}, long_row);
  find_pass("fuse").run(&graph, {});
  symbolic::Values sizes(graph.arena());
  ASSERT_EQ(why_not(graph, TensorList{x}, &sizes), "");
  std::vector<StepExecution> executions;
  expect_close(run(prepare(graph, &sizes), TensorList{x}, {}, &executions), long_row({x}), 1e-5);
  EXPECT_EQ(report_of(executions), "fused (exp mul sum); sum");
}

// When a program is recorded, it is decided which of two sizes is 1: one kernel for each case that occurred.
TEST(FusedKernels, BroadcastsThatAreNotKnown) {
  const auto code = [](const Tensor& x, const Tensor& y) { return exp(x + y) * Scalar(0.5); };
  const auto step = compile(code);
  const std::string kernel = "fused (add exp mul)";
  const auto check = [&](const Dims& a, const Dims& b, size_t recordings) {
    const Tensor x = random_tensor(a, 1), y = random_tensor(b, 2);
    const uint64_t before = launches_of(kernel);
    expect_close({step(x, y)}, {code(x, y)}, 1e-5);
    EXPECT_EQ(launches_of(kernel), before + 1);
    EXPECT_EQ(step.stats().recordings, recordings);
  };
  for (const int64_t rows : {5, 9}) check({rows, 7}, {rows, 7}, 1);
  for (const int64_t rows : {5, 9}) check({rows, 7}, {1, 7}, 2);
  for (const int64_t rows : {4, 6}) check({1, 7}, {rows, 7}, 3);
  check({8, 7}, {8, 7}, 3);
}

TEST(FusedKernels, OfForwardAndBackward) {
  const auto loss_of = [](const Tensor& x, const Tensor& weight) {
    const Tensor powers = exp(x - amax(x, Dims{-1}, true));
    const Tensor rows = powers / sum(powers, Dims{-1}, true) * weight;
    return mean(square(rows - mean(rows, Dims{-1}, true)));
  };
  const auto step = compile(loss_of);
  for (const int64_t rows : {7, 7, 33}) {
    const Tensor x = random_tensor({rows, 65}, 1).requires_grad_(),
                 same = random_tensor({rows, 65}, 1).requires_grad_();
    const Tensor weight = random_tensor({65}, 2).requires_grad_(), equal = random_tensor({65}, 2).requires_grad_();
    const Tensor loss = step(x, weight);
    loss.backward();
    loss_of(same, equal).backward();
    expect_close({x.grad(), weight.grad()}, {same.grad(), equal.grad()}, 1e-5);
  }
}

// A kernel has several results, two of them over state that it read; a parameter requires a gradient.
TEST(FusedKernels, OfAStepWriteStateWhereItLies) {
  const auto make = [] { return TensorList{random_tensor({40, 65}, 1).requires_grad_(), random_tensor({40, 65}, 2)}; };
  const auto step_of = [](const TensorList& state) {
    return [state](const Tensor& gradient) {
      const NoGrad scope;
      Tensor weight = state[0], momentum = state[1];
      mul_(momentum, 0.9);
      add_(momentum, gradient);
      sub_(weight, momentum * 0.1);
      return neg(gradient);
    };
  };
  const TensorList state = make(), same = make();
  const auto step = compile(step_of(state));
  const auto eager = step_of(same);
  const std::string kernel = "fused (mul add mul sub neg)";
  for (uint32_t i = 0; i < 4; ++i) {
    const Tensor gradient = random_tensor({40, 65}, 3 + i);
    const uint64_t kernels = launches_of(kernel), copies = launches_of("cast");
    const Tensor got = step(gradient);
    EXPECT_EQ(launches_of(kernel), kernels + 1);
    // So far, kernels of work-groups get a copy of each state.
    if (Device::current() == Device::host()) {
      EXPECT_EQ(launches_of("cast"), copies);
    }
    expect_close({got, state[0].detach(), state[1]}, {eager(gradient), same[0].detach(), same[1]}, 1e-6);
  }
}

using Update = std::function<void(Tensor& weight, Tensor& momentum)>;

// A step of a layer; `update` gets the gradient.
std::function<Tensor(const Tensor&)> step_of_layer(const TensorList& state, const Update& update) {
  return [state, update](const Tensor& x) {
    Tensor weight = state[0], momentum = state[1];
    const Tensor loss = mean(square(linear(x, weight)));
    loss.backward();
    const NoGrad scope;
    update(weight, momentum);
    weight.set_grad({});
    return loss.detach();
  };
}

// The compiled step copies no state, adds up no batch, and gives the same as the eager step.
void expect_written_in_place(const Update& update) {
  const auto make = [] { return TensorList{random_tensor({17, 33}, 1).requires_grad_(), random_tensor({17, 33}, 2)}; };
  const TensorList state = make(), same = make();
  const auto step = compile(step_of_layer(state, update));
  const auto eager = step_of_layer(same, update);
  for (uint32_t i = 0; i < 4; ++i) {
    const Tensor x = random_tensor({3, 20, 33}, 3 + i);
    const uint64_t copies = launches_of("cast"), sums = launches_of("sum");
    const Tensor got = step(x);
    // Records it first. So far, kernels of work-groups get a copy of each state.
    if (i > 1) {
      EXPECT_EQ(launches_of("sum"), sums);
      if (Device::current() == Device::host()) {
        EXPECT_EQ(launches_of("cast"), copies);
      }
    }
    expect_close({got, state[0].detach(), state[1]}, {eager(x), same[0].detach(), same[1]}, 1e-5);
  }
}

// The gradient of a layer's weight has the layout of the weight, and no batch is left to be added up, so that the
// kernel that writes the weight is a map.
TEST(FusedKernels, OfAStepOfALayerWriteItsWeightWhereItLies) {
  expect_written_in_place([](Tensor& weight, Tensor& momentum) {
    lerp_(momentum, weight.grad(), 0.1);
    sub_(weight, momentum * 0.1);
  });
}

// The product that computes the gradient does not add the momentum, which the kernel reads and writes anyway.
TEST(FusedKernels, OfAStepOfALayerAddItsMomentumThemselves) {
  expect_written_in_place([](Tensor& weight, Tensor& momentum) {
    mul_(momentum, 0.9);
    add_(momentum, weight.grad());
    sub_(weight, momentum * 0.1);
  });
}

TEST(FusedKernels, MapsTakeInputsWithChannelsLast) {
  const auto reported = [](const std::string& ops) {
    Graph graph = parse(
        fmt::format("graph \"test\"\n%1 = input f32[2, 3, 4, 5] on {0}\n%5 = input f32[5] on {0}\n"
                    "%2 = cast(%1) {{dtype: f32, channels_last: 1}} : f32[2, 3, 4, 5] label \"cast\"\n{1}return %4\n",
                    Device::current().spelling(), ops));
    find_pass("fuse").run(&graph, {});
    const Tensor x = random_tensor({2, 3, 4, 5}, 1), row = random_tensor({5}, 2);
    symbolic::Values sizes(graph.arena());
    std::vector<StepExecution> executions;
    const TensorList got = run(prepare(graph, &sizes), TensorList{x, row}, {}, &executions);
    expect_close(got, {exp(x) + (ops.find("%5") == std::string::npos ? x : row)}, 1e-5);
    return report_of(executions);
  };
  const std::string exp = "%3 = exp(%2) : f32[2, 3, 4, 5] label \"exp\"\n";
  EXPECT_EQ(reported(exp + "%4 = add(%3, %2) : f32[2, 3, 4, 5] label \"add\"\n"),
            "cast; fused (exp add); copy (dense)");
  EXPECT_EQ(reported(exp + "%4 = add(%3, %5) : f32[2, 3, 4, 5] label \"add\"\n"),
            "cast; copy (dense); fused (exp add)");
}

TEST(FusedKernels, UnderAnInterpreterTheirOpsRun) {
  const Program code = [](const TensorList& in) { return TensorList{tanh(in[0] * in[0]) + Scalar(1.0)}; };
  const Tensor x = random_tensor({5, 7}, 1);
  Graph graph = record({x}, code);
  find_pass("fuse").run(&graph, {});
  symbolic::Values sizes(graph.arena());
  ASSERT_EQ(why_not(graph, TensorList{x}, &sizes), "");
  const Executable program = prepare(graph, &sizes);
  const Tensor leaf = x.detach().requires_grad_(), other = x.detach().requires_grad_();
  sum(run(program, TensorList{leaf})[0]).backward();
  sum(code({other})[0]).backward();
  expect_close({leaf.grad()}, {other.grad()}, 1e-6);
}

TEST(FusedKernels, InputsThatAreNotRowMajorAreCopied) {
  const Program code = [](const TensorList& in) { return TensorList{exp(in[0]) * Scalar(0.5) + in[1]}; };
  const Tensor x = random_tensor({5, 7}, 1), y = random_tensor({7, 5}, 2);
  Graph graph = record({x, permute(y, {1, 0})}, code);
  find_pass("fuse").run(&graph, {});
  symbolic::Values sizes(graph.arena());
  const TensorList inputs{x, permute(y, {1, 0})};
  ASSERT_EQ(why_not(graph, inputs, &sizes), "");
  expect_close(run(prepare(graph, &sizes), inputs), code(inputs), 1e-6);
}

}  // namespace
}  // namespace tenon::graph
