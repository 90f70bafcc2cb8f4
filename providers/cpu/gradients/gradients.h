// What training needs: batch_norm with the statistics of its batch, and the gradients of convolution (with respect to
// the weights), pooling and the norms.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// `onednn` is oneDNN's own over f32, of one group. `gemm` multiplies matrices of f32 with oneDNN. `plain` serves other
// types and groups of few channels.
struct ConvolutionWeight {
  static Refusal onednn_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal onednn_make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                             ep_primitive_info& info);
  static Refusal gemm_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal gemm_make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                           ep_primitive_info& info);
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct PoolingBackward {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct LayerNormBackward {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// Both batch_norm_training and batch_norm_backward.
struct BatchNormTraining {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cpu
