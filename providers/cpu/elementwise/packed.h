// fill, and copy with a cast, of types narrower than a byte: i4, u4, i2, u2, f4e2m1 and the f6 types.
#pragma once

#include "providers/cpu/primitive.h"
#include "sdk/provider/implementation.h"

namespace tenon::provider::cpu {

struct PackedCopy {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
