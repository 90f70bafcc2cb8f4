// Gradients of softmax and the normalisations.
#include "core/autograd/engine.h"
#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/operators.h"
#include "core/ops/size_list.h"
#include "core/ops/sizes.h"
#include "primitives/text/format.h"

namespace tenon::gradients {
namespace {

int32_t axis_of(const autograd::Backward& b) { return b.attributes<SoftmaxAttributes>().axis; }

// Turns one number per channel (axis 1) into a tensor that broadcasts against tensors of `rank`.
Tensor per_channel(const Tensor& numbers, int32_t rank) {
  Dims dims = Dims::filled(rank - 1, 1);
  dims[0] = numbers.elements();
  return tenon::reshape(numbers, dims);
}

// The sum of `x` per channel.
Tensor over_channel(const Tensor& x) {
  Dims axes;
  for (int32_t axis = 0; axis < x.rank(); ++axis) {
    if (axis != 1) axes.push_back(axis);
  }
  return tenon::sum(x, axes);
}

struct Normalized {
  Tensor y;  // (x - mean) * r
  Tensor r;  // 1 / sqrt(variance + eps)
};

Normalized normalized(const Tensor& input, const Dims& axes, double eps) {
  const Tensor centred = input - tenon::mean(input, axes, true);
  const Tensor r = tenon::rsqrt(tenon::mean(tenon::square(centred), axes, true) + eps);
  return {centred * r, r};
}

// With h = gradient * weight: r * (h - mean(h) - y * mean(h * y)).
void give_normalized(const autograd::Backward& b, const Tensor& input, const Tensor& weight, const Dims& axes) {
  if (!b.wants(0)) return;
  const auto [y, r] = normalized(input, axes, b.scalar(0));
  const Tensor h = weight.defined() ? b.grad() * weight : b.grad();
  b.give(0, r * (h - tenon::mean(h, axes, true) - y * tenon::mean(h * y, axes, true)));
}

void require_result_only(const autograd::Backward& b) {
  if (b.grad(0).defined() && !b.grad(1).defined() && !b.grad(2).defined()) return;
  throw Error(Subject{b.op().name}, Code::unsupported, "only its first result has a gradient, not its statistics.",
              "Compute the statistics by mean and var.");
}

}  // namespace

void softmax(const autograd::Backward& b) {
  const Tensor result = b.result();
  b.give(0, result * (b.grad() - tenon::sum(b.grad() * result, axis_of(b), true)));
}

void log_softmax(const autograd::Backward& b) {
  b.give(0, b.grad() - tenon::exp(b.result()) * tenon::sum(b.grad(), axis_of(b), true));
}

void layer_norm(const autograd::Backward& b) {
  const Tensor input = b.input(0);
  Dims axes;
  for (int32_t axis = b.attributes<AxisAttributes>().axis; axis < input.rank(); ++axis) axes.push_back(axis);
  const Tensor weight = b.has(1) ? b.input(1) : Tensor();
  give_normalized(b, input, weight, axes);
  if (b.wants(1)) b.give(1, b.grad() * normalized(input, axes, b.scalar(0)).y);
  if (b.wants(2)) b.give(2, b.grad());
}

// With h = gradient * weight and y = input * r: r * (h - y * mean(h * y)).
void rms_norm(const autograd::Backward& b) {
  const Tensor input = b.input(0);
  Dims axes;
  for (int32_t axis = b.attributes<AxisAttributes>().axis; axis < input.rank(); ++axis) axes.push_back(axis);
  const Tensor r = tenon::rsqrt(tenon::mean(tenon::square(input), axes, true) + b.scalar(0));
  const Tensor y = input * r;
  const Tensor h = b.has(1) ? b.grad() * b.input(1) : b.grad();
  if (b.wants(0)) b.give(0, r * (h - y * tenon::mean(h * y, axes, true)));
  if (b.wants(1)) b.give(1, b.grad() * y);
}

// The groups are rows of a tensor [n, groups, rest].
void group_norm(const autograd::Backward& b) {
  const Tensor input = b.input(0);
  const SizeList dims(sizes(input));
  const SizeList rows{size_at(input, 0), b.attributes<GroupNormAttributes>().groups, -1};
  if (b.wants(2)) b.give(2, over_channel(b.grad()));
  if (!b.wants(0) && !b.wants(1)) return;
  if (is_empty(input)) {  // there is nothing to normalise
    if (b.wants(0)) b.give(0, tenon::zeros_like(input));
    if (b.wants(1)) b.give(1, over_channel(b.grad()));
    return;
  }
  const auto [y, r] = normalized(tenon::reshape(input, rows), {2}, b.scalar(0));
  if (b.wants(1)) b.give(1, over_channel(b.grad() * tenon::reshape(y, dims)));
  if (!b.wants(0)) return;
  const Tensor h = tenon::reshape(b.has(1) ? b.grad() * per_channel(b.input(1), input.rank()) : b.grad(), rows);
  const Tensor back = r * (h - tenon::mean(h, 2, true) - y * tenon::mean(h * y, 2, true));
  b.give(0, tenon::reshape(back, dims));
}

void layer_norm_with_statistics(const autograd::Backward& b) {
  require_result_only(b);
  layer_norm(b);
}

// batch_norm with the statistics of the input itself. The op that computes all its gradients at once has no gradient.
void batch_norm_with_statistics(const autograd::Backward& b) {
  require_result_only(b);
  const Tensor input = b.input(0);
  if (!autograd::creates_graph()) {
    const auto [of_input, of_weight, of_bias] =
        tenon::batch_norm_backward(b.grad(), input, b.has(1) ? b.input(1) : Tensor(), b.result(1), b.result(2));
    if (b.wants(0)) b.give(0, of_input);
    if (b.wants(1)) b.give(1, of_weight);
    if (b.wants(2)) b.give(2, of_bias);
    return;
  }
  Dims axes{0};
  for (int32_t axis = 2; axis < input.rank(); ++axis) axes.push_back(axis);
  const Tensor weight = b.has(1) ? per_channel(b.input(1), input.rank()) : Tensor();
  give_normalized(b, input, weight, axes);
  if (b.wants(1)) b.give(1, over_channel(b.grad() * normalized(input, axes, b.scalar(0)).y));
  if (b.wants(2)) b.give(2, over_channel(b.grad()));
}

// The inputs of the record: input, scale, shift, mean, variance.
void batch_norm(const autograd::Backward& b) {
  const Tensor& grad = b.grad();
  const int32_t rank = grad.rank();
  const Tensor scale = per_channel(b.input(1), rank);
  const Tensor r = per_channel(tenon::rsqrt(b.input(4) + b.scalar(0)), rank);
  if (b.wants(0)) b.give(0, grad * (scale * r));
  if (b.wants(2)) b.give(2, over_channel(grad));
  if (b.wants(3)) b.give(3, over_channel(-grad * (scale * r)));
  if (!b.wants(1) && !b.wants(4)) return;
  const Tensor centred = b.input(0) - per_channel(b.input(3), rank);
  if (b.wants(1)) b.give(1, over_channel(grad * centred * r));
  if (b.wants(4)) b.give(4, over_channel(grad * centred * (scale * (r * tenon::square(r)) * -0.5)));
}

}  // namespace tenon::gradients
