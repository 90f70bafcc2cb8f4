// The host's services with checks in front of them: does the provider use them as the rules say? Services have no
// answer for a broken rule, so it is only a line of the log. A block that is released wrongly is kept rather than freed
// twice.
#pragma once

#include "ep_api/ep_api.h"
#include "loader/host/host.h"

namespace tenon::loader {

// A table in front of `host`'s own. It stays valid for ever, so that a call after shutdown is found out.
const ep_host* validate_services(const HostServices& host);
// Whether cancel_requested has said 1 on the calling thread since the last begin_stoppable_call.
void begin_stoppable_call();
bool cancel_was_requested();

// To be called when the provider's shutdown has returned. Null is fine.
void end_validated_services(const ep_host* table);

}  // namespace tenon::loader
