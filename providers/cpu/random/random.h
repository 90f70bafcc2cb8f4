// random: uniform and normal random numbers from Philox4x32-10.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

struct Random {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
