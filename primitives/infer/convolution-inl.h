// The rules of convolution.h for sizes of any type.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "ep_api/ep_api.h"
#include "primitives/infer/axis.h"
#include "primitives/infer/size.h"
#include "primitives/infer/wrong.h"

namespace tenon::infer {

template <class T>
Status check_window(std::string_view op, int32_t axis, int64_t stride, int64_t dilation, T low, T high) {
  constexpr int64_t limit = int64_t{1} << 31;
  if (stride < 1 || stride > limit)
    return wrong(op, "stride {} of spatial axis {} must be from 1 to {}.", stride, axis, limit);
  if (dilation < 1 || dilation > limit) {
    return wrong(op, "dilation {} of spatial axis {} must be from 1 to {}.", dilation, axis, limit);
  }
  if (!(expect(low >= 0) && expect(high >= 0) && expect(low <= limit) && expect(high <= limit))) {
    return wrong(op, "padding ({}, {}) of spatial axis {} must be from 0 to {}.", low, high, axis, limit);
  }
  return {};
}

// dilation * (kernel - 1) + 1; nothing if that overflows.
template <class T>
std::optional<T> extent_of(T kernel, int64_t dilation) {
  T extent = 0;
  if (mul_overflows(T(dilation), kernel - 1, &extent) || !expect(extent - 1 <= (int64_t{1} << 62) - 1))
    return std::nullopt;
  return extent + 1;
}

// The length of one spatial axis after a convolution.
template <class T>
Result<T> forward(std::string_view op, int32_t axis, T dim, T extent, int64_t stride, T pads) {
  T padded = 0;
  if (add_overflows(dim, pads, &padded)) {
    return wrong(op, "spatial axis {} of length {} with padding {} is too long.", axis, dim, pads);
  }
  if (!expect(padded >= extent)) {
    return wrong(op, "the kernel ({} with dilation) is longer than spatial axis {} with its padding ({}).", extent,
                 axis, padded);
  }
  return floor_div(padded - extent, T(stride)) + 1;
}

template <class T>
Result<T> backward(std::string_view op, int32_t axis, T dim, T extent, int64_t stride, T pads, int64_t extra) {
  T length = 0;
  if (mul_overflows(dim - 1, T(stride), &length) || add_overflows(length, extent - pads, &length) ||
      add_overflows(length, T(extra), &length)) {
    return wrong(op, "spatial axis {} of length {} with stride {} grows too long.", axis, dim, stride);
  }
  if (!expect(length >= 1)) {
    return wrong(
        op, "spatial axis {} of length {} would become {} long: padding {} takes more than kernel and stride give.",
        axis, dim, length, pads);
  }
  return length;
}

// PyTorch's rule: in ceil mode the last window may exceed the input, but must start inside the input or its low
// padding.
template <class T>
Result<T> windows(std::string_view op, int32_t axis, T dim, T extent, int64_t stride, T low, T high, bool ceil_mode) {
  if (!ceil_mode) return forward<T>(op, axis, dim, extent, stride, low + high);
  TENON_ASSIGN_OR_RETURN(const T length, forward<T>(op, axis, dim, extent, stride, low + high + (stride - 1)));
  return min_size(length, ceil_div(dim + low, T(stride)));
}

template <class T>
Status check_channels(std::string_view op, const BasicDims<T>& src, const BasicDims<T>& weight,
                      const BasicDims<T>* bias, const ep_convolution_attributes& attributes) {
  const int64_t groups = attributes.groups;
  const T channels = src[1];
  if (groups < 1) return wrong(op, "groups is {} but must be at least 1.", groups);
  if (!expect(modulo(channels, T(groups)) == 0))
    return wrong(op, "channels of the input ({}) are not a multiple of groups ({}).", channels, groups);
  const bool transposed = attributes.transposed != 0;
  if (transposed && !expect(weight[0] == channels)) {
    return wrong(op, "channels of the input ({}) do not match the first axis of the weight ({}).", channels, weight[0]);
  }
  const T per_group = floor_div(channels, T(groups));
  if (!transposed && !expect(weight[1] == per_group)) {
    return wrong(op, "channels of the input per group ({}) do not match those of the weight ({}).", per_group,
                 weight[1]);
  }
  if (!transposed && !expect(modulo(weight[0], T(groups)) == 0)) {
    return wrong(op, "output channels ({}) are not a multiple of groups ({}).", weight[0], groups);
  }
  T out = weight[0];
  if (transposed && mul_overflows(weight[1], T(groups), &out)) {
    return wrong(op, "output channels ({} times {} groups) are too many.", weight[1], groups);
  }
  if (bias != nullptr && !(bias->rank() == 1 && expect((*bias)[0] == out))) {
    return wrong(op, "the bias must have shape [{}], but its shape is {}.", out, *bias);
  }
  return {};
}

template <class T>
Status check_ranks(std::string_view op, int32_t spatial, const BasicDims<T>& src) {
  if (spatial < 1 || spatial > 3) return wrong(op, "spatial rank {} is not 1, 2 or 3.", spatial);
  if (src.rank() != spatial + 2) {
    return wrong(op, "the input must have rank {} [n, c, spatial...], but its shape is {}.", spatial + 2, src);
  }
  return {};
}

// The padding is a separate argument, since it may be an expression while the numbers in `attributes` are constants.
template <class T>
Result<BasicDims<T>> convolution(std::string_view op, const BasicDims<T>& src, const BasicDims<T>& weight,
                                 const BasicDims<T>* bias, const ep_convolution_attributes& attributes,
                                 std::span<const T> pad_low, std::span<const T> pad_high,
                                 std::span<const int64_t> output_padding) {
  const int32_t spatial = attributes.spatial_rank;
  TENON_RETURN_IF_ERROR(check_ranks(op, spatial, src));
  if (weight.rank() != src.rank()) {
    return wrong(op, "the weight must have rank {} as the input, but its shape is {}.", src.rank(), weight);
  }
  TENON_RETURN_IF_ERROR(check_channels(op, src, weight, bias, attributes));
  if (!output_padding.empty() &&
      (attributes.transposed == 0 || output_padding.size() != static_cast<size_t>(spatial))) {
    return wrong(op, "output padding has {} numbers; it is for transposed convolutions, one per spatial axis ({}).",
                 output_padding.size(), spatial);
  }
  BasicDims<T> result = {src[0], attributes.transposed ? weight[1] * attributes.groups : weight[0]};
  for (int32_t i = 0; i < spatial; ++i) {
    const int64_t stride = attributes.stride[i];
    const int64_t dilation = attributes.dilation[i];
    const auto at = static_cast<size_t>(i);
    TENON_RETURN_IF_ERROR(check_window<T>(op, i, stride, dilation, pad_low[at], pad_high[at]));
    const T pads = pad_low[at] + pad_high[at];
    const auto extent = expect(weight[i + 2] >= 1) ? extent_of<T>(weight[i + 2], dilation) : std::nullopt;
    if (!extent) return wrong(op, "kernel length {} of spatial axis {} is not possible.", weight[i + 2], i);
    const int64_t extra = output_padding.empty() ? 0 : output_padding[at];
    if (extra < 0 || (extra > 0 && extra >= std::max(stride, dilation))) {
      return wrong(op, "output padding {} of spatial axis {} must be less than stride ({}) or dilation ({}).", extra, i,
                   stride, dilation);
    }
    TENON_ASSIGN_OR_RETURN(const T length, attributes.transposed
                                               ? backward<T>(op, i, src[i + 2], *extent, stride, pads, extra)
                                               : forward<T>(op, i, src[i + 2], *extent, stride, pads));
    result.push_back(length);
  }
  return checked(op, result);
}

template <class T>
Result<BasicDims<T>> pooling(std::string_view op, const BasicDims<T>& src, const ep_pooling_attributes& attributes,
                             std::span<const T> pad_low, std::span<const T> pad_high, bool ceil_mode) {
  const int32_t spatial = attributes.spatial_rank;
  TENON_RETURN_IF_ERROR(check_ranks(op, spatial, src));
  BasicDims<T> result = {src[0], src[1]};
  for (int32_t i = 0; i < spatial; ++i) {
    const int64_t stride = attributes.stride[i];
    const T low = pad_low[static_cast<size_t>(i)];
    const T high = pad_high[static_cast<size_t>(i)];
    TENON_RETURN_IF_ERROR(check_window<T>(op, i, stride, attributes.dilation[i], low, high));
    const auto extent =
        attributes.kernel[i] < 1 ? std::nullopt : extent_of<int64_t>(attributes.kernel[i], attributes.dilation[i]);
    if (!extent) return wrong(op, "kernel length {} of spatial axis {} is not possible.", attributes.kernel[i], i);
    if (!(expect(low < *extent) && expect(high < *extent))) {
      return wrong(op, "padding ({}, {}) of spatial axis {} must be less than the kernel ({} with dilation).", low,
                   high, i, *extent);
    }
    TENON_ASSIGN_OR_RETURN(const T length, windows<T>(op, i, src[i + 2], *extent, stride, low, high, ceil_mode));
    result.push_back(length);
  }
  return checked(op, result);
}

template <class T>
void same_padding(T dim, int64_t kernel, int64_t stride, int64_t dilation, bool lower, T* out_low, T* out_high) {
  const T length = ceil_div(dim, T(stride));
  const T total = max_size((length - 1) * stride + (dilation * (kernel - 1) + 1) - dim, T(0));
  const T less = floor_div(total, T(2));
  *out_low = lower ? total - less : less;
  *out_high = total - *out_low;
}

}  // namespace tenon::infer
