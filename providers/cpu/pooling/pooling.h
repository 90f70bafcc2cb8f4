// pooling over every dtype. oneDNN is not used, because its maximum drops NaN.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// `simd` computes maxima, with or without positions, averages, and the norms of power 1 and 2. `plain` serves the norms
// of other powers.
struct Pooling {
  static Refusal simd_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
