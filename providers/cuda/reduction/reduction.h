// reduce and softmax.
#pragma once

#include "providers/cuda/primitive.h"
#include "providers/cuda/reduction/axes.h"

namespace tenon::provider::cuda {

// How a reduction of `kept` values over `reduced` elements each is cut. Decided by the shape and the device alone, so
// that the same reduction gives the same bits each time.
struct ReducePlan {
  Team team = Team::BLOCK;
  int64_t parts = 1;
  int64_t part_length = 0;
};
ReducePlan plan_reduce(const AxisSet& kept, const AxisSet& reduced, int64_t processors);

// The kernels of softmax: for any rows, then those that hold a contiguous row of f32 or narrower in registers.
enum class SoftmaxKernel : size_t { SOLO, WARP, BLOCK, WARP_HELD, WARP_HELD_LONG, BLOCK_HELD, BLOCK_HELD_LONG };
inline constexpr size_t softmax_kernels = static_cast<size_t>(SoftmaxKernel::BLOCK_HELD_LONG) + 1;
inline constexpr size_t softmax_kernels_f64 = static_cast<size_t>(SoftmaxKernel::BLOCK) + 1;  // the first of them

// Which of them takes rows of `length`.
struct SoftmaxPlan {
  Team team = Team::BLOCK;
  SoftmaxKernel kernel = SoftmaxKernel::BLOCK;
};
SoftmaxPlan plan_softmax(int64_t length, bool contiguous, bool is_f64);

struct Reduce {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct Softmax {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cuda
