// Second-order gradients of compiled functions equal those of the eager run and finite differences in f64. Where there
// can be none, the call fails.
#include <cmath>

#include "core/tensor/generator.h"
#include "tests/unit/compile/values.h"

namespace tenon {
namespace {

using Loss = std::function<Tensor(const Tensor&)>;

TensorList second_order(const Loss& loss, const Tensor& x, const TensorList& to) {
  const TensorList first = grad({loss(x)}, to, {}, {.create_graph = true});
  Tensor total = sum(square(first[0]));
  for (size_t i = 1; i < first.size(); ++i) total = total + sum(sin(first[i]));
  return grad({total}, to, {}, {.allow_unused = true});
}

double number_of(const Tensor& tensor) { return tensor.item().to_double(); }

Tensor in_f64(const Dims& dims, uint32_t seed) {
  const NoGrad scope;
  return cast(random_tensor(dims, seed), DType::f64);
}

struct Formula {
  const char* name;
  std::vector<Dims> shapes;  // the shapes of the leaves; the argument is [4, 3]
  std::function<Tensor(const TensorList& leaves, const Tensor& x)> loss;
};

std::ostream& operator<<(std::ostream& out, const Formula& row) { return out << row.name; }

class SecondOrders : public ::testing::TestWithParam<Formula> {};

TEST_P(SecondOrders, OfACompiledForwardAreThoseOfTheEagerRunAndOfDifferences) {
  const Formula& row = GetParam();
  TensorList leaves;
  for (const Dims& dims : row.shapes) {
    leaves.push_back(in_f64(dims, static_cast<uint32_t>(leaves.size()) + 1).requires_grad_());
  }
  const auto eager = [&](const Tensor& x) { return row.loss(leaves, x); };
  auto compiled = compile(eager, {.exact = true});
  const Loss loss = [&](const Tensor& x) { return compiled(x); };
  for (uint32_t call = 0; call < 3; ++call) {
    const Tensor x = in_f64({4 + call, 3}, 20 + call).requires_grad_();
    TensorList to = leaves;
    to.push_back(x);
    const TensorList expected = second_order(eager, x, to), found = second_order(loss, x, to);
    for (size_t i = 0; i < to.size(); ++i) {
      const std::vector<double> a = contiguous(found[i]).to_host<double>(),
                                b = contiguous(expected[i]).to_host<double>();
      for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-12 * (1 + std::fabs(b[k]))) << i << "," << k;
    }
    // The derivative of the first gradient in a direction, by finite differences.
    const Tensor direction = in_f64(leaves[0].dims(), 40);
    const auto gradient_at = [&](double step) {
      {
        const NoGrad scope;
        add_(leaves[0], direction * step);
      }
      const Tensor found_here = sum(square(grad({loss(x)}, {leaves[0]})[0]));
      const NoGrad scope;
      sub_(leaves[0], direction * step);
      return number_of(found_here);
    };
    constexpr double step = 1e-5;
    const double difference = (gradient_at(step) - gradient_at(-step)) / (2 * step);
    const Tensor first = grad({loss(x)}, {leaves[0]}, {}, {.create_graph = true})[0];
    const double along = number_of(sum(grad({sum(square(first))}, {leaves[0]})[0] * direction));
    EXPECT_NEAR(along, difference, 1e-6 * (1 + std::fabs(difference)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SecondOrders,
                         ::testing::Values(Formula{"TwoLayers",
                                                   {{3, 5}, {5}, {5, 1}},
                                                   [](const TensorList& p, const Tensor& x) {
                                                     return mean(square(matmul(tanh(matmul(x, p[0]) + p[1]), p[2])));
                                                   }},
                                           Formula{"Softmax",
                                                   {{3, 4}},
                                                   [](const TensorList& p, const Tensor& x) {
                                                     return sum(log_softmax(matmul(x, p[0]), 1) *
                                                                softmax(matmul(sin(x), p[0]), 1));
                                                   }},
                                           Formula{"Norm",
                                                   {{3}, {3}},
                                                   [](const TensorList& p, const Tensor& x) {
                                                     return sum(square(layer_norm(x * p[0], 3, p[1], p[0])) * x);
                                                   }},
                                           Formula{"Views",
                                                   {{3, 3}},
                                                   [](const TensorList& p, const Tensor& x) {
                                                     Tensor y = matmul(x, p[0]) * 1.0;
                                                     Tensor part = slice(y, 1, 0, 2);
                                                     mul_(part, sin(slice(select(p[0], 0, 1), 0, 0, 2)));
                                                     return sum(exp(y * 0.1) * transpose(transpose(y, 0, 1), 0, 1));
                                                   }}),
                         [](const ::testing::TestParamInfo<Formula>& info) { return std::string(info.param.name); });

TEST(SecondOrder, IsFollowedByEveryOrder) {
  const Tensor w = in_f64({3}, 1).requires_grad_();
  const auto function = [&](const Tensor& x) { return sum(x * exp(w * 0.5) * square(w)); };
  auto compiled = compile(function, {.exact = true});
  const auto third = [&](const Loss& loss, const Tensor& x) {
    Tensor value = loss(x);
    for (int order = 0; order < 3; ++order) value = sum(grad({value}, {w}, {}, {.create_graph = true})[0]);
    return number_of(value);
  };
  for (uint32_t seed = 2; seed < 5; ++seed) {
    const Tensor x = in_f64({3}, seed);
    const double expected = third(function, x);
    EXPECT_NEAR(third([&](const Tensor& in) { return compiled(in); }, x), expected, 1e-12 * std::fabs(expected));
  }
}

// The loss of a physics-informed net has second derivatives by its input. Its step has the gradients of these.
TEST(SecondOrder, InALossTrainsAsOneProgramWithTheLossesOfTheEagerRun) {
  const std::vector<Dims> shapes{{2, 16}, {16}, {16, 16}, {16}, {16, 1}, {1}};
  const auto leaves = [&] {
    TensorList all;
    for (const Dims& dims : shapes) {
      const Tensor numbers = in_f64(dims, static_cast<uint32_t>(all.size()) + 1);
      const NoGrad scope;
      all.push_back(((numbers - 1.25) * 0.8).requires_grad_());
    }
    return all;
  };
  const auto step_of = [](const TensorList& p) {
    return [p](const Tensor& points, const Tensor& wanted) {
      const auto field = [&](const Tensor& x) {
        return matmul(tanh(matmul(tanh(matmul(x, p[0]) + p[1]), p[2]) + p[3]), p[4]) + p[5];
      };
      const Tensor x = points.detach().requires_grad_();
      const Tensor u = field(x);
      const Tensor first = grad({sum(u)}, {x}, {}, {.create_graph = true})[0];
      const Tensor second = grad({sum(select(first, 1, 0))}, {x}, {}, {.create_graph = true})[0];
      const Tensor equation = select(first, 1, 1) - select(second, 1, 0) * 0.1;
      const Tensor loss = mean(square(equation)) + mean(square(u - wanted));
      descend(loss, p, 0.05);
      return loss.detach();
    };
  };
  const TensorList here = leaves(), there = leaves();
  const auto eager = step_of(here);
  auto compiled = compile(step_of(there), {.exact = true});
  const Tensor points = in_f64({32, 2}, 30), wanted = sin(sum(points, 1, true));
  double first = 0, last = 0;
  for (int i = 0; i < 100; ++i) {
    last = number_of(eager(points, wanted));
    if (i == 0) first = last;
    ASSERT_EQ(number_of(compiled(points, wanted)), last) << "step " << i;
  }
  EXPECT_LT(last, first / 4);
  EXPECT_EQ(compiled.stats().recordings, 1u);
}

// Forward writes its state once and draws its random numbers once, even if its gradient has a gradient.
TEST(SecondOrder, RunsWhatForwardWritesAndDrawsOnce) {
  const Tensor w = random_tensor({4, 4}, 1).requires_grad_();
  Tensor state = zeros({4});
  const auto function = [&](const Tensor& x) {
    const Tensor y = dropout(tanh(matmul(x, w)), 0.5, true);
    {
      const NoGrad scope;
      add_(state, mean(y, 0));
    }
    return sum(exp(y));
  };
  auto compiled = compile(function, {.exact = true});
  const auto seen = [&](const Loss& loss) {
    manual_seed(3);
    zero_(state);
    std::vector<std::vector<float>> all;
    for (uint32_t seed = 2; seed < 6; ++seed) {
      all.push_back(elements(second_order(loss, random_tensor({3, 4}, seed), {w})[0]));
      all.push_back(elements(state));
    }
    return all;
  };
  EXPECT_EQ(seen([&](const Tensor& x) { return compiled(x); }), seen(function));
}

TEST(SecondOrder, IsNeverWrongWhereStateWasWritten) {
  const Tensor w = random_tensor({3}, 1).requires_grad_();
  Tensor scale = random_tensor({3}, 2);
  auto writes = compile(
      [&](const Tensor& x) {
        const Tensor loss = sum(x * square(w) * clone(scale));
        const NoGrad scope;
        mul_(scale, 2.0);
        return loss;
      },
      {.name = "writes"});
  const Tensor x = random_tensor({3}, 3);
  const auto ask = [&](const Tensor& loss) { grad({loss}, {w}, {}, {.create_graph = true}); };
  EXPECT_TRUE(contains(error_of([&] { ask(writes(x)); }),
                       "the gradient of writes needs a tensor of shape [3] as it was before the call, and mul has"));
  auto keeps = compile([&](const Tensor& in) {
    const Tensor loss = sum(square(in * w));
    backward({loss}, {}, {.retain_graph = true});
    return loss;
  });
  EXPECT_TRUE(contains(error_of([&] { ask(keeps(x)); }),
                       "leaves gradients on leaves, so its gradient cannot be differentiated again"));
  Tensor loss;
  {
    auto gone = compile([&](const Tensor& in) { return sum(in * square(w)); }, {.name = "gone"});
    loss = gone(x);
  }
  EXPECT_TRUE(contains(error_of([&] { ask(loss); }),
                       "backward: gone was destroyed, but its gradient must be differentiated again"));
}

}  // namespace
}  // namespace tenon
