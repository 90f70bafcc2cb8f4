// Call: one call of a wrapped function on its way through the validation layer.
//
// Errors of the host are found before the provider is called, and the call is refused (`refuse`). A function that
// returns no status cannot be refused: the error is recorded (`note`) and the provider is called. Errors of the
// provider are found after the call (`blame`). All fields are written under Objects::mutex.
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
  Layer* layer = nullptr;  // null until the first argument gives the device
  Layer* peer = nullptr;   // the second device; handles after it belong to it
  Clock captured;          // work that the host has seen done if the call succeeds
  Point at;                // the point that the call asks about or waits for
  const char* known = "";  // the rule that says that this point is done; empty: unknown

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

  // Checks that the device is open, and makes it the call's device. A second device becomes the peer.
  void enter_device(const ep_device* device);
  // Returns the live object of that kind behind `handle`, and notes that this thread uses it. It must belong to this
  // device, or to the peer once there is one. If there is none, refuses the call and returns null. NULL is valid for
  // functions that destroy.
  Object* enter(Kind kind, const void* handle);
  // `object` is about to be destroyed. The host must have seen all work that uses it.
  void check_unused(Object& object);
  // Notes that this thread has returned from the provider.
  void leave();

  // Returns the status for the host. Logs broken rules and turns them into an error. Called without the lock. `made` is
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
