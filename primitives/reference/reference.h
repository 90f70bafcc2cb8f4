// Computes each primitive slowly and simply in host memory: in double precision for floating types (rounded once, at
// the end), in exact wrapping integers, with faults reported. For tests and the conformance kit; no provider contains
// it.
#pragma once

#include <cstdint>

#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon::reference {

// Runs `desc`, which must have static dims and pass check_descriptor. `operands` holds the host address of element 0 of
// each operand, in the descriptor's order (null for scalars). `scalars` holds the launch scalars; baked scalars come
// from `desc`. For bad data a kernel writes 0 to that element and continues; it fills `*fault` (if not null) with the
// first fault and returns Code::fault.
Status run(const ep_primitive_desc& desc, void* const* operands, const ep_scalar* scalars, uint32_t scalar_count,
           ep_fault* fault);

}  // namespace tenon::reference
