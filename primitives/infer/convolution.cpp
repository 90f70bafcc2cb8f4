#include "primitives/infer/convolution.h"

#include <algorithm>

#include "primitives/infer/axis.h"
#include "primitives/text/format.h"

namespace tenon::infer {
namespace {

template <class... Parts>
Status wrong(std::string_view op, fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(Code::invalid_argument, fmt::format("{}: {}", op, fmt::format(text, parts...)));
}

Status check_window(std::string_view op, int32_t axis, int64_t stride, int64_t dilation, int64_t low, int64_t high) {
  constexpr int64_t limit = int64_t{1} << 31;
  if (stride < 1 || stride > limit)
    return wrong(op, "stride {} of spatial axis {} must be from 1 to {}.", stride, axis, limit);
  if (dilation < 1 || dilation > limit) {
    return wrong(op, "dilation {} of spatial axis {} must be from 1 to {}.", dilation, axis, limit);
  }
  if (low < 0 || high < 0 || low > limit || high > limit) {
    return wrong(op, "padding ({}, {}) of spatial axis {} must be from 0 to {}.", low, high, axis, limit);
  }
  return {};
}

// dilation * (kernel - 1) + 1, or nothing where that overflows.
std::optional<int64_t> extent_of(int64_t kernel, int64_t dilation) {
  int64_t extent = 0;
  if (__builtin_mul_overflow(dilation, kernel - 1, &extent) || extent > (int64_t{1} << 62)) return std::nullopt;
  return extent + 1;
}

// The length of one spatial axis after a convolution.
Result<int64_t> forward(std::string_view op, int32_t axis, int64_t dim, int64_t extent, int64_t stride, int64_t pads) {
  int64_t padded = 0;
  if (__builtin_add_overflow(dim, pads, &padded)) {
    return wrong(op, "spatial axis {} of length {} with padding {} is too long.", axis, dim, pads);
  }
  if (padded < extent) {
    return wrong(op, "the kernel ({} with dilation) is longer than spatial axis {} with its padding ({}).", extent,
                 axis, padded);
  }
  return (padded - extent) / stride + 1;
}

Result<int64_t> backward(std::string_view op, int32_t axis, int64_t dim, int64_t extent, int64_t stride, int64_t pads,
                         int64_t extra) {
  int64_t length = 0;
  if (__builtin_mul_overflow(dim - 1, stride, &length) || __builtin_add_overflow(length, extent - pads, &length) ||
      __builtin_add_overflow(length, extra, &length)) {
    return wrong(op, "spatial axis {} of length {} with stride {} grows too long.", axis, dim, stride);
  }
  if (length < 1) {
    return wrong(
        op, "spatial axis {} of length {} would become {} long: padding {} takes more than kernel and stride give.",
        axis, dim, length, pads);
  }
  return length;
}

// PyTorch's rule: in ceil mode a last window may stick out, but must start inside the input or its low padding.
Result<int64_t> windows(std::string_view op, int32_t axis, int64_t dim, int64_t extent, int64_t stride, int64_t low,
                        int64_t high, bool ceil_mode) {
  if (!ceil_mode) return forward(op, axis, dim, extent, stride, low + high);
  TENON_ASSIGN_OR_RETURN(int64_t length, forward(op, axis, dim, extent, stride, low + high + stride - 1));
  if ((length - 1) * stride >= dim + low) --length;
  return length;
}

Status check_channels(std::string_view op, const Dims& src, const Dims& weight, const Dims* bias,
                      const ep_convolution_attributes& attributes) {
  const int64_t groups = attributes.groups;
  const int64_t channels = src[1];
  if (groups < 1) return wrong(op, "groups is {} but must be at least 1.", groups);
  if (channels % groups != 0)
    return wrong(op, "channels of the input ({}) are not a multiple of groups ({}).", channels, groups);
  const bool transposed = attributes.transposed != 0;
  if (transposed && weight[0] != channels) {
    return wrong(op, "channels of the input ({}) do not match the first axis of the weight ({}).", channels, weight[0]);
  }
  if (!transposed && weight[1] != channels / groups) {
    return wrong(op, "channels of the input per group ({}) do not match those of the weight ({}).", channels / groups,
                 weight[1]);
  }
  if (!transposed && weight[0] % groups != 0) {
    return wrong(op, "output channels ({}) are not a multiple of groups ({}).", weight[0], groups);
  }
  int64_t out = weight[0];
  if (transposed && __builtin_mul_overflow(weight[1], groups, &out)) {
    return wrong(op, "output channels ({} times {} groups) are too many.", weight[1], groups);
  }
  if (bias != nullptr && !(*bias == Dims{out})) {
    return wrong(op, "the bias must have shape [{}], but its shape is {}.", out, *bias);
  }
  return {};
}

Status check_ranks(std::string_view op, int32_t spatial, const Dims& src) {
  if (spatial < 1 || spatial > 3) return wrong(op, "spatial rank {} is not 1, 2 or 3.", spatial);
  if (src.rank() != spatial + 2) {
    return wrong(op, "the input must have rank {} [n, c, spatial...], but its shape is {}.", spatial + 2, src);
  }
  return {};
}

}  // namespace

Result<Dims> convolution(std::string_view op, const Dims& src, const Dims& weight, const Dims* bias,
                         const ep_convolution_attributes& attributes, std::span<const int64_t> output_padding) {
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
  Dims result = {src[0], attributes.transposed ? weight[1] * attributes.groups : weight[0]};
  for (int32_t i = 0; i < spatial; ++i) {
    const int64_t stride = attributes.stride[i];
    const int64_t dilation = attributes.dilation[i];
    TENON_RETURN_IF_ERROR(check_window(op, i, stride, dilation, attributes.pad_low[i], attributes.pad_high[i]));
    const int64_t pads = attributes.pad_low[i] + attributes.pad_high[i];
    const auto extent = weight[i + 2] < 1 ? std::nullopt : extent_of(weight[i + 2], dilation);
    if (!extent) return wrong(op, "kernel length {} of spatial axis {} is not possible.", weight[i + 2], i);
    const int64_t extra = output_padding.empty() ? 0 : output_padding[static_cast<size_t>(i)];
    if (extra < 0 || (extra > 0 && extra >= std::max(stride, dilation))) {
      return wrong(op, "output padding {} of spatial axis {} must be less than stride ({}) or dilation ({}).", extra, i,
                   stride, dilation);
    }
    TENON_ASSIGN_OR_RETURN(const int64_t length, attributes.transposed
                                                     ? backward(op, i, src[i + 2], *extent, stride, pads, extra)
                                                     : forward(op, i, src[i + 2], *extent, stride, pads));
    result.push_back(length);
  }
  return checked(op, result);
}

Result<Dims> pooling(std::string_view op, const Dims& src, const ep_pooling_attributes& attributes, bool ceil_mode) {
  const int32_t spatial = attributes.spatial_rank;
  TENON_RETURN_IF_ERROR(check_ranks(op, spatial, src));
  Dims result = {src[0], src[1]};
  for (int32_t i = 0; i < spatial; ++i) {
    const int64_t stride = attributes.stride[i];
    const int64_t low = attributes.pad_low[i];
    const int64_t high = attributes.pad_high[i];
    TENON_RETURN_IF_ERROR(check_window(op, i, stride, attributes.dilation[i], low, high));
    const auto extent =
        attributes.kernel[i] < 1 ? std::nullopt : extent_of(attributes.kernel[i], attributes.dilation[i]);
    if (!extent) return wrong(op, "kernel length {} of spatial axis {} is not possible.", attributes.kernel[i], i);
    if (low >= *extent || high >= *extent) {
      return wrong(op, "padding ({}, {}) of spatial axis {} must be less than the kernel ({} with dilation).", low,
                   high, i, *extent);
    }
    TENON_ASSIGN_OR_RETURN(const int64_t length, windows(op, i, src[i + 2], *extent, stride, low, high, ceil_mode));
    result.push_back(length);
  }
  return checked(op, result);
}

void same_padding(int64_t dim, int64_t kernel, int64_t stride, int64_t dilation, bool lower, int64_t* out_low,
                  int64_t* out_high) {
  const int64_t length = (dim + stride - 1) / stride;
  const int64_t total = std::max<int64_t>((length - 1) * stride + dilation * (kernel - 1) + 1 - dim, 0);
  *out_low = lower ? total - total / 2 : total / 2;
  *out_high = total - *out_low;
}

}  // namespace tenon::infer
