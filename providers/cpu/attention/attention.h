// The implementations of attention and rotary.
#pragma once

#include "providers/cpu/device.h"
#include "sdk/provider/implementation.h"

namespace tenon::provider::cpu {

// `relaxed` rounds factors of f32 to bf16.
struct Attention {
  static Refusal relaxed_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal relaxed_make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                              ep_primitive_info& info);
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct Rotary {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
