// Cancellation of calls to a plug-in: what ep_host.cancel_requested answers.
#pragma once

namespace tenon::loader {

// While it lives, the calling thread makes a call that may be stopped (primitive_create, graph_compile). It is to stop
// once `cancelled()`, asked on this thread, is true, which then stays so. They nest: the innermost counts.
class StoppableCall {
 public:
  explicit StoppableCall(bool (*cancelled)());
  ~StoppableCall();
  StoppableCall(const StoppableCall&) = delete;
  StoppableCall& operator=(const StoppableCall&) = delete;

 private:
  bool (*outer_)();
};

// True if the call that the calling thread makes is to stop. False outside of such a call.
bool cancel_requested();

}  // namespace tenon::loader
