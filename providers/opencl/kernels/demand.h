// Demands of precision above the tier that the device states.
#pragma once

#include "ep_api/ep_api.h"
#include "providers/opencl/driver/describe.h"

namespace tenon::provider::opencl {

// True if the kernels for `desc` keep its EP_PRECISION_RELAXED or EP_PRECISION_FULL, though the device states less. f64
// is stated as relaxed for the sake of a few functions of the device; everything else on f64 keeps tier full.
bool keeps_demand(const PhysicalDevice& device, const ep_primitive_desc& desc);

}  // namespace tenon::provider::opencl
