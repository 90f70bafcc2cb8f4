// Convolutions over f32, most with channels last, products by a constant matrix, and convolutions over f64, on kernels
// of our own.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// One group, 1 or 2 spatial dims. If the weight is not constant, or the convolution is transposed with stride 1, only
// Winograd's method serves it.
struct ChannelsLastConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// matmul by a constant matrix: a convolution with one pixel per row.
struct PackedMatmul {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// One group, 1 or 2 spatial dims, a stride equal to the kernel size, and constant weights.
struct TransposedConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// Depthwise: as many groups as channels, each with one result; 1 or 2 spatial dims.
struct DepthwiseConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// Depthwise with channels first, and a stride of 1 or 2 along rows.
struct DepthwisePlanes {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// One group, one spatial dim with channels first, stride 1, and weights that fit in the L2 cache.
struct LineConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// One image, one group, 1 or 2 spatial dims with channels first, few result pixels, and a large weight that is not
// constant.
struct PixelConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// Every convolution over f64, with operands of any strides.
struct F64Convolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
