// fft. Three lines or more of a length without prime factors above 13 are transformed side by side, a line in each lane
// of a vector. Others go one by one through KissFFT, in f64 whatever the dtype: its factors in f32 are off by more than
// a step.
#pragma once

#include "providers/cpu/primitive.h"
#include "sdk/provider/implementation.h"

namespace tenon::provider::cpu {

struct Fft {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
