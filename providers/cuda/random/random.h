// random: uniform and normal numbers, and random bits, from Philox4x32-10.
#pragma once

#include "providers/cuda/primitive.h"

namespace tenon::provider::cuda {

struct Random {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cuda
