// The kind pooling: maximum, with or without positions, average, and norms of windows.
#pragma once

#include "providers/cuda/primitive.h"

namespace tenon::provider::cuda {

struct Pooling {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// Sums over the windows that contain an element. An index that points outside its window therefore adds nothing.
struct PoolingBackward {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cuda
