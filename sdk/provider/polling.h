// poll_until: a wait with a timeout, for devices that can only be polled.
//
//   ep_status event_host_wait(ep_event* event, uint64_t timeout_ns, ep_error** error) {
//     const ep_status status = poll_until(timeout_ns, [&] { return event_query(event, error); });
//     if (status != EP_STATUS_TIMEOUT) return status;
//     return fail(host, error, EP_STATUS_TIMEOUT, "The event has not fired within %llu ns.", ...);
//   }
//
// Most waits on a device are shorter than waking a thread takes, so the thread first polls without sleeping and only
// yields its processor between two polls. Then it sleeps between two polls for a share of the time waited so far, from
// 20 microseconds to a millisecond. So a wait ends late by at most this share, and a long wait costs almost nothing. A
// Pace sets the length of the first phase and the share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "ep_api/ep_api.h"

namespace tenon::provider {

// The clock of a wait. Tests use a simulated one.
struct PollingClock {
  // Nanoseconds since a fixed point in time.
  static uint64_t now() {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
  }
  static void yield() { std::this_thread::yield(); }
  static void sleep(uint64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }
};

struct Pace {
  uint64_t in_a_row_ns;  // how long to poll without sleeping
  uint64_t share;        // a sleep is 1 / share of the time waited so far
};

// For devices whose work runs on the host's processors: the waiting thread leaves them free.
inline constexpr Pace sparing_pace{50'000, 8};
// For devices with their own processors, where every microsecond of latency counts: polls without sleeping for at most
// 20 ms.
inline constexpr Pace eager_pace{20'000'000, 128};

// Calls ask() until it returns something other than EP_STATUS_BUSY, and returns that. Returns EP_STATUS_TIMEOUT if
// `timeout_ns` (UINT64_MAX: no limit) passes first. Calls ask() at least once, and once more after the last sleep.
template <class Clock = PollingClock, class Ask>
ep_status poll_until(uint64_t timeout_ns, const Ask& ask, Pace pace = sparing_pace, Clock clock = Clock()) {
  constexpr uint64_t least_sleep_ns = 20'000;
  constexpr uint64_t most_sleep_ns = 1'000'000;
  const uint64_t start = clock.now();
  while (true) {
    const ep_status status = ask();
    if (status != EP_STATUS_BUSY) return status;
    const uint64_t waited = clock.now() - start;
    if (waited >= timeout_ns) return EP_STATUS_TIMEOUT;
    if (waited < pace.in_a_row_ns) {
      clock.yield();
    } else {
      clock.sleep(std::min(std::clamp(waited / pace.share, least_sleep_ns, most_sleep_ns), timeout_ns - waited));
    }
  }
}

}  // namespace tenon::provider
