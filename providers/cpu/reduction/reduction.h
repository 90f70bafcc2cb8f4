// reduce and arg_reduce: several elements become one.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// reduce has three implementations. `bytes` computes any and all of bool. `simd`, of both kinds, works on f32 and on
// narrow floats widened to f32. `plain` works on every type and sums floats in double. `simd` and `plain` share one
// make().
struct Reduce {
  static Refusal bytes_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal simd_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
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
