// Anomaly mode: names the op of forward that caused a bad gradient.
#include <gtest/gtest.h>

#include "core/compile/compile.h"
#include "primitives/text/format.h"
#include "tests/unit/autograd/numbers.h"

namespace tenon {
namespace {

Tensor zeros_leaf() { return zeros({2}, DType::f64).requires_grad_(); }

TEST(DetectAnomaly, NamesTheOpThatGivesANaN) {
  const Tensor x = zeros_leaf();
  const DetectAnomaly scope;
  // 0 * log(0): the gradient of mul is -inf, the gradient of log is 0 / 0.
  EXPECT_EQ(error_of([&] { sum(log(x) * 0).backward(); }),
            "backward: the gradient of argument 0 of log, of shape [2], holds a NaN.");
}

TEST(DetectAnomaly, SaysWhoCalledTheOpAndWhere) {
  const Tensor x = with_values({-1, 1}, {2}).requires_grad_();
  int lines = 0;
  const DetectAnomaly scope([&] { return fmt::format("line {}", ++lines); });
  const Tensor y = sum(sqrt(x));
  EXPECT_EQ(error_of([&] { y.backward(); }),
            "backward: the gradient of argument 0 of sqrt, of shape [2], holds a NaN, called at line 1.");
  const Tensor norm = sum(linalg_matrix_power(reshape(x, {1, 2}) * zeros({2, 1}, DType::f64) / 0, 2));
  EXPECT_NE(error_of([&] { norm.backward(); }).find(", called by linalg_matrix_power, called at line"),
            std::string::npos);
}

TEST(DetectAnomaly, TellsWhereTheForwardOpOfAFailureWasCalled) {
  const Tensor x = with_values({1, 1}, {2}).requires_grad_();
  const DetectAnomaly scope([] { return std::string("train.py, line 7"); });
  Tensor y = exp(x);
  const Tensor z = sum(y);
  zero_(y);
  EXPECT_NE(error_of([&] { z.backward(); }).find("while computing the gradient of exp, called at train.py, line 7"),
            std::string::npos);
}

TEST(DetectAnomaly, LetsOtherGradientsPass) {
  const Tensor x = zeros_leaf();
  const DetectAnomaly scope;
  sum(log(x + 1) + sqrt(x)).backward();
  EXPECT_TRUE(std::isinf(numbers(x.grad())[0])) << "an infinity is not an anomaly";
}

TEST(DetectAnomaly, EndsWithItsScope) {
  const Tensor x = zeros_leaf();
  { const DetectAnomaly scope; }
  sum(log(x) * 0).backward();
  EXPECT_TRUE(std::isnan(numbers(x.grad())[0]));
}

TEST(DetectAnomaly, NamesAFunctionOfTheUser) {
  class Broken final : public Function {
   public:
    std::string name() const override { return "broken"; }
    TensorList forward(const TensorList& inputs) override { return {inputs[0] * 1}; }
    TensorList backward(const TensorList& gradients) override { return {gradients[0] / 0 - gradients[0] / 0}; }
  };
  const Tensor x = zeros_leaf();
  const DetectAnomaly scope([] { return std::string("here"); });
  const Tensor y = sum(call_function(std::make_shared<Broken>(), {x})[0]);
  EXPECT_EQ(error_of([&] { y.backward(); }),
            "backward: the gradient of argument 0 of broken, of shape [2], holds a NaN, called at here.");
}

TEST(DetectAnomaly, IsRefusedInsideARecording) {
  const Tensor x = zeros_leaf();
  const auto step = compile([&](const Tensor& y) {
    const DetectAnomaly scope;
    const Tensor loss = sum(x * y);
    loss.backward();
    return loss;
  });
  EXPECT_NE(error_of([&] {
              step(with_values({1, 1}, {2}));
            }).find("which a recording has not computed yet"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon
