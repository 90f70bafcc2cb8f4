// The gradient of a convolution with respect to its weights.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// `product` serves f32 and `f64` f64. `lanes`, without a prefix here, serves every float, any strides and open dims.
struct WeightGradient {
  static Refusal product_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal product_make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                              ep_primitive_info& info);
  static Refusal f64_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal f64_make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                          ep_primitive_info& info);
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
