// The host's services with checks in front: how a provider uses what it is given. Nothing can be answered there, so
// that a broken rule is a line of the log; a block that is given back wrongly is kept rather than freed twice.
#pragma once

#include "ep_api/ep_api.h"
#include "loader/host/host.h"

namespace tenon::loader {

// A table in front of `host`'s own. It stays valid for ever, so that a call after shutdown is found out.
const ep_host* validate_services(const HostServices& host);
// The provider's shutdown has returned. Null is fine.
void end_validated_services(const ep_host* table);

}  // namespace tenon::loader
