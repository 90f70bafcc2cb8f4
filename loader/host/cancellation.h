// Cancellation of calls to a plug-in: what ep_host.cancel_requested answers.
#pragma once

#include <atomic>

namespace tenon::loader {

// While it lives, the calling thread makes a call that may be stopped (primitive_create, graph_compile), and wants it
// stopped once `*cancelled` is true, which then stays so. Null: it is never stopped. They nest: the innermost counts.
class StoppableCall {
 public:
  explicit StoppableCall(const std::atomic<bool>* cancelled);
  ~StoppableCall();
  StoppableCall(const StoppableCall&) = delete;
  StoppableCall& operator=(const StoppableCall&) = delete;

 private:
  const std::atomic<bool>* previous_;
};

// True if the call that the calling thread makes is to stop. False outside of such a call.
bool cancel_requested();

}  // namespace tenon::loader
