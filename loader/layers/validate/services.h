// The host's services with checks in front of them, which find a provider that breaks the rules. Services return no
// status, so a broken rule is only logged. A block that is released wrongly is leaked, so that it is not freed twice.
#pragma once

#include "ep_api/ep_api.h"
#include "loader/host/host.h"

namespace tenon::loader {

// A table in front of `host`'s own. It stays valid forever, so that calls after shutdown are detected.
const ep_host* validate_services(const HostServices& host);
// cancel_was_requested: true if cancel_requested returned 1 on this thread since the last begin_stoppable_call.
void begin_stoppable_call();
bool cancel_was_requested();

// Call this when the provider's shutdown has returned. NULL is allowed.
void end_validated_services(const ep_host* table);

}  // namespace tenon::loader
