// How a long launch stops where the host wants it to (ep_host.cancel_requested).
#pragma once

#include "ep_api/ep_api.h"

namespace tenon::provider::cpu {

// The host that stop_if_wanted asks on this thread; null: none.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local const ep_host* asked_host;

// Every call of the host that may use several threads begins with one of these: a call that may answer CANCELLED, or
// one that may not. Nothing is undone at the end of the call, since each instruction of a short launch counts.
inline void begin_stoppable(const ep_host* host) { asked_host = host; }
inline void begin_unstoppable() { asked_host = nullptr; }

// Throws Stopped if the host wants the calling thread's call to stop. It asks the host every 20 milliseconds at most,
// and never within a region, whose other threads would go on. So it may be called often, but it reads the clock.
void stop_if_wanted();

}  // namespace tenon::provider::cpu
