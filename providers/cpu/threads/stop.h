// How a long launch stops where the host wants it to (ep_host.cancel_requested).
#pragma once

#include "ep_api/ep_api.h"

namespace tenon::provider::cpu {

// While it lives, the calling thread is in a call of the host that may answer CANCELLED. They do not nest.
class StoppableCall {
 public:
  explicit StoppableCall(const ep_host* host) { asked_ = host; }
  ~StoppableCall() { asked_ = nullptr; }
  StoppableCall(const StoppableCall&) = delete;
  StoppableCall& operator=(const StoppableCall&) = delete;

 private:
  friend void stop_if_wanted();
  [[gnu::tls_model("initial-exec")]] static constinit thread_local const ep_host* asked_;
};

// Throws Stopped if the host wants the calling thread's call to stop. It asks the host every 20 milliseconds at most,
// and never within a region, whose other threads would go on. So it may be called often, but it reads the clock.
void stop_if_wanted();

}  // namespace tenon::provider::cpu
