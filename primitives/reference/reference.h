// Computes each primitive slowly and plainly on host memory: double precision for floating types (rounded
// once, at the end), exact wrapping integers, faults reported. For tests and for the conformance kit; no provider
// contains it.
#pragma once

#include <cstdint>

#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon::reference {

// Runs `desc`, which must have static dims and pass check_descriptor. `operands` holds the host
// address of element 0 of each operand, in the descriptor's order (null for scalars). `scalars` holds the launch
// scalars; baked ones come from `desc`. A kernel that meets bad data writes 0 for that element and goes on; it fills
// `*fault` (if not null) with the first fault and returns Code::fault.
Status run(const ep_primitive_desc& desc, void* const* operands, const ep_scalar* scalars, uint32_t scalar_count,
           ep_fault* fault);

}  // namespace tenon::reference
