// fill, copy, unary, binary, ternary.
#pragma once

#include "providers/cuda/elementwise/map.h"

namespace tenon::provider::cuda {

struct Planned {
  MapPlan plan;
  Refusal refusal;
};

// Plans a descriptor of an element-wise kind, or refuses it. Pure.
Planned plan_elementwise(const ep_primitive_desc& desc);

// Finds the kernel of `plan`. The device's context is current.
Refusal make_map(ep_device& device, const MapPlan& plan, Map* out);

struct Elementwise {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cuda
