// What a launch answered, as a Status. Internal.
#pragma once

#include <string_view>

#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon {

// The fault of a kernel of `op`: "gather: index 7 of operand 2 is outside [-5, 5)."
Status fault_status(std::string_view op, const ep_fault& fault);

// The failure `code` of a launch; `fault` tells more where it is EP_STATUS_FAULT. Releases `error`.
Status launch_status(ep_status code, std::string_view op, const ep_fault& fault, ep_error* error);

}  // namespace tenon
