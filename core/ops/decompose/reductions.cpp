// Decomposes reductions and normalisations into sums, extrema and element-wise ops.
#include <algorithm>

#include "core/ops/decompose/result.h"
#include "core/ops/rules.h"
#include "primitives/infer/reduce.h"

namespace tenon::ops {
namespace {

struct Reduction {
  explicit Reduction(const OpCall& call) : x(input(call, 0)) {
    const auto& attributes = call.attributes_as<ReduceAttributes>();
    for (int32_t axis = 0; axis < x.rank(); ++axis) {
      if ((attributes.axes >> axis & 1) != 0) axes.push_back(axis);
    }
    keepdim = attributes.keep_dims != 0;
    count = infer::reduced_count(x.dims(), attributes.axes);
  }
  Tensor sum_of(const Tensor& tensor) const { return sum(tensor, axes, keepdim, tensor.dtype()); }

  const Tensor& x;
  Dims axes;
  bool keepdim = false;
  int64_t count = 0;
};

// `list`, one parameter per channel, as a tensor that broadcasts along the other axes of x.
Tensor channels(const Tensor& list, const Tensor& x, int32_t axis) {
  Dims dims = Dims::filled(x.rank() - axis, 1);
  dims[0] = list.elements();
  return reshape(list, dims);
}

}  // namespace

void decompose_mean(const OpCall& call) {
  const Reduction r(call);
  store(call, div(r.sum_of(r.x), Scalar(static_cast<double>(r.count))));
}
void decompose_l1_norm(const OpCall& call) {
  const Reduction r(call);
  store(call, r.sum_of(abs(r.x)));
}
void decompose_l2_norm(const OpCall& call) {
  const Reduction r(call);
  store(call, sqrt(r.sum_of(mul(r.x, r.x))));
}
void decompose_sum_square(const OpCall& call) {
  const Reduction r(call);
  store(call, r.sum_of(mul(r.x, r.x)));
}
void decompose_nansum(const OpCall& call) {
  const Reduction r(call);
  store(call, r.sum_of(where(isnan(r.x), Scalar(0), r.x)));
}
void decompose_log_sum(const OpCall& call) {
  const Reduction r(call);
  store(call, log(r.sum_of(r.x)));
}

void decompose_softmax(const OpCall& call) {
  const Tensor& x = input(call, 0);
  const int64_t axis = call.attributes_as<SoftmaxAttributes>().axis;
  const Tensor powers = exp(sub(x, amax(x, axis, true)));
  store(call, div(powers, sum(powers, axis, true)));
}

void decompose_log_softmax(const OpCall& call) {
  const Tensor& x = input(call, 0);
  const int64_t axis = call.attributes_as<SoftmaxAttributes>().axis;
  const Tensor shifted = sub(x, amax(x, axis, true));
  store(call, sub(shifted, log(sum(exp(shifted), axis, true))));
}

void decompose_layer_norm(const OpCall& call) {
  const Tensor& x = input(call, 0);
  Dims axes;
  for (int32_t axis = call.attributes_as<AxisAttributes>().axis; axis < x.rank(); ++axis) axes.push_back(axis);
  const Tensor centred = sub(x, mean(x, axes, true));
  const Tensor variance = mean(mul(centred, centred), axes, true);
  Tensor result = div(centred, sqrt(add(variance, call.scalars[0])));
  const Tensor scale = optional(call, 1);
  const Tensor shift = optional(call, 2);
  if (scale.defined()) result = mul(result, scale);
  store(call, shift.defined() ? add(result, shift) : result);
}

void decompose_rms_norm(const OpCall& call) {
  const Tensor& x = input(call, 0);
  const Tensor scale = optional(call, 1);
  const Tensor wide = is_floating(x.dtype()) && x.dtype() != DType::f64 ? cast(x, DType::f32) : x;
  Dims axes;
  for (int32_t axis = call.attributes_as<AxisAttributes>().axis; axis < x.rank(); ++axis) axes.push_back(axis);
  const Tensor result = mul(wide, rsqrt(add(mean(square(wide), axes, true), call.scalars[0])));
  store(call, cast(scale.defined() ? mul(result, cast(scale, wide.dtype())) : result, x.dtype()));
}

void decompose_group_norm(const OpCall& call) {
  const Tensor& x = input(call, 0);
  const int64_t groups = call.attributes_as<GroupNormAttributes>().groups;
  const Tensor rows = reshape(x, Dims{x.dim(0), groups, x.elements() / std::max<int64_t>(x.dim(0) * groups, 1)});
  Tensor result =
      reshape(layer_norm(rows, Dims{rows.dim(2)}, Tensor(), Tensor(), call.scalars[0].to_double()), x.dims());
  const Tensor scale = optional(call, 1);
  const Tensor shift = optional(call, 2);
  if (scale.defined()) result = mul(result, channels(scale, x, 1));
  store(call, shift.defined() ? add(result, channels(shift, x, 1)) : result);
}

void decompose_batch_norm(const OpCall& call) {
  const Tensor& x = input(call, 0);
  const int32_t axis = call.attributes_as<AxisAttributes>().axis;
  const Tensor scale = div(input(call, 1), sqrt(add(input(call, 4), call.scalars[0])));
  const Tensor centred = sub(x, channels(input(call, 3), x, axis));
  store(call, add(mul(centred, channels(scale, x, axis)), channels(input(call, 2), x, axis)));
}

}  // namespace tenon::ops
