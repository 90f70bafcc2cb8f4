// reduce and arg_reduce: several elements become one.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// reduce has two implementations. `bytes` computes any and all of bool, `simd` all else: f64 and integers in their own
// type, other floats in f32.
struct Reduce {
  static Refusal bytes_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
  static Refusal make_bytes(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                            ep_primitive_info& info);
};

struct ArgReduce {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
