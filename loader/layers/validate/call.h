// Call: one call of a wrapped function on its way through the validation layer.
//
// The host's faults are found before the provider is called, which then is not (`refuse`), or is all the same where the
// function has no answer (`note`); the provider's after it (`blame`). Everything is written under Objects::mutex.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loader/layers/validate/objects.h"

namespace tenon::loader::validate {

class Call {
 public:
  explicit Call(Slot slot) : slot_(slot) {}

  Slot slot() const { return slot_; }
  Layer* layer = nullptr;  // null until the first argument told
  Layer* peer = nullptr;   // whose handles follow, once an argument named it
  Clock captured;          // what will have been seen if the call succeeds

  // To be waited for first: what is destroyed is in flight on them.
  struct Drain {
    const Layer* layer;
    ep_stream* stream;
  };
  std::vector<Drain> drain;

  // `rule`: the number in ep_api/README.md. `what`: a clause without a full stop.
  void refuse(std::string_view rule, const std::string& what);
  void note(std::string_view rule, const std::string& what);
  void blame(std::string_view rule, const std::string& what);
  bool refused() const { return refused_; }
  bool blamed() const { return blamed_; }

  // The device is open and known. A second one is the peer of the first.
  void enter_device(const ep_device* device);
  // The live object of that kind and of this device (of the peer, once one is known) behind `handle`; null (and
  // refused) if there is none. NULL is fine for functions that destroy. Notes that this thread uses it.
  Object* enter(Kind kind, const void* handle);
  // An object of a device is about to be destroyed: what uses it must have been seen.
  void check_unused(Object& object);
  // This thread is out of the provider again.
  void leave();

  // What the host gets, once the lock is free: logs, and turns faults into an answer. `made`: the provider's error.
  ep_status answer(ep_status status, ep_error* made, ep_error** error);

 private:
  std::string sentence(std::string_view rule, std::string_view side, const std::string& what) const;

  Slot slot_;
  bool refused_ = false;
  bool blamed_ = false;
  std::vector<std::string> sentences_;
  std::vector<Object*> entered_;
};

}  // namespace tenon::loader::validate
