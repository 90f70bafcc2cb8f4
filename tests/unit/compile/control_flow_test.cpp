// Control flow in compiled functions: guards, captured state, gradients, the second call.
#include "core/graph/regions/control_flow.h"

#include "tests/unit/compile/values.h"

namespace tenon {
namespace {

// The square root of each element by Newton's method, with as many steps as the slowest element needs.
Tensor roots(const Tensor& x) {
  return while_loop([&](const TensorList& s) { return gt(max(abs(s[0] * s[0] - x)), Scalar(1e-4)); },
                    [&](const TensorList& s) { return TensorList{(s[0] + x / s[0]) * 0.5}; }, {x}, {.most = 50})[0];
}

TEST(CompiledControlFlow, ALoopDecidesAtEachRun) {
  auto step = compile([](const Tensor& x) { return roots(x); }, {.exact = true});
  for (const int64_t length : {3, 5, 4, 3}) {
    for (uint32_t seed = 0; seed < 3; ++seed) {
      const Tensor x = random_tensor({length}, seed) * (seed * 40.0 + 1.0);
      EXPECT_EQ(elements(step(x)), elements(roots(x)));
    }
  }
  EXPECT_EQ(step.stats().eager, 0u);
  EXPECT_EQ(step.stats().recordings, 1u) << "one for all lengths";
}

TEST(CompiledControlFlow, ABranchReadsStateFromOutside) {
  const Tensor weight = random_tensor({4}, 1);
  Tensor count = full({}, Scalar(0), DType::i64);
  auto step = compile([&](const Tensor& x) {
    count += 1;
    const Tensor odd = eq(remainder(count, Scalar(int64_t{2})), Scalar(int64_t{1}));
    return cond(
               odd, [&] { return TensorList{x * weight}; }, [&] { return TensorList{weight}; })[0] +
           1.0;
  });
  for (int call = 1; call < 6; ++call) {
    const Tensor x = random_tensor({4}, static_cast<uint32_t>(call));
    if (call == 4) {
      NoGrad scope;
      Tensor target = weight;
      target *= 3.0;
    }
    EXPECT_EQ(elements(step(x)), elements((call % 2 == 1 ? x * weight : weight) + 1.0)) << call;
  }
  EXPECT_EQ(step.stats().eager, 0u);
}

TEST(CompiledControlFlow, AnotherFunctionInsideIsSeenByTheSecondCall) {
  double factor = 1;
  auto step = compile([&](const Tensor& x) {
    factor += 1;
    return cond(
        gt(sum(x), Scalar(0.0)), [&] { return TensorList{x * factor}; }, [&] { return TensorList{x}; })[0];
  });
  const Tensor x = random_tensor({4}, 1);
  step(x);
  EXPECT_TRUE(contains(error_of([&] { step(x); }), "mul: a number of op"));
}

TEST(CompiledControlFlow, AGradientIsRefusedByName) {
  const Tensor x = random_tensor({4}, 1);
  const Tensor w = random_tensor({4}, 2).requires_grad_();
  const auto call = [&](bool captured) {
    return error_of([&] {
      compile([&](const Tensor& y) {
        return cond(
            gt(sum(y), Scalar(0.0)), [&](const TensorList& in) { return TensorList{in[0] * (captured ? w : y)}; },
            [&](const TensorList& in) { return TensorList{in[0]}; }, {captured ? y : w})[0];
      })(x);
    });
  };
  EXPECT_TRUE(contains(call(true), "cond: a tensor that its function reads requires a gradient"));
  EXPECT_TRUE(contains(call(false), "cond: an argument requires a gradient"));
  auto step = compile([&](const Tensor& y) {
    const NoGrad scope;
    return cond(
        gt(sum(y), Scalar(0.0)), [&] { return TensorList{y * w}; }, [&] { return TensorList{w}; })[0];
  });
  EXPECT_EQ(elements(step(x)), elements(x * w));
}

TEST(CompiledControlFlow, RandomNumbersWritesAndReadsInsideAreErrors) {
  const Tensor x = random_tensor({4}, 1);
  const auto refused = [&](const std::function<Tensor(const Tensor&)>& inner, bool whole) {
    return error_of([&] {
      compile(
          [&](const Tensor& y) {
            return cond(
                gt(sum(y), Scalar(0.0)), [&] { return TensorList{inner(y)}; }, [&] { return TensorList{y}; })[0];
          },
          {.name = "mine", .whole = whole})(x);
    });
  };
  Tensor outside = random_tensor({4}, 2);
  EXPECT_TRUE(contains(refused([](const Tensor& y) { return y + rand({4}); }, true),
                       "mine: random numbers are drawn in a function of cond, while_loop or scan"));
  EXPECT_TRUE(contains(refused([&](const Tensor& y) { return outside += y; }, true),
                       "a tensor of shape [4] from outside the function 'then' of cond in recording"));
  for (const bool whole : {true, false}) {
    EXPECT_TRUE(contains(refused([](const Tensor& y) { return y * y.to_host<float>()[0]; }, whole),
                         "mine: copy_to_host lets the host see the elements of a tensor"));
  }
}

// The program ends where the host reads. The loop before it is part of the program, the loop after it is not.
TEST(CompiledControlFlow, LoopsMayStandInPartsOfAFunction) {
  const auto code = [](const Tensor& x) {
    const Tensor first = roots(x);
    const float seen = first.to_host<float>()[0];
    return roots(first * seen);
  };
  auto step = compile([&](const Tensor& x) { return code(x); }, {.exact = true, .whole = false});
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const Tensor x = random_tensor({3}, seed);
    EXPECT_EQ(elements(step(x)), elements(code(x)));
  }
}

TEST(CompiledControlFlow, AScanKeepsItsLengthOpen) {
  const Tensor w = random_tensor({4}, 1);
  const auto code = [&](const Tensor& xs) {
    return scan(
               [&](const TensorList& c, const TensorList& x) {
                 const Tensor next = tanh(c[0] * w + x[0]);
                 return Scanned{{next}, {next}};
               },
               {w * 0.0}, {xs})
        .ys[0];
  };
  auto step = compile([&](const Tensor& xs) { return code(xs); }, {.exact = true});
  for (const int64_t length : {5, 2, 9, 5}) {
    const Tensor xs = random_tensor({length, 4}, static_cast<uint32_t>(length));
    EXPECT_EQ(elements(step(xs)), elements(code(xs)));
  }
  EXPECT_EQ(step.stats().recordings, 1u);
}

}  // namespace
}  // namespace tenon
