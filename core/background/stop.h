// Calls to a provider that a CancellationScope of the calling thread may stop. Internal to the library.
#pragma once

#include <functional>
#include <string_view>

#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon {

// Returns the status of `call(error)`, which creates a primitive or compiles a graph. Returns CANCELLED without a call
// if the calling thread is already cancelled.
ep_status stoppable(const std::function<ep_status(ep_error** error)>& call, ep_error** error);

// The error for a CANCELLED status of stoppable. `why` has the provider's words; `doing` is like "creating a primitive
// on cuda:0".
Status cancelled_error(const Status& why, std::string_view doing);

}  // namespace tenon
