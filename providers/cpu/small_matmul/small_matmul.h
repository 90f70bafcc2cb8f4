// Small products, for which the overhead of other implementations exceeds the time of the product.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// matmul over f32 on one thread with at most 64 x 64 x 64 multiplications. The columns of SRC_B, BIAS and DST are
// contiguous.
struct SmallMatmul {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// matmul of a batch of small matrices over every dtype. Narrow types are widened, several matrices at a time.
struct BatchMatmul {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
