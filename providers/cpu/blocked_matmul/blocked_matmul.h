// matmul of any dtype and strides, on vectors.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// Floats narrower than f64 are computed in f32, f64 in f64, integers modulo the range of the result.
struct BlockedMatmul {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
