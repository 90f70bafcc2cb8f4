#include "benchmarks/gradients/steps.h"

#include <cmath>
#include <memory>
#include <random>
#include <string>

#include "benchmarks/peers/torch.h"
#include "core/autograd/autograd.h"
#include "core/lazy/compile.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::bench {
namespace {

constexpr double kMemoryBar = 0.6;  // of the memory of a step that keeps everything
constexpr double kTimeBar = 1.1;
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

// --- a transformer

constexpr int64_t kBlocks = 4, kBatch = 8, kLength = 128, kWidth = 256, kHeads = 4;
constexpr size_t kPerBlock = 12;

TensorList transformer(const Device& device) {
  const std::vector<Dims> shapes{
      {kWidth}, {kWidth}, {3 * kWidth, kWidth}, {3 * kWidth}, {kWidth, kWidth},     {kWidth},
      {kWidth}, {kWidth}, {4 * kWidth, kWidth}, {4 * kWidth}, {kWidth, 4 * kWidth}, {kWidth}};
  TensorList parameters;
  for (int64_t block = 0; block < kBlocks; ++block) {
    for (const Dims& dims : shapes) {
      const auto seed = static_cast<uint32_t>(parameters.size() + 1);
      parameters.push_back(numbers(dims, 1 / std::sqrt(static_cast<float>(kWidth)), seed, device).requires_grad_());
    }
  }
  return parameters;
}

Tensor transformer_loss(const TensorList& p, const Tensor& input) {
  const auto heads = [](const Tensor& t) {
    return transpose(reshape(t, {kBatch, kLength, kHeads, kWidth / kHeads}), 1, 2);
  };
  Tensor x = input;
  for (size_t at = 0; at < p.size(); at += kPerBlock) {
    const TensorList qkv = chunk(linear(layer_norm(x, kWidth, p[at], p[at + 1]), p[at + 2], p[at + 3]), 3, -1);
    const Tensor attended = scaled_dot_product_attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), {}, true);
    x = x + linear(reshape(transpose(attended, 1, 2), {kBatch, kLength, kWidth}), p[at + 4], p[at + 5]);
    const Tensor hidden = gelu(linear(layer_norm(x, kWidth, p[at + 6], p[at + 7]), p[at + 8], p[at + 9]));
    x = x + linear(hidden, p[at + 10], p[at + 11]);
  }
  return mean(square(x));
}

// A net whose loss, or whose whole step, is compiled, under a limit of memory.
class Trained {
 public:
  Trained(const Device& device, bool whole, bool recompute, uint64_t limit)
      : parameters_(transformer(device)), x_(numbers({kBatch, kLength, kWidth}, 1, 99, device)) {
    CompileOptions options;
    options.compile = Compiling::wait;
    options.recompute = recompute;
    options.memory_limit = limit;
    const TensorList parameters = parameters_;
    if (whole) {
      step_ = [run = compile(
                   [parameters](const Tensor& x) {
                     const Tensor loss = transformer_loss(parameters, x);
                     loss.backward();
                     descend(parameters);
                     return loss.detach();
                   },
                   options)](const Tensor& x) { return run(x); };
    } else {
      step_ = [parameters, run = compile([parameters](const Tensor& x) { return transformer_loss(parameters, x); },
                                         options)](const Tensor& x) {
        const Tensor loss = run(x);
        loss.backward();
        descend(parameters);
        return loss.detach();
      };
    }
  }

  float step() const { return step_(x_).to_host<float>()[0]; }

 private:
  TensorList parameters_;
  Tensor x_;
  std::function<Tensor(const Tensor&)> step_;
};

// Bytes that some steps of `net` take beside what is there now. Nothing before may have taken more.
uint64_t bytes_of_steps(const Trained& net, const Device& device) {
  const uint64_t before = device.memory_stats().live;
  for (int i = 0; i < 3; ++i) net.step();
  return device.memory_stats().peak - before;
}

uint64_t live_bytes(const Device& device, bool whole) {
  const TensorList parameters = transformer(device);
  const auto loss = [&](const Tensor& x) {
    const Tensor value = transformer_loss(parameters, x);
    if (!whole) return value;
    value.backward();
    descend(parameters);
    return value.detach();
  };
  CompileOptions options;
  options.memory_limit = UINT64_MAX;
  auto run = compile(loss, options);
  run(numbers({kBatch, kLength, kWidth}, 1, 99, device));
  return run.memory().front().live_before;
}

Row transformer_row(const Device& device, bool whole, double share) {
  const uint64_t limit = static_cast<uint64_t>(share * static_cast<double>(live_bytes(device, whole)));
  const auto less = std::make_shared<Trained>(device, whole, true, limit);
  const uint64_t bytes = bytes_of_steps(*less, device);
  const auto all = std::make_shared<Trained>(device, whole, false, 0);
  const uint64_t bytes_of_all = bytes_of_steps(*all, device);
  const double ratio = static_cast<double>(bytes) / static_cast<double>(bytes_of_all);
  Row row{
      fmt::format("a transformer's {} in {:.2f} of the memory", whole ? "whole step" : "loss and its backward", ratio),
      {"tenon under a limit", [less](int64_t n) {
         for (int64_t i = 0; i < n; ++i) less->step();
       }}};
  row.peers.push_back({"tenon, everything kept", [all](int64_t n) {
                         for (int64_t i = 0; i < n; ++i) all->step();
                       }});
  row.bar = kTimeBar;
  row.burst = 1;
  row.check = [=, first = less->step(), second = all->step()]() -> std::string {
    if (std::fabs(first - second) > 1e-3f * std::fabs(second)) return fmt::format("losses {} and {}", first, second);
    if (ratio <= kMemoryBar) return "";
    return fmt::format("{} bytes are {:.2f} of {}, more than {}", bytes, ratio, bytes_of_all, kMemoryBar);
  };
  return row;
}

// --- a physics-informed net

constexpr int64_t kPoints = 256, kHidden = 64;

// u at the points [rows, 2], by a net of two hidden layers.
Tensor field(const TensorList& p, const Tensor& x) {
  return linear(tanh(linear(tanh(linear(x, p[0], p[1])), p[2], p[3])), p[4], p[5]);
}

// u_t = 0.1 u_xx + 1 in the mean square, and u = 0 at time 0.
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
  rows.push_back(transformer_row(device, false, 0.5));
  rows.push_back(transformer_row(device, true, 0.5));
  rows.push_back(physics_row(device));
  return rows;
}

}  // namespace tenon::bench
