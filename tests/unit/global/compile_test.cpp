// Compiled functions of global tensors on every rank of a launch: results, state and gradients equal those of the eager
// function, and exchanges stand in the program.
#include <gtest/gtest.h>

#include "core/autograd/autograd.h"
#include "core/graph/text.h"
#include "core/lazy/compile.h"
#include "core/lazy/recording.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "tests/unit/global/spread.h"

namespace tenon::global {
namespace {

TEST(Compiled, MapsOfParts) {
  const Placement all = Placement::all(devices());
  const auto function = [](const Tensor& x, const Tensor& y) { return relu(x) + y; };
  const auto compiled = compile(function);
  const Tensor x = spread(some({5, 3}, 1), all, {S0}), y = spread(some({5, 3}, 2), all, {S0});
  for (int i = 0; i < 3; ++i) {
    const Tensor result = compiled(x, y);
    EXPECT_EQ(layout_of(result).sbp, NdSbp{S0});
    expect_same(result, function(some({5, 3}, 1), some({5, 3}, 2)), "maps");
  }
  EXPECT_EQ(compiled.stats().recordings, 1u);
}

TEST(Compiled, ProductsAndBoxing) {
  const Placement all = Placement::all(devices());
  const auto compiled = compile([](const Tensor& x, const Tensor& y) { return to_global(matmul(x, y), {B}); });
  const Tensor x = spread(some({5, 3}, 1), all, {S1}), y = spread(some({3, 4}, 2), all, {S0});
  for (int i = 0; i < 3; ++i) expect_same(compiled(x, y), matmul(some({5, 3}, 1), some({3, 4}, 2)), "product");
}

TEST(Compiled, Step) {
  const Placement all = Placement::all(devices());
  Tensor w = spread(some({3, 4}, 2, DType::f64), all, {B}).detach().requires_grad_();
  Tensor v = some({3, 4}, 2, DType::f64).detach().requires_grad_();
  const auto step = [](Tensor w) {
    return [w](const Tensor& x) mutable {
      const Tensor loss = mean(square(matmul(x, w)));
      loss.backward();
      const NoGrad scope;
      w.sub_(w.grad() * 0.01);
      w.set_grad({});
      return loss;
    };
  };
  const auto compiled = compile(step(w));
  auto eager = step(v);
  for (int i = 0; i < 4; ++i) {
    const Tensor x = some({7, 3}, static_cast<uint64_t>(i), DType::f64);
    EXPECT_NEAR(compiled(spread(x, all, {S0})).item<double>(), eager(x).item<double>(), 1e-9);
    EXPECT_LT(max(abs(to_local(to_global(w.detach(), {B})) - v.detach())).item<double>(), 1e-9);
  }
}

}  // namespace
}  // namespace tenon::global
