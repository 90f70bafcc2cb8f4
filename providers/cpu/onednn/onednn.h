// The implementations that call oneDNN: matmul and convolution over f32, and over factors of bf16.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

struct OneDnnMatmul {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
  // True if oneDNN computes the product of bf16 but not its epilogues; the host then separates the epilogues.
  static bool is_faster_apart(const ep_device& device, const ep_primitive_desc& desc);
};

struct OneDnnConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// The same kinds over f32 under EP_PRECISION_RELAXED: a launch rounds the factors to bf16, and constant ones are packed
// as bf16. The sums, the bias, the epilogues and the result are f32.
struct RelaxedMatmul {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct RelaxedConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
