// Convolutions over f32, most with channels last, and products by a constant matrix, on kernels of our own.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// One group, 1 or 2 spatial dims. A weight that may change, and a transposed convolution of stride 1, go by Winograd
// only.
struct ChannelsLastConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// matmul by a matrix that never changes: a convolution of one pixel per row.
struct PackedMatmul {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// One group, 1 or 2 spatial dims, the stride that of the kernel, and weights that never change.
struct TransposedConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// As many groups as channels, each with one result, 1 or 2 spatial dims.
struct DepthwiseConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// The same with channels first, and a stride of 1 or 2 along rows.
struct DepthwisePlanes {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// One group, one spatial dim with channels first, stride 1, and weights that the L2 cache holds.
struct LineConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// One image, one group, 1 or 2 spatial dims with channels first, few pixels of results, and a large weight that may
// change.
struct PixelConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
