// convolution_weight, pooling_backward, batch_norm_training and the backward kinds of norms.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "primitives/reference/call.h"

namespace tenon::reference {
namespace {

// The row-major number of an element of `operand`.
int64_t row_major(const Operand& operand, const int64_t* index) {
  int64_t at = 0;
  for (int32_t axis = 0; axis < operand.rank(); ++axis) at = at * operand.dim(axis) + index[axis];
  return at;
}

// Calls visit(at) for each position of `wide` inside the window of `out`. Returns the divisor of an average.
template <class Visit>
int64_t for_each_in_window(const ep_pooling_attributes& attributes, const Operand& wide, const int64_t* out,
                           Visit&& visit) {
  int64_t inside = 0;
  int64_t padded = 0;
  for_each_index({attributes.kernel, static_cast<size_t>(attributes.spatial_rank)}, [&](const int64_t* tap) {
    int64_t at[EP_MAX_RANK] = {out[0], out[1]};
    bool within = true;
    for (int32_t i = 0; i < attributes.spatial_rank; ++i) {
      const int64_t dim = wide.dim(i + 2);
      at[i + 2] = out[i + 2] * attributes.stride[i] - attributes.pad_low[i] + tap[i] * attributes.dilation[i];
      if (at[i + 2] >= dim + attributes.pad_high[i]) return;
      within = within && at[i + 2] >= 0 && at[i + 2] < dim;
    }
    ++padded;
    if (!within) return;
    ++inside;
    visit(static_cast<const int64_t*>(at));
  });
  return attributes.op == EP_POOLING_AVERAGE ? inside : padded;
}

// The position of element `number`, which is in range, in its plane.
void unravel(const Operand& wide, int64_t number, int64_t* at) {
  for (int32_t axis = wide.rank() - 1; axis >= 2; --axis) {
    at[axis] = number % wide.dim(axis);
    number /= wide.dim(axis);
  }
}

// The operands of the backward kinds of norms. The elements of one group share a mean: a group is a row of a layer_norm
// or a channel of a batch_norm. Elements with the same parameter share an element of SCALE.
struct Norm {
  Norm(Call& call, int32_t axis, bool of_channels)
      : src(call[EP_ROLE_SRC]),
        gradient(call[EP_ROLE_GRADIENT]),
        scale(call[EP_ROLE_SCALE]),
        mean(call[EP_ROLE_MEAN]),
        inv_std(call[EP_ROLE_INV_STD]),
        first(axis),
        channels(of_channels) {}

  // The index of an element's group, in the dims of MEAN.
  void group(const int64_t* index, int64_t* at) const {
    if (channels) {
      at[0] = index[first];
    } else {
      std::copy_n(index, first, at);
    }
  }
  double normal(const int64_t* index) const {
    int64_t at[EP_MAX_RANK] = {};
    group(index, at);
    return (src.get<double>(index) - mean.get<double>(at)) * inv_std.get<double>(at);
  }
  double scaled(const int64_t* index) const {
    return gradient.get<double>(index) * (scale ? scale.get<double>(index + first) : 1);
  }

  Operand src, gradient, scale, mean, inv_std;
  int32_t first;  // SCALE has the axes from this one on; for batch_norm only this axis
  bool channels;  // MEAN has one element for each index of axis `first`
};

// Adds `value` of each element to the element's parameter, in the order of elements, and writes the sums into `dst`.
template <class Value>
void sum_parameters(const Norm& norm, const Operand& dst, Value&& value) {
  std::vector<double> sums(static_cast<size_t>(
      std::accumulate(dst.dims().begin(), dst.dims().end(), int64_t{1}, std::multiplies<int64_t>())));
  for_each_index(norm.src.dims(), [&](const int64_t* index) {
    sums[static_cast<size_t>(row_major(dst, index + norm.first))] += value(index);
  });
  for_each_index(dst.dims(), [&](const int64_t* at) { dst.set(at, sums[static_cast<size_t>(row_major(dst, at))]); });
}

void run_norm_backward(Call& call, const Norm& norm) {
  const Operand dst = call[EP_ROLE_DST];
  const auto groups = static_cast<size_t>(
      std::accumulate(norm.mean.dims().begin(), norm.mean.dims().end(), int64_t{1}, std::multiplies<int64_t>()));
  std::vector<double> sums(groups), products(groups), counts(groups);
  const auto group_of = [&](const int64_t* index) {
    int64_t at[EP_MAX_RANK] = {};
    norm.group(index, at);
    return static_cast<size_t>(row_major(norm.mean, at));
  };
  for_each_index(dst.dims(), [&](const int64_t* index) {
    const size_t group = group_of(index);
    sums[group] += norm.scaled(index);
    products[group] += norm.scaled(index) * norm.normal(index);
    ++counts[group];
  });
  for_each_index(dst.dims(), [&](const int64_t* index) {
    const size_t group = group_of(index);
    int64_t at[EP_MAX_RANK] = {};
    norm.group(index, at);
    const double mean = sums[group] / counts[group];
    const double slope = products[group] / counts[group];
    dst.set(index, norm.inv_std.get<double>(at) * (norm.scaled(index) - mean - norm.normal(index) * slope));
  });
  sum_parameters(norm, call[EP_ROLE_SCALE_GRADIENT],
                 [&](const int64_t* index) { return norm.gradient.get<double>(index) * norm.normal(index); });
  sum_parameters(norm, call[EP_ROLE_SHIFT_GRADIENT],
                 [&](const int64_t* index) { return norm.gradient.get<double>(index); });
}

}  // namespace

void run_convolution_weight(Call& call) {
  const ep_convolution_weight_attributes& attributes = call.desc.attributes.convolution_weight;
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const Operand gradient = call[EP_ROLE_GRADIENT];
  const int64_t out_per_group = dst.dim(0) / attributes.groups;
  for_each_index(dst.dims(), [&](const int64_t* w) {
    double total = 0;
    int64_t in[EP_MAX_RANK] = {0, w[0] / out_per_group * dst.dim(1) + w[1]};
    int64_t out[EP_MAX_RANK] = {0, w[0]};
    for (out[0] = 0; out[0] < src.dim(0); ++out[0]) {
      in[0] = out[0];
      for_each_index(gradient.dims().subspan(2), [&](const int64_t* at) {
        for (int32_t i = 0; i < src.rank() - 2; ++i) {
          out[i + 2] = at[i];
          in[i + 2] = at[i] * attributes.stride[i] - attributes.pad_low[i] + w[i + 2] * attributes.dilation[i];
          if (in[i + 2] < 0 || in[i + 2] >= src.dim(i + 2)) return;
        }
        total += src.get<double>(in) * gradient.get<double>(out);
      });
    }
    dst.set(w, total);
  });
}

void run_pooling_backward(Call& call) {
  const ep_pooling_attributes& attributes = call.desc.attributes.pooling_backward;
  const Operand dst = call[EP_ROLE_DST];
  const Operand gradient = call[EP_ROLE_GRADIENT];
  const Operand indices = call[EP_ROLE_INDICES];
  const auto plane = dst.dims().subspan(2);
  const int64_t limit = std::accumulate(plane.begin(), plane.end(), int64_t{1}, std::multiplies<int64_t>());
  std::vector<double> sums(static_cast<size_t>(dst.dim(0) * dst.dim(1) * limit));
  for_each_index(gradient.dims(), [&](const int64_t* out) {
    const auto given = gradient.get<double>(out);
    if (attributes.op == EP_POOLING_MAX) {
      const auto number = indices.get<int64_t>(out);
      if (number < 0 || number >= limit)
        return call.report(EP_FAULT_INDEX_OUT_OF_RANGE, EP_ROLE_INDICES, number, limit);
      int64_t at[EP_MAX_RANK] = {out[0], out[1]};
      unravel(dst, number, at);
      sums[static_cast<size_t>(row_major(dst, at))] += given;
      return;
    }
    const int64_t count = for_each_in_window(attributes, dst, out, [](const int64_t*) {});
    for_each_in_window(attributes, dst, out, [&](const int64_t* at) {
      sums[static_cast<size_t>(row_major(dst, at))] += given / static_cast<double>(count);
    });
  });
  for_each_index(dst.dims(), [&](const int64_t* at) { dst.set(at, sums[static_cast<size_t>(row_major(dst, at))]); });
}

void run_layer_norm_backward(Call& call) {
  const int32_t axis = call.desc.attributes.layer_norm_backward.axis;
  run_norm_backward(call, Norm(call, axis, false));
}

void run_batch_norm_backward(Call& call) {
  const int32_t axis = call.desc.attributes.batch_norm_backward.axis;
  run_norm_backward(call, Norm(call, axis, true));
}

void run_batch_norm_training(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const Operand scale = call[EP_ROLE_SCALE];
  const Operand shift = call[EP_ROLE_SHIFT];
  const int32_t axis = call.desc.attributes.batch_norm_training.axis;
  const auto eps = call.parameter<double>(0);
  const auto channels = static_cast<size_t>(src.dim(axis));
  std::vector<double> means(channels), squares(channels), counts(channels);
  const auto channel_of = [&](const int64_t* index) { return static_cast<size_t>(index[axis]); };
  for_each_index(src.dims(), [&](const int64_t* index) {
    means[channel_of(index)] += src.get<double>(index);
    ++counts[channel_of(index)];
  });
  for (size_t i = 0; i < channels; ++i) means[i] /= counts[i];
  for_each_index(src.dims(), [&](const int64_t* index) {
    const double distance = src.get<double>(index) - means[channel_of(index)];
    squares[channel_of(index)] += distance * distance;
  });
  std::vector<double> inv_stds(channels);
  for (size_t i = 0; i < channels; ++i) inv_stds[i] = 1 / std::sqrt(squares[i] / counts[i] + eps);
  for_each_index(src.dims(), [&](const int64_t* index) {
    const int64_t* channel = index + axis;
    const double normal = (src.get<double>(index) - means[channel_of(index)]) * inv_stds[channel_of(index)];
    dst.set(index, normal * (scale ? scale.get<double>(channel) : 1) + (shift ? shift.get<double>(channel) : 0));
  });
  for (int64_t i = 0; i < src.dim(axis); ++i) {
    call[EP_ROLE_MEAN].set(&i, means[static_cast<size_t>(i)]);
    call[EP_ROLE_INV_STD].set(&i, inv_stds[static_cast<size_t>(i)]);
  }
}

}  // namespace tenon::reference
