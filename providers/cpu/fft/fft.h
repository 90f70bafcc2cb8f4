// fft. Three or more lines whose length has no prime factor above 13 are transformed together, one line per vector
// lane. Other lines use KissFFT one by one, in f64 for every dtype, because its f32 factors are not accurate enough.
#pragma once

#include "providers/cpu/primitive.h"
#include "sdk/provider/implementation.h"

namespace tenon::provider::cpu {

struct Fft {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
