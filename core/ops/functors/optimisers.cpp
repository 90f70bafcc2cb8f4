// Optimiser steps, in place, on lists of tensors. Recorded programs use these ops and fuse their kernels; so do devices
// without their own loop. Host memory is updated by core/interpreter/host_loops/optimisers.cpp.
#include <cmath>

#include "core/ops/functors/apply.h"
#include "core/ops/operators.h"
#include "core/ops/sizes.h"

namespace tenon::functors {
namespace {

bool one_shape(const Tensor& a, const Tensor& b) {
  return is_open(a) || is_open(b) ? same_sizes(sizes(a), sizes(b)) : a.dims() == b.dims();
}

// Throws for a list whose tensors do not match `params`.
void require_like(std::string_view op, std::string_view name, const TensorList& list, const TensorList& params) {
  if (list.size() != params.size()) {
    refuse(op, "{} has {} tensors for {} params.", name, list.size(), params.size());
  }
  for (size_t i = 0; i < list.size(); ++i) {
    require_defined(op, name, list[i]);
    if (list[i].dtype() == params[i].dtype() && one_shape(list[i], params[i])) continue;
    refuse(op, "tensor {} of {} is {} {}; tensor {} of params is {} {}.", i, name, dtype_name(list[i].dtype()),
           list[i].dims(), i, dtype_name(params[i].dtype()), params[i].dims());
  }
}

void require_params(std::string_view op, const TensorList& params) {
  for (const Tensor& param : params) {
    require_defined(op, "params", param);
    if (!is_floating(param.dtype())) refuse(op, "params are floats, not {}.", dtype_name(param.dtype()));
  }
}

// `number`, one element, in a dtype and on a device in which it can multiply `like`.
Tensor number_for(const Tensor& number, const Tensor& like) {
  const DType dtype = like.dtype() == DType::f64 ? DType::f64 : DType::f32;
  Tensor moved = tenon::cast(number, dtype);
  if (moved.device() != like.device()) moved = tenon::to(moved, like.device());
  return moved.rank() == 0 ? moved : tenon::reshape(moved, IntList());
}

void require_number(std::string_view op, std::string_view name, const Tensor& number) {
  require_defined(op, name, number);
  if (number.elements() != 1) refuse(op, "{} of shape {} is not one number.", name, number.dims());
}

// Numbers that are the same for all tensors of a list on one device.
struct AdamNumbers {
  Tensor step_size;        // lr over the correction of the first moment
  Tensor root_correction;  // 1 over the root of the correction of the second moment
  Tensor shrink;           // 1 - lr * weight_decay
};

struct AdamSettings {
  double beta1, beta2, weight_decay, eps;
  bool maximize, decoupled;
};

// 1 - beta^step, without the cancellation of that difference.
Tensor correction(double beta, const Tensor& step) { return -tenon::expm1(step * std::log(beta)); }

AdamNumbers adam_numbers(const AdamSettings& how, const Tensor& step, const Tensor& lr, const Tensor& like) {
  const Tensor at = number_for(step, like), rate = number_for(lr, like);
  AdamNumbers numbers;
  numbers.step_size = how.beta1 == 0 ? rate : rate / correction(how.beta1, at);
  if (how.beta2 != 0) numbers.root_correction = tenon::rsqrt(correction(how.beta2, at));
  if (how.decoupled && how.weight_decay != 0) numbers.shrink = 1 - rate * how.weight_decay;
  return numbers;
}

void adam_one(const AdamSettings& how, const AdamNumbers& numbers, Tensor param, Tensor grad, Tensor average,
              Tensor square_average, Tensor greatest) {
  if (how.maximize) grad = -grad;
  if (how.weight_decay != 0) {
    if (how.decoupled) {
      tenon::mul_(param, numbers.shrink);
    } else {
      grad = grad + param * how.weight_decay;
    }
  }
  tenon::lerp_(average, grad, 1 - how.beta1);
  tenon::mul_(square_average, how.beta2);
  tenon::add_(square_average, tenon::square(grad) * (1 - how.beta2));
  if (greatest.defined()) tenon::copy_(greatest, tenon::maximum(greatest, square_average));
  Tensor root = tenon::sqrt(greatest.defined() ? greatest : square_average);
  if (numbers.root_correction.defined()) root = root * numbers.root_correction;
  tenon::sub_(param, average / (root + how.eps) * numbers.step_size);
}

TensorList adam(std::string_view op, const AdamSettings& how, const TensorList& params, const TensorList& grads,
                const TensorList& averages, const TensorList& square_averages, const TensorList& greatest,
                const Tensor& step, const Tensor& lr) {
  require_params(op, params);
  require_like(op, "grads", grads, params);
  require_like(op, "exp_avgs", averages, params);
  require_like(op, "exp_avg_sqs", square_averages, params);
  if (!greatest.empty()) require_like(op, "max_exp_avg_sqs", greatest, params);
  require_number(op, "step", step);
  require_number(op, "lr", lr);
  AdamNumbers numbers;
  for (size_t i = 0; i < params.size(); ++i) {
    const bool same = i > 0 && params[i].device() == params[i - 1].device() &&
                      (params[i].dtype() == DType::f64) == (params[i - 1].dtype() == DType::f64);
    if (!same) numbers = adam_numbers(how, step, lr, params[i]);
    adam_one(how, numbers, params[i], grads[i], averages[i], square_averages[i],
             greatest.empty() ? Tensor() : greatest[i]);
  }
  return params;
}

}  // namespace

size_t count_fused_sgd_(const TensorList& params, const TensorList&, const TensorList&, const Tensor&, double, double,
                        double, bool, bool) {
  return params.size();
}

TensorList fused_sgd_(const TensorList& params, const TensorList& grads, const TensorList& momentum_buffers,
                      const Tensor& lr, double momentum, double dampening, double weight_decay, bool nesterov,
                      bool maximize) {
  constexpr std::string_view op = "fused_sgd_";
  require_params(op, params);
  require_like(op, "grads", grads, params);
  if (momentum != 0 || !momentum_buffers.empty()) require_like(op, "momentum_buffers", momentum_buffers, params);
  if (nesterov && (momentum <= 0 || dampening != 0)) {
    refuse(op, "nesterov needs a momentum above 0 and no dampening, not {} and {}.", momentum, dampening);
  }
  require_number(op, "lr", lr);
  for (size_t i = 0; i < params.size(); ++i) {
    Tensor param = params[i], grad = maximize ? -grads[i] : grads[i];
    if (weight_decay != 0) grad = grad + param * weight_decay;
    if (momentum != 0) {
      Tensor buffer = momentum_buffers[i];
      tenon::mul_(buffer, momentum);
      tenon::add_(buffer, dampening == 0 ? grad : grad * (1 - dampening));
      grad = nesterov ? grad + buffer * momentum : buffer;
    }
    tenon::sub_(param, grad * number_for(lr, param));
  }
  return params;
}

size_t count_fused_adam_(const TensorList& params, const TensorList&, const TensorList&, const TensorList&,
                         const TensorList&, const Tensor&, const Tensor&, double, double, double, double, bool) {
  return params.size();
}

TensorList fused_adam_(const TensorList& params, const TensorList& grads, const TensorList& exp_avgs,
                       const TensorList& exp_avg_sqs, const TensorList& max_exp_avg_sqs, const Tensor& step,
                       const Tensor& lr, double beta1, double beta2, double weight_decay, double eps, bool maximize) {
  return adam("fused_adam_", {beta1, beta2, weight_decay, eps, maximize, false}, params, grads, exp_avgs, exp_avg_sqs,
              max_exp_avg_sqs, step, lr);
}

size_t count_fused_adamw_(const TensorList& params, const TensorList&, const TensorList&, const TensorList&,
                          const TensorList&, const Tensor&, const Tensor&, double, double, double, double, bool) {
  return params.size();
}

TensorList fused_adamw_(const TensorList& params, const TensorList& grads, const TensorList& exp_avgs,
                        const TensorList& exp_avg_sqs, const TensorList& max_exp_avg_sqs, const Tensor& step,
                        const Tensor& lr, double beta1, double beta2, double weight_decay, double eps, bool maximize) {
  return adam("fused_adamw_", {beta1, beta2, weight_decay, eps, maximize, true}, params, grads, exp_avgs, exp_avg_sqs,
              max_exp_avg_sqs, step, lr);
}

}  // namespace tenon::functors
