#include "benchmarks/peers/torch.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/version.h>

#include <cstring>
#include <string>

namespace tenon::bench {
namespace {

at::Tensor tensor_of(const Operands& operands, at::IntArrayRef dims) {
  at::Tensor tensor = at::empty(dims, at::kFloat);
  std::memcpy(tensor.data_ptr<float>(), operands.values.data(), static_cast<size_t>(tensor.nbytes()));
  return tensor;
}

// The last result lives until the next one, as in a loop over a variable.
template <class Op>
Side side_of(int threads, Op op) {
  const std::string label = "libtorch " + std::to_string(TORCH_VERSION_MAJOR) + "." +
                            std::to_string(TORCH_VERSION_MINOR) + "." + std::to_string(TORCH_VERSION_PATCH) + ", " +
                            std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  return {label, [=](int64_t n) mutable {
            const c10::InferenceMode guard;
            if (at::get_num_threads() != threads) at::set_num_threads(threads);
            at::Tensor result;
            for (int64_t i = 0; i < n; ++i) result = op();
          }};
}

// Like side_of, for work that records gradients: a chain of `per_run` nodes counts as `per_run` runs.
template <class Op>
Side recording_side_of(int threads, int64_t per_run, Op op) {
  Side side = side_of(threads, [] { return at::Tensor(); });
  side.run = [=](int64_t n) mutable {
    if (at::get_num_threads() != threads) at::set_num_threads(threads);
    at::Tensor result;
    for (int64_t i = 0; i < n; i += per_run) result = op();
  };
  return side;
}

// libtorch before 2.4 has no fused step of AdamW on the processor.
Side adamw_side(int threads, [[maybe_unused]] const Operands& operands) {
  Side side = side_of(threads, [] { return at::Tensor(); });
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
  const c10::InferenceMode guard;
  std::vector<at::Tensor> lists[5];
  for (int64_t i = 0; i < operands.rows; ++i) {
    for (size_t k = 0; k < 4; ++k) {
      const at::Tensor tensor = tensor_of(operands, {operands.columns});
      lists[k].push_back(k < 2 ? tensor : at::zeros_like(tensor));
    }
    lists[4].push_back(at::zeros({}));
  }
  side.run = [=](int64_t n) mutable {
    const c10::InferenceMode inside;
    if (at::get_num_threads() != threads) at::set_num_threads(threads);
    for (int64_t i = 0; i < n; ++i) {
      at::_foreach_add_(lists[4], 1);
      at::_fused_adamw_(lists[0], lists[1], lists[2], lists[3], {}, lists[4], 1e-3, 0.9, 0.999, 1e-2, 1e-8, false,
                        false);
    }
  };
#else
  side.run = nullptr;
#endif
  return side;
}

// As in gradients/steps.cpp.
Side physics_side(const Operands& operands, int threads) {
  size_t at = 0;
  const auto take = [&](at::IntArrayRef dims) {
    at::Tensor tensor = at::empty(dims, at::kFloat);
    std::memcpy(tensor.data_ptr<float>(), operands.values.data() + at, static_cast<size_t>(tensor.nbytes()));
    at += static_cast<size_t>(tensor.numel());
    return tensor;
  };
  const int64_t width = operands.columns;
  std::vector<at::Tensor> p{take({width, 2}), take({width}),    take({width, width}),
                            take({width}),    take({1, width}), take({1})};
  for (at::Tensor& each : p) each.requires_grad_();
  const at::Tensor points = take({operands.rows, 2}), start = take({operands.rows, 2});
  const auto field = [p](const at::Tensor& x) {
    return at::linear(at::tanh(at::linear(at::tanh(at::linear(x, p[0], p[1])), p[2], p[3])), p[4], p[5]);
  };
  return recording_side_of(threads, 1, [=] {
    const at::Tensor x = points.detach().requires_grad_();
    const at::Tensor first = torch::autograd::grad({at::sum(field(x))}, {x}, {}, true, true)[0];
    const at::Tensor second = torch::autograd::grad({at::sum(first.select(1, 0))}, {x}, {}, true, true)[0];
    const at::Tensor loss =
        at::mean(at::square(first.select(1, 1) - second.select(1, 0) * 0.1 - 1.0)) + at::mean(at::square(field(start)));
    loss.backward();
    const at::NoGradGuard guard;
    for (at::Tensor each : p) {
      each.sub_(each.grad() * 1e-2);
      each.mutable_grad().reset();
    }
    return loss.detach();
  });
}

Side recording_side(Work work, const Operands& operands, int threads) {
  const at::Tensor c = tensor_of(operands, {operands.rows * operands.columns});
  const at::Tensor x = c.clone().requires_grad_();
  switch (work) {
    case Work::recorded_relu: return recording_side_of(threads, 1, [x] { return at::relu(x); });
    case Work::recorded_mul: return recording_side_of(threads, 1, [x] { return at::mul(x, x); });
    case Work::chain:
      return recording_side_of(threads, kChain, [=] {
        at::Tensor y = x;
        for (int64_t i = 0; i < kChain; ++i) y = i % 2 == 0 ? at::relu(y) : at::mul(y, c);
        y.backward(at::ones_like(y));
        return y;
      });
    default: break;
  }
  at::Tensor y = x;
  for (int64_t i = 0; i < kChain; ++i) y = work == Work::backward_relu ? at::relu(y) : at::mul(y, c);
  return recording_side_of(threads, kChain, [=] {
    y.backward(at::ones_like(y), true);
    return at::Tensor();
  });
}

}  // namespace

Side torch_side(Work work, const Operands& operands, int threads) {
  if (work == Work::adamw) return adamw_side(threads, operands);
  if (work == Work::physics) return physics_side(operands, threads);
  if (work >= Work::recorded_relu) return recording_side(work, operands, threads);
  const c10::InferenceMode guard;
  const int64_t rows = operands.rows, columns = operands.columns;
  const at::Tensor x = tensor_of(operands, {rows * columns});
  const at::Tensor square = x.view({rows, columns});
  switch (work) {
    case Work::relu: return side_of(threads, [x] { return at::relu(x); });
    case Work::add: return side_of(threads, [x] { return at::add(x, x); });
    case Work::view: return side_of(threads, [=] { return x.view({rows, columns}); });
    case Work::add_out: {
      at::Tensor out = at::empty_like(x);
      return side_of(threads, [x, out]() mutable { return at::add_out(out, x, x); });
    }
    case Work::bias: {
      const at::Tensor bias = tensor_of(operands, {columns});
      return side_of(threads, [=] { return at::add(square, bias); });
    }
    case Work::strided: {
      const at::Tensor wide = tensor_of(operands, {rows, 2 * columns});
      const at::Tensor half = wide.slice(1, c10::nullopt, c10::nullopt, 2);
      return side_of(threads, [half] { return at::add(half, half); });
    }
    case Work::transposed: {
      const at::Tensor t = square.t();
      return side_of(threads, [t] { return at::mul(t, t); });
    }
    default: return {};
  }
}

}  // namespace tenon::bench
