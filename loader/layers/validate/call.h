// Call: one call of a wrapped function on its way through the validation layer.
//
// What the host does wrong is found before the provider is called. The call is then refused (`refuse`); a function
// without an answer is only noted (`note`), and the provider is called all the same. What the provider does wrong is
// found after the call (`blame`). Everything is written under Objects::mutex.
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
  Layer* layer = nullptr;  // null until the first argument has named it
  Layer* peer = nullptr;   // the second device, to which later handles belong
  Clock captured;          // what the host has seen if the call succeeds
  Point at;                // the point that the call asks about or waits for
  const char* known = "";  // the rule by which that point is known to be done; empty: it is not known

  // Streams to wait for first, since the object to be destroyed is in flight on them.
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
  // `object` is about to be destroyed. The host must have seen all work that uses it.
  void check_unused(Object& object);
  // This thread is out of the provider again.
  void leave();

  // The answer that the host gets. Logs broken rules and turns them into an answer; called without the lock. `made` is
  // the provider's error.
  ep_status answer(ep_status status, ep_error* made, ep_error** error);

 private:
  std::string breach(std::string_view rule, std::string_view side, const std::string& what) const;

  Slot slot_;
  bool refused_ = false;
  bool blamed_ = false;
  std::vector<std::string> sentences_;
  std::vector<Object*> entered_;
};

}  // namespace tenon::loader::validate
