// Handles demands of precision above the tier that the device states.
#pragma once

#include "ep_api/ep_api.h"
#include "providers/opencl/driver/describe.h"

namespace tenon::provider::opencl {

// True if the kernels for `desc` meet its EP_PRECISION_PORTABLE or EP_PRECISION_FULL although the device states a lower
// tier. f64 is stated as portable only because of a few device functions; everything else in f64 has tier full.
bool keeps_demand(const PhysicalDevice& device, const ep_primitive_desc& desc);

}  // namespace tenon::provider::opencl
