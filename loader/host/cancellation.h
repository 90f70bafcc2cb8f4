// Cancellation of calls to a plug-in: the implementation of ep_host.cancel_requested.
#pragma once

namespace tenon::loader {

// While this object lives, the calling thread is in a call that compiles (primitive_create, graph_compile). The call
// should stop when `cancelled()` returns true on this thread; from then on it must keep returning true. If these
// objects are nested, the innermost one applies.
class StoppableCall {
 public:
  explicit StoppableCall(bool (*cancelled)());
  ~StoppableCall();
  StoppableCall(const StoppableCall&) = delete;
  StoppableCall& operator=(const StoppableCall&) = delete;

 private:
  bool (*outer_)();
};

// Sets the function that is asked in calls without a StoppableCall (launches). Every call must pass the same function,
// and must come before any launch that may need to be stopped.
void set_launch_cancelled(bool (*cancelled)());

// True if the calling thread's current call should stop.
bool cancel_requested();

}  // namespace tenon::loader
