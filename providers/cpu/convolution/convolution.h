// Convolutions with channels last over f32, on kernels of our own.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// One group, 1 or 2 spatial dims.
struct ChannelsLastConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// As many groups as channels, each with one result, 1 or 2 spatial dims.
struct DepthwiseConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
