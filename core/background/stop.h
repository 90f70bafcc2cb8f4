// Calls to a provider that a CancellationScope of the calling thread may stop. Internal to the library.
#pragma once

#include <functional>
#include <string_view>

#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon {

// The answer of `call(error)`, which makes a primitive or compiles a graph; CANCELLED without a call if the calling
// thread is cancelled already.
ep_status stoppable(const std::function<ep_status(ep_error** error)>& call, ep_error** error);

// The error of a CANCELLED from stoppable, in which the provider's words are `why`. `doing`: "creating a primitive on
// cuda:0".
Status cancelled_error(const Status& why, std::string_view doing);

}  // namespace tenon
