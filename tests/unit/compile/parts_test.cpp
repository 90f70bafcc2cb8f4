// Functions in parts: where the host reads an element, the program recorded so far runs, and the rest runs eagerly.
#include "core/vm/storage.h"
#include "loader/log/log.h"
#include "tests/unit/compile/values.h"

namespace tenon {
namespace {

CompileOptions parts(const std::string& name = "step") { return {.name = name, .exact = true, .whole = false}; }

TEST(Parts, DecidesByElementsOfThisCall) {
  const auto function = [](const Tensor& x) {
    const Tensor y = exp(x), z = tanh(y);
    return sum(y).item().to_double() > 100 ? y + z : y - z;
  };
  auto step = compile(function, parts());
  for (uint32_t i = 0; i < 8; ++i) {
    const Tensor x = random_tensor({8}, i) * (i % 2 == 0 ? 1.0 : 4.0);
    EXPECT_EQ(elements(step(x)), elements(function(x))) << "call " << i;
  }
  EXPECT_EQ(step.stats().recordings, 1u) << "what was recorded was equal each time";
  EXPECT_EQ(step.stats().eager, 8u);
}

TEST(Parts, ServeOtherSizes) {
  const auto function = [](const Tensor& x) {
    const Tensor y = exp(x);
    return y * static_cast<double>(sum(y).to_host<float>()[0]);
  };
  auto step = compile(function, parts());
  for (int64_t rows : {3, 4, 5, 3, 9, 10, 11, 12, 13, 14}) {
    const Tensor x = random_tensor({rows, 2}, 1);
    EXPECT_EQ(elements(step(x)), elements(function(x))) << rows;
  }
  EXPECT_EQ(step.stats().recordings, 1u);
}

TEST(Parts, AFunctionThatReadsNothingIsOneProgram) {
  int calls = 0;
  auto step = compile(
      [&](const Tensor& x) {
        ++calls;
        return exp(x);
      },
      parts());
  const Tensor x = random_tensor({3}, 1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(elements(step(x)), elements(exp(x)));
  EXPECT_EQ(calls, 2);
}

// Views, writes before and after the read, state, host data, arguments that are returned.
TEST(Parts, KeepsWhatSharesMemoryTogether) {
  const auto function = [](Tensor& state, Tensor x) -> TensorList {
    const std::vector<float> data{1, 2, 3, 4};
    Tensor table = Tensor::from<float>(data, {4});
    add_(table, 1.0);
    Tensor y = reshape(exp(x), {2, 2});
    Tensor row = select(y, 0, 1);
    Tensor view = slice(state, 0, 1, 3, 1);
    add_(view, 2.0);
    add_(x, 1.0);
    const double first = row.to_host<float>()[0];
    mul_(row, first);
    add_(view, row);
    add_(x, state);
    add_(table, x);
    return {y, row, x, clone(state), state, table, x * state};
  };
  Tensor state = random_tensor({4}, 1), eager = clone(state);
  auto step = compile([&](const TensorList& in) { return function(state, in[0]); }, parts());
  for (uint32_t i = 0; i < 4; ++i) {
    const Tensor x = random_tensor({4}, i + 5), same = clone(x);
    const TensorList out = step({x}), expected = function(eager, same);
    ASSERT_EQ(out.size(), expected.size());
    for (size_t k = 0; k < out.size(); ++k) EXPECT_EQ(elements(out[k]), elements(expected[k])) << "result " << k;
    EXPECT_EQ(out[2].impl(), x.impl());
    EXPECT_EQ(elements(x), elements(same));
    EXPECT_EQ(elements(state), elements(eager));
  }
}

TEST(Parts, TrainsWhereAStepDependsOnTheLoss) {
  const Tensor a = random_tensor({3, 1}, 1).requires_grad_(), b = clone(a.detach()).requires_grad_();
  const auto function = [](const Tensor& w, const Tensor& x) {
    const Tensor loss = mean(square(matmul(x, w)));
    loss.backward();
    const double rate = loss.item().to_double() > 1 ? 0.1 : 0.01;
    const NoGrad scope;
    sub_(Tensor(w), w.grad() * rate);
    w.set_grad({});
    return loss;
  };
  auto step = compile([&](const Tensor& x) { return function(a, x); }, parts());
  for (uint32_t i = 0; i < 6; ++i) {
    const Tensor x = random_tensor({5, 3}, i);
    const Tensor loss = step(x);
    EXPECT_EQ(elements(loss), elements(function(b, x)));
    EXPECT_EQ(elements(a), elements(b));
    EXPECT_TRUE(contains(error_of([&] { loss.backward(); }), "step was run in parts, so its results have no gradient"));
  }
}

TEST(Parts, LeavesGradientsOnLeaves) {
  const Tensor a = random_tensor({3}, 1).requires_grad_(), b = a.detach().requires_grad_();
  const auto function = [](const Tensor& w, const Tensor& x) {
    const Tensor y = exp(x * w);
    sum(y).backward();
    return x * static_cast<double>(w.grad().to_host<float>()[0]);
  };
  auto step = compile([&](const Tensor& x) { return function(a, x); }, parts());
  for (uint32_t i = 0; i < 5; ++i) {
    const Tensor x = random_tensor({3}, i);
    EXPECT_EQ(elements(step(x)), elements(function(b, x)));
    EXPECT_EQ(elements(a.grad()), elements(b.grad()));
  }
}

TEST(Parts, StateThatDecidesIsReadEachTime) {
  Tensor mode = full({}, 1.0, DType::f32);
  auto step = compile([&](const Tensor& x) { return mode.item().to_double() > 0 ? relu(x) : -x; }, parts());
  const Tensor x = random_tensor({3}, 1);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(elements(step(x)), elements(i % 2 == 0 ? relu(x) : -x));
    mul_(mode, -1.0);
  }
}

TEST(Parts, AReadThatComesOnlyLaterEndsTheProgramThen) {
  int calls = 0;
  auto step = compile(
      [&](const Tensor& x) {
        const Tensor y = x * 2.0;
        return ++calls == 2 ? y + y.to_host<float>()[0] : y;
      },
      parts());
  const Tensor x = random_tensor({3}, 1);
  const float first = elements(x * 2.0)[0];
  EXPECT_EQ(elements(step(x)), elements(x * 2.0));
  EXPECT_EQ(elements(step(x)), elements(x * 2.0 + first));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(elements(step(x)), elements(x * 2.0));
  EXPECT_EQ(calls, 5) << "a function in parts is called each time";
}

TEST(Parts, TooManyProgramsRunEagerlyAndSaySo) {
  double number = 0;
  auto step = compile(
      [&](const Tensor& x) {
        const Tensor y = x * (number += 1);
        return y + y.to_host<float>()[0];
      },
      parts("grow"));
  std::vector<std::string> lines;
  loader::set_log_sink([&](loader::LogLevel, std::string_view, std::string_view line) { lines.emplace_back(line); });
  const Tensor x = random_tensor({3}, 1);
  for (int i = 1; i <= 12; ++i) {
    const Tensor y = x * static_cast<double>(i);
    EXPECT_EQ(elements(step(x)), elements(y + y.to_host<float>()[0]));
  }
  loader::set_log_sink({});
  EXPECT_EQ(step.stats().recordings, 8u);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(contains(lines[0], "grow: it was recorded for 8 kinds of calls"));
}

}  // namespace
}  // namespace tenon
