// recurrent: one product for all inputs, then step after step. f16 and bf16 compute in f32. `relaxed` rounds inputs,
// states and weights of f32 to bf16.
#pragma once

#include "providers/cpu/primitive.h"
#include "sdk/provider/implementation.h"

namespace tenon::provider::cpu {

struct Recurrent {
  static Refusal relaxed_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal relaxed_make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                              ep_primitive_info& info);
  static Refusal simd_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
