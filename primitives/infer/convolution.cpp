#include "primitives/infer/convolution.h"

#include <algorithm>

#include "primitives/infer/axis.h"
#include "primitives/status/sentence.h"

namespace tenon::infer {
namespace {

template <class... Parts>
Status wrong(std::string_view op, const Parts&... parts) {
  return Status(Code::invalid_argument, sentence(op, ": ", parts...));
}

Status check_window(std::string_view op, int32_t axis, int64_t stride, int64_t dilation, int64_t low, int64_t high) {
  constexpr int64_t limit = int64_t{1} << 31;
  if (stride < 1 || stride > limit)
    return wrong(op, "stride ", stride, " of spatial axis ", axis, " must be from 1 to ", limit, ".");
  if (dilation < 1 || dilation > limit) {
    return wrong(op, "dilation ", dilation, " of spatial axis ", axis, " must be from 1 to ", limit, ".");
  }
  if (low < 0 || high < 0 || low > limit || high > limit) {
    return wrong(op, "padding (", low, ", ", high, ") of spatial axis ", axis, " must be from 0 to ", limit, ".");
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
    return wrong(op, "spatial axis ", axis, " of length ", dim, " with padding ", pads, " is too long.");
  }
  if (padded < extent) {
    return wrong(op, "the kernel (", extent, " with dilation) is longer than spatial axis ", axis,
                 " with its padding (", padded, ").");
  }
  return (padded - extent) / stride + 1;
}

Result<int64_t> backward(std::string_view op, int32_t axis, int64_t dim, int64_t extent, int64_t stride, int64_t pads,
                         int64_t extra) {
  int64_t length = 0;
  if (__builtin_mul_overflow(dim - 1, stride, &length) || __builtin_add_overflow(length, extent - pads, &length) ||
      __builtin_add_overflow(length, extra, &length)) {
    return wrong(op, "spatial axis ", axis, " of length ", dim, " with stride ", stride, " grows too long.");
  }
  if (length < 1) {
    return wrong(op, "spatial axis ", axis, " of length ", dim, " would become ", length, " long: padding ", pads,
                 " takes more than kernel and stride give.");
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
  if (groups < 1) return wrong(op, "groups is ", groups, " but must be at least 1.");
  if (channels % groups != 0)
    return wrong(op, "channels of the input (", channels, ") are not a multiple of groups (", groups, ").");
  const bool transposed = attributes.transposed != 0;
  if (transposed && weight[0] != channels) {
    return wrong(op, "channels of the input (", channels, ") do not match the first axis of the weight (", weight[0],
                 ").");
  }
  if (!transposed && weight[1] != channels / groups) {
    return wrong(op, "channels of the input per group (", channels / groups, ") do not match those of the weight (",
                 weight[1], ").");
  }
  if (!transposed && weight[0] % groups != 0) {
    return wrong(op, "output channels (", weight[0], ") are not a multiple of groups (", groups, ").");
  }
  int64_t out = weight[0];
  if (transposed && __builtin_mul_overflow(weight[1], groups, &out)) {
    return wrong(op, "output channels (", weight[1], " times ", groups, " groups) are too many.");
  }
  if (bias != nullptr && !(*bias == Dims{out})) {
    return wrong(op, "the bias must have shape [", out, "], but its shape is ", *bias, ".");
  }
  return {};
}

Status check_ranks(std::string_view op, int32_t spatial, const Dims& src) {
  if (spatial < 1 || spatial > 3) return wrong(op, "spatial rank ", spatial, " is not 1, 2 or 3.");
  if (src.rank() != spatial + 2) {
    return wrong(op, "the input must have rank ", spatial + 2, " [n, c, spatial...], but its shape is ", src, ".");
  }
  return {};
}

}  // namespace

Result<Dims> convolution(std::string_view op, const Dims& src, const Dims& weight, const Dims* bias,
                         const ep_convolution_attributes& attributes, std::span<const int64_t> output_padding) {
  const int32_t spatial = attributes.spatial_rank;
  TENON_RETURN_IF_ERROR(check_ranks(op, spatial, src));
  if (weight.rank() != src.rank()) {
    return wrong(op, "the weight must have rank ", src.rank(), " as the input, but its shape is ", weight, ".");
  }
  TENON_RETURN_IF_ERROR(check_channels(op, src, weight, bias, attributes));
  if (!output_padding.empty() &&
      (attributes.transposed == 0 || output_padding.size() != static_cast<size_t>(spatial))) {
    return wrong(op, "output padding has ", output_padding.size(),
                 " numbers; it is for transposed convolutions, one per spatial axis (", spatial, ").");
  }
  Dims result = {src[0], attributes.transposed ? weight[1] * attributes.groups : weight[0]};
  for (int32_t i = 0; i < spatial; ++i) {
    const int64_t stride = attributes.stride[i];
    const int64_t dilation = attributes.dilation[i];
    TENON_RETURN_IF_ERROR(check_window(op, i, stride, dilation, attributes.pad_low[i], attributes.pad_high[i]));
    const int64_t pads = attributes.pad_low[i] + attributes.pad_high[i];
    const auto extent = weight[i + 2] < 1 ? std::nullopt : extent_of(weight[i + 2], dilation);
    if (!extent) return wrong(op, "kernel length ", weight[i + 2], " of spatial axis ", i, " is not possible.");
    const int64_t extra = output_padding.empty() ? 0 : output_padding[static_cast<size_t>(i)];
    if (extra < 0 || (extra > 0 && extra >= std::max(stride, dilation))) {
      return wrong(op, "output padding ", extra, " of spatial axis ", i, " must be less than stride (", stride,
                   ") or dilation (", dilation, ").");
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
    if (!extent) return wrong(op, "kernel length ", attributes.kernel[i], " of spatial axis ", i, " is not possible.");
    if (low >= *extent || high >= *extent) {
      return wrong(op, "padding (", low, ", ", high, ") of spatial axis ", i, " must be less than the kernel (",
                   *extent, " with dilation).");
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
