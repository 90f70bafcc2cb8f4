// Runs a primitive over copies of its operands: dense, and of a wider type. An implementation over f32 then also serves
// narrower floats, and one over dense operands serves all strides.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// Uses the first implementation that its list has before this one and that supports the copied operands. Refuses if the
// operands need no copy.
struct Widened {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
