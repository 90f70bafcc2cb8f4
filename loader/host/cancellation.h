// Cancellation of calls to a plug-in: what ep_host.cancel_requested answers.
#pragma once

namespace tenon::loader {

// While it lives, the calling thread makes a call that compiles (primitive_create, graph_compile). It is to stop once
// `cancelled()`, asked on this thread, is true, which then stays so. They nest: the innermost counts.
class StoppableCall {
 public:
  explicit StoppableCall(bool (*cancelled)());
  ~StoppableCall();
  StoppableCall(const StoppableCall&) = delete;
  StoppableCall& operator=(const StoppableCall&) = delete;

 private:
  bool (*outer_)();
};

// What is asked in calls without a StoppableCall, which are launches. The same function each time, before any launch
// that somebody may want to stop.
void set_launch_cancelled(bool (*cancelled)());

// True if the call that the calling thread makes is to stop.
bool cancel_requested();

}  // namespace tenon::loader
