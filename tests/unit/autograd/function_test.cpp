// User functions with gradients of their own.
#include <gtest/gtest.h>

#include "tests/unit/autograd/numbers.h"

namespace tenon {
namespace {

// x^3, with a hand-written gradient.
class Cube final : public Function {
 public:
  std::string name() const override { return "cube"; }
  TensorList forward(const TensorList& inputs) override {
    save(inputs[0]);
    return {inputs[0] * inputs[0] * inputs[0]};
  }
  TensorList backward(const TensorList& gradients) override { return {gradients[0] * square(saved(0)) * 3}; }
};

// exp, which saves its result.
class Growth final : public Function {
 public:
  std::string name() const override { return "growth"; }
  TensorList forward(const TensorList& inputs) override {
    const Tensor result = exp(inputs[0]);
    save(result);
    return {result, result * 2};
  }
  TensorList backward(const TensorList& gradients) override { return {(gradients[0] + gradients[1] * 2) * saved(0)}; }
};

TEST(UserFunction, GivesItsGradient) {
  const Tensor x = with_values({2, 3}, {2}).requires_grad_();
  const Tensor y = call_function(std::make_shared<Cube>(), {x})[0];
  EXPECT_EQ(numbers(y), (Values{8, 27}));
  sum(y).backward();
  EXPECT_EQ(numbers(x.grad()), (Values{12, 27}));
}

TEST(UserFunction, HasGradientsOfSecondOrder) {
  const Tensor x = with_values({2}, {1}).requires_grad_();
  const Tensor first = grad({call_function(std::make_shared<Cube>(), {x})[0]}, {x}, {}, {false, true})[0];
  EXPECT_EQ(numbers(grad({first}, {x})[0]), (Values{12}));
  const Tensor growth = grad({call_function(std::make_shared<Growth>(), {x})[0]}, {x}, {}, {false, true})[0];
  EXPECT_NEAR(numbers(grad({growth}, {x})[0])[0], std::exp(2.0), 1e-12);
}

TEST(UserFunction, SeesZerosForAResultThatNobodyUsed) {
  const Tensor x = with_values({0}, {1}).requires_grad_();
  const TensorList both = call_function(std::make_shared<Growth>(), {x});
  both[1].backward();
  EXPECT_EQ(numbers(x.grad()), (Values{2}));
}

TEST(UserFunction, RefusesASavedTensorThatChanged) {
  const Tensor x = with_values({2, 3}, {2}).requires_grad_();
  Tensor y = x + 0;
  const Tensor z = sum(call_function(std::make_shared<Cube>(), {y})[0]);
  add_(y, 1);
  try {
    z.backward();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "backward: cube saved a tensor of shape [2] for its gradient, and add has written into that tensor since "
        "(version 0 was saved, it is version 1 now).\n  while computing the gradient of cube");
  }
}

// x * y, which asks which gradients are required.
class Product final : public Function {
 public:
  std::string name() const override { return "product"; }
  TensorList forward(const TensorList& inputs) override {
    save(inputs[0]);
    save(inputs[1]);
    return {inputs[0] * inputs[1]};
  }
  TensorList backward(const TensorList& gradients) override {
    asked = {wants(0), wants(1)};
    return {wants(0) ? gradients[0] * saved(1) : Tensor(), wants(1) ? gradients[0] * saved(0) : Tensor()};
  }

  std::vector<bool> asked;
};

TEST(UserFunction, KnowsWhichGradientsAreWanted) {
  const Tensor x = with_values({2}, {1}).requires_grad_();
  const Tensor y = with_values({3}, {1}).requires_grad_();
  const auto product = std::make_shared<Product>();
  const Tensor z = call_function(product, {x, y})[0];
  EXPECT_EQ(numbers(grad({z}, {x})[0]), (Values{3}));
  EXPECT_EQ(product->asked, (std::vector<bool>{true, false}));
  const auto with_number = std::make_shared<Product>();
  call_function(with_number, {with_values({5}, {1}), y})[0].backward();
  EXPECT_EQ(with_number->asked, (std::vector<bool>{false, true}));
  EXPECT_EQ(numbers(y.grad()), (Values{5}));
}

TEST(UserFunction, RemembersNothingInsideNoGrad) {
  const Tensor x = with_values({2}, {1}).requires_grad_();
  const NoGrad scope;
  EXPECT_FALSE(call_function(std::make_shared<Cube>(), {x})[0].requires_grad());
}

}  // namespace
}  // namespace tenon
