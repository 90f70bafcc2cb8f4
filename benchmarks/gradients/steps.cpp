#include "benchmarks/gradients/steps.h"

#include <cmath>
#include <random>
#include <string>

#include "benchmarks/peers/torch.h"
#include "core/autograd/autograd.h"
#include "core/compile/compile.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::bench {
namespace {

constexpr double kPhysicsBar = 1 / 1.6;

Tensor numbers(const Dims& dims, float reach, uint32_t seed, const Device& device) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-reach, reach);
  std::vector<float> data(static_cast<size_t>(element_count(dims)));
  for (float& value : data) value = values(random);
  return Tensor::from<float>(data, dims, device);
}

void descend(const TensorList& parameters) {
  const NoGrad scope;
  for (Tensor parameter : parameters) {
    sub_(parameter, parameter.grad() * 1e-2);
    parameter.set_grad({});
  }
}

constexpr int64_t kPoints = 256, kHidden = 64;

// u at the points [rows, 2], computed by a net with two hidden layers.
Tensor field(const TensorList& p, const Tensor& x) {
  return linear(tanh(linear(tanh(linear(x, p[0], p[1])), p[2], p[3])), p[4], p[5]);
}

// The mean squares of u_t - 0.1 u_xx - 1, and of u at time 0.
Tensor physics_loss(const TensorList& p, const Tensor& points, const Tensor& start) {
  const Tensor x = points.detach().requires_grad_();
  const Tensor first = grad({sum(field(p, x))}, {x}, {}, {.create_graph = true})[0];
  const Tensor second = grad({sum(select(first, 1, 0))}, {x}, {}, {.create_graph = true})[0];
  return mean(square(select(first, 1, 1) - select(second, 1, 0) * 0.1 - 1.0)) + mean(square(field(p, start)));
}

Row physics_row(const Device& device) {
  const std::vector<Dims> shapes{{kHidden, 2}, {kHidden}, {kHidden, kHidden}, {kHidden}, {1, kHidden}, {1}};
  const auto make = [&] {
    TensorList parameters;
    for (const Dims& dims : shapes) {
      const auto seed = static_cast<uint32_t>(parameters.size() + 1);
      parameters.push_back(numbers(dims, 0.3f, seed, device).requires_grad_());
    }
    return parameters;
  };
  const Tensor points = abs(numbers({kPoints, 2}, 1, 50, device));
  const Tensor start = points * Tensor::from<float>({1.0f, 0.0f}, {2}, device);
  const auto step_of = [](const TensorList& parameters) {
    return [parameters](const Tensor& x, const Tensor& at_start) {
      const Tensor loss = physics_loss(parameters, x, at_start);
      loss.backward();
      descend(parameters);
      return loss.detach();
    };
  };
  CompileOptions options;
  options.compile = Compiling::wait;
  const auto run = compile(step_of(make()), options);
  Row row{"a step with gradients of gradients, 256 points", {"tenon, compiled", [=](int64_t n) {
                                                               for (int64_t i = 0; i < n; ++i) run(points, start);
                                                             }}};
  row.bar = kPhysicsBar;
  row.check = [=, checked = compile(step_of(make()), options), eager = step_of(make())]() -> std::string {
    float first = 0;
    for (int i = 0; i < 50; ++i) {
      const float got = checked(points, start).to_host<float>()[0], wanted = eager(points, start).to_host<float>()[0];
      if (std::fabs(got - wanted) > 1e-3f * wanted) return fmt::format("loss {} is {}, not {}", i, got, wanted);
      if (i == 0) first = wanted;
      if (i == 49 && wanted >= first) return fmt::format("the loss goes from {} to {}", first, wanted);
    }
    return "";
  };
#ifdef TENON_HAVE_TORCH
  Operands operands{{}, kPoints, kHidden};
  for (const Tensor& parameter : make()) {
    const std::vector<float> values = parameter.detach().to_host<float>();
    operands.values.insert(operands.values.end(), values.begin(), values.end());
  }
  for (const Tensor& tensor : {points, start}) {
    const std::vector<float> values = tensor.to_host<float>();
    operands.values.insert(operands.values.end(), values.begin(), values.end());
  }
  row.peers.push_back(torch_side(Work::physics, operands, 2));
#endif
  return row;
}

}  // namespace

std::vector<Row> step_rows(const Device& device) {
  std::vector<Row> rows;
  rows.push_back(physics_row(device));
  return rows;
}

}  // namespace tenon::bench
