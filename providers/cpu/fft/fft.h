// fft. Lines of a length without a large prime factor are transformed together, one line per vector lane, if there are
// enough of them. Other lines are transformed one by one. f16 and bf16 compute in f32.
#pragma once

#include "providers/cpu/primitive.h"
#include "sdk/provider/implementation.h"

namespace tenon::provider::cpu {

struct Fft {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
