#include "providers/cpu/threads/stop.h"

#include "providers/cpu/threads/clock.h"
#include "providers/cpu/threads/team.h"
#include "sdk/provider/error.h"

namespace tenon::provider::cpu {

constinit thread_local const ep_host* asked_host = nullptr;

void stop_if_wanted() {
  constexpr int64_t interval = 20'000'000;
  thread_local int64_t last = 0;
  if (asked_host == nullptr || Team::is_in_region()) return;
  const int64_t time = now();
  if (time - last < interval) return;
  last = time;
  if (wants_to_stop(asked_host)) throw Stopped();
}

}  // namespace tenon::provider::cpu
