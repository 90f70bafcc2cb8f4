// softmax and the norms: each element is scaled by statistics of its row or channel.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// Narrow floats are widened to f32. The softmax of f64 on the baseline is computed element by element, and called
// `plain`.
struct Softmax {
  static Refusal simd_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// Serves layer_norm and rms_norm.
struct LayerNorm {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct GroupNorm {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct BatchNorm {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
