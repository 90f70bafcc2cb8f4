// Products so small that the way to oneDNN's kernel, and its packing, take longer than they do.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// matmul over f32 on one thread, at most 64 x 64 x 64 multiplications in all, with SRC_B, BIAS and DST read and written
// along their rows.
struct SmallMatmul {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
