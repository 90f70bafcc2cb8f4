// softmax, layer_norm and batch_norm: each element of a row is scaled by statistics of that row.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// Each kind has a fast loop for f32 (and the narrow floats through it), called simd, and the same in double, called
// plain.
struct Softmax {
  static Refusal simd_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct LayerNorm {
  static Refusal simd_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct BatchNorm {
  static Refusal simd_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
