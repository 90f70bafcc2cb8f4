// Loops for the types and cases oneDNN refuses, and pooling.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

struct PlainMatmul {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct PlainConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// Row by row of the result, which the compiler turns into vectors for f32 (simd); plain for other types and with
// indices.
struct Pooling {
  static Refusal simd_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
