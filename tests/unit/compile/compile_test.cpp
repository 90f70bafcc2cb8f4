// Recordings, their guards, their executables, threads.
#include <atomic>
#include <thread>

#include "core/ops/precision.h"
#include "loader/log/log.h"
#include "tests/unit/compile/values.h"

namespace tenon {
namespace {

TEST(Compile, RunsTheFunctionOnlyToRecordIt) {
  int calls = 0;
  auto step = compile([&](const Tensor& x, const Tensor& y) {
    ++calls;
    return relu(x - y) * 3.0;
  });
  for (uint32_t seed = 0; seed < 5; ++seed) {
    const Tensor x = random_tensor({3, 4}, seed), y = random_tensor({4}, seed + 10);
    EXPECT_EQ(elements(step(x, y)), elements(relu(x - y) * 3.0));
  }
  EXPECT_EQ(calls, 2) << "the first call, and the second to compare";
  EXPECT_EQ(step.stats().recordings, 1u);
  EXPECT_EQ(step.stats().executables, 1u);
  EXPECT_EQ(step.stats().runs, 5u);
}

TEST(Compile, TakesListsAndGivesLists) {
  auto step = compile([](const TensorList& in) -> TensorList { return {in[0] + in[1], exp(in[0])}; });
  const Tensor x = random_tensor({2}, 1), y = random_tensor({2}, 2);
  for (int i = 0; i < 3; ++i) {
    const TensorList out = step({x, y});
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(elements(out[0]), elements(x + y));
    EXPECT_EQ(elements(out[1]), elements(exp(x)));
  }
}

TEST(Compile, RefusesUndefinedArgumentsAndAnotherNumber) {
  auto step = compile([](const Tensor& x) { return relu(x); }, {.name = "activate"});
  EXPECT_TRUE(contains(error_of([&] { step(Tensor()); }), "activate: argument 0 is an undefined tensor."));
  EXPECT_TRUE(contains(error_of([&] { step(random_tensor({2}, 1), random_tensor({2}, 1)); }), "takes 1 tensors"));
  auto nothing = compile([](const Tensor&) { return Tensor(); }, {.name = "nothing"});
  EXPECT_TRUE(contains(error_of([&] { nothing(random_tensor({2}, 1)); }), "nothing: result 0"));
}

TEST(Compile, RecordsAnewForOtherDtypesDimsPrecisionAndModes) {
  auto step = compile([](const Tensor& x) { return matmul(x, x); }, {.check = false});
  const Tensor x = random_tensor({4, 4}, 1);
  size_t expected = 0;
  const auto expect_new = [&](const std::function<Tensor()>& call) {
    ++expected;
    for (int i = 0; i < 2; ++i) call();
    EXPECT_EQ(step.stats().recordings, expected);
  };
  expect_new([&] { return step(x); });
  expect_new([&] { return step(cast(x, DType::f64)); });
  expect_new([&] {
    const PrecisionScope scope(Precision::full);
    return step(x);
  });
  expect_new([&] {
    const Device before = Device::current();
    Device::set_current(Device("null"));
    const Tensor result = step(x);
    Device::set_current(before);
    return result;
  });
  expect_new([&] { return step(x.to(Device("null"))); });
  const Tensor leaf = x.detach().requires_grad_();
  expect_new([&] { return step(leaf); });
  expect_new([&] {
    const NoGrad scope;
    return step(x);
  });
}

TEST(Compile, OneRecordingServesOtherSizes) {
  int calls = 0;
  const Tensor w = random_tensor({6}, 1);
  const auto function = [&](const Tensor& x, const Tensor& mask) -> TensorList {
    const Tensor y = tanh(x * w - 1.0);
    return {y * mask, transpose(exp(y), 0, 1), where(gt(mask, 1.0), y, relu(x))};
  };
  auto step = compile(
      [&](const TensorList& in) {
        ++calls;
        return function(in[0], in[1]);
      },
      {.exact = true});
  for (int round = 0; round < 2; ++round) {
    for (int64_t rows = 3; rows < 40; rows += 3) {
      const Tensor x = random_tensor({rows, 6}, 3), mask = random_tensor({rows, 6}, 4);
      const TensorList found = step({x, mask}), expected = function(x, mask);
      for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(elements(found[i]), elements(expected[i])) << rows;
    }
  }
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(step.stats().recordings, 1u);
  EXPECT_EQ(step.stats().executables, 13u);
}

// If the function makes a decision by a size, that is a guard: sizes that decide otherwise are recorded again.
TEST(Compile, ASizeThatDecidesIsAGuard) {
  const auto function = [](const Tensor& x) { return x.dim(0) > 4 ? exp(x) : relu(x) - static_cast<double>(x.dim(1)); };
  auto step = compile(function);
  for (int round = 0; round < 2; ++round) {
    for (int64_t rows : {2, 5, 2, 1, 5}) {
      const Tensor x = random_tensor({rows, 3}, 3);
      EXPECT_EQ(elements(step(x)), elements(function(x))) << rows;
    }
  }
  EXPECT_EQ(step.stats().recordings, 3u);
}

TEST(Compile, RunsEagerlyAfterEightRecordingsAndSaysSoOnce) {
  int calls = 0;
  auto step = compile(
      [&](const Tensor& x) {
        ++calls;
        return reshape(x, {x.elements()}) * static_cast<double>(x.rank());
      },
      {.name = "flatten", .check = false});
  std::vector<std::string> lines;
  loader::set_log_sink([&](loader::LogLevel, std::string_view, std::string_view line) { lines.emplace_back(line); });
  for (int round = 0; round < 2; ++round) {
    for (int32_t i = 0; i < 10; ++i) {
      const Tensor x = cast(random_tensor(Dims::filled(i % 5 + 1, 2), 3), i < 5 ? DType::f32 : DType::f64);
      const Tensor out = step(x);
      EXPECT_EQ(elements(cast(out, DType::f32)),
                elements(cast(reshape(x, {x.elements()}) * double(x.rank()), DType::f32)));
    }
  }
  loader::set_log_sink({});
  EXPECT_EQ(step.stats().recordings, 8u);
  EXPECT_EQ(step.stats().eager, 4u);
  EXPECT_EQ(calls, 8 + 4);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(contains(lines[0], "flatten: it was recorded for 8 kinds of calls"));
}

TEST(Compile, ManyThreadsMayCall) {
  std::atomic<int> calls{0};
  auto step = compile([&](const Tensor& x) {
    ++calls;
    return exp(relu(x) - 1.0);
  });
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Tensor x = random_tensor({100}, t);
      const std::vector<float> expected = elements(exp(relu(x) - 1.0));
      for (int i = 0; i < 50; ++i) wrong += elements(step(x)) != expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(calls, 2);
}

TEST(Compile, InsideACompiledFunctionTheOpsAreRecordedThere) {
  auto inner = compile([](const Tensor& x) { return relu(x); });
  auto outer = compile([&](const Tensor& x) { return inner(x) + inner(x * 2.0); });
  const Tensor x = random_tensor({3}, 1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(elements(outer(x)), elements(relu(x) + relu(x * 2.0)));
  EXPECT_EQ(inner.stats().recordings, 0u);
}

TEST(Compile, ResultsOwnTheirElements) {
  const Tensor table = random_tensor({4}, 7);
  auto step = compile([&](const TensorList& in) -> TensorList {
    return {reshape(in[0], {6}), in[0] + 1.0, in[0], reshape(table, {2, 2}), table};
  });
  const Tensor x = random_tensor({2, 3}, 1);
  const std::vector<float> before = elements(x), known = elements(table);
  for (int i = 0; i < 3; ++i) {
    TensorList out = step({x});
    EXPECT_EQ(out[2].impl(), x.impl()) << "an argument is given back as it is";
    EXPECT_EQ(out[4].impl(), table.impl());
    fill_(out[0], 0.0);
    fill_(out[3], 0.0);
    EXPECT_EQ(elements(x), before);
    EXPECT_EQ(elements(table), known);
  }
}

TEST(Compile, MakesConstantsOfDataOfTheHost) {
  auto step = compile([](const Tensor& x) {
    const std::vector<float> data{1, 2, 3};
    Tensor table = Tensor::from<float>(data, {3});
    Tensor scratch = Tensor::empty({3}, DType::f32);
    mul_out(scratch, x, table);
    add_(table, scratch);  // it belongs to this call
    return table + zeros({3}, DType::f32);
  });
  const Tensor x = random_tensor({3}, 1);
  const std::vector<float> v = elements(x);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(elements(step(x)), (std::vector<float>{1 + v[0] * 1, 2 + v[1] * 2, 3 + v[2] * 3}));
  }
}

TEST(Compile, ErrorsOfARunNameTheFunction) {
  const Tensor table = random_tensor({3, 2}, 10);
  auto step = compile([&](const Tensor& index) { return gather_slices(table, 0, index); }, {.name = "look_up"});
  const std::vector<int64_t> good{1}, bad{7};
  step(Tensor::from<int64_t>(good, {1}));
  step(Tensor::from<int64_t>(good, {1}));
  const std::string text = error_of([&] { step(Tensor::from<int64_t>(bad, {1})).wait(); });
  EXPECT_TRUE(contains(text, "while running look_up on cpu:0"));
}

}  // namespace
}  // namespace tenon
