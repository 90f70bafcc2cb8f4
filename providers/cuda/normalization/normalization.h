// Kinds that normalise: layer_norm, rms_norm and group_norm of rows, and batch_norm with given statistics.
#pragma once

#include "providers/cuda/reduction/reduction.h"

namespace tenon::provider::cuda {

// The kernels for norms of rows. WARP and BLOCK take any row; the others hold a contiguous row of f32 or a narrower
// float in registers. MOMENTS and then PARTS hold the pieces of a longer row one after the other.
enum class NormKernel : size_t { WARP, BLOCK, WARP_HELD, WARP_HELD_LONG, BLOCK_HELD, BLOCK_HELD_LONG, MOMENTS, PARTS };
inline constexpr size_t norm_kernels = static_cast<size_t>(NormKernel::PARTS) + 1;
inline constexpr size_t norm_kernels_f64 = static_cast<size_t>(NormKernel::BLOCK) + 1;  // f64 has only the first two

// The kernel for rows of `length`. If it is PARTS, MOMENTS runs before it, and each row is cut into `parts`.
struct NormPlan {
  Team team = Team::BLOCK;
  NormKernel kernel = NormKernel::BLOCK;
  int64_t parts = 1;
  int64_t part_length = 0;
};
NormPlan plan_norm(int64_t length, bool may_be_held);

// layer_norm, rms_norm, group_norm.
struct Norm {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct BatchNorm {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct LayerNormBackward {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// batch_norm with the statistics of its own batch.
struct BatchNormTraining {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct BatchNormBackward {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cuda
