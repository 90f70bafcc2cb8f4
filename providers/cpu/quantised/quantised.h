// Quantised operands: 8-bit integers that represent real numbers ("Quantisation" in ep_api.h).
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// matmul, and convolution of one group: products of bytes, summed in i32.
struct QuantisedMatmul {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};
struct QuantisedConvolution {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// matmul of f32 by a constant matrix of 4-bit or 8-bit integers.
struct QuantisedWeights {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// quantise, dequantise and binary, element by element.
struct QuantisedElements {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
