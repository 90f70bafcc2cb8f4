// reduce and softmax.
#pragma once

#include "providers/cuda/primitive.h"
#include "providers/cuda/rows/axes.h"

namespace tenon::provider::cuda {

// How a reduction of `kept` values over `reduced` elements each is cut. Decided by the shape and the device alone, so
// that the same reduction gives the same bits each time.
struct ReducePlan {
  Team team = Team::BLOCK;
  int64_t parts = 1;
  int64_t part_length = 0;
};
ReducePlan plan_reduce(const AxisSet& kept, const AxisSet& reduced, int64_t processors);

// Which kernel takes softmax of rows of `length`: "warp_held", "warp_held_long", "block_held",
// "block_held_long", or a team's name.
struct SoftmaxPlan {
  Team team = Team::BLOCK;
  const char* kernel = "block";
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
