// Cancellation: how a program stops ops that wait for a compiler. Public.
//
//   tenon::Cancellation stop;
//   std::thread worker([&] {
//     tenon::CancellationScope scope(stop);
//     y = tenon::matmul(a, b);      // throws tenon::Error, Code::cancelled, if a device was compiling or about to
//   });
//   stop.cancel();
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "primitives/status/status.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// A request to stop, shared by all copies. It cannot be withdrawn, so new work takes a new Cancellation. Threads: every
// function is thread-safe.
class Cancellation {
 public:
  Cancellation() : cancelled_(std::make_shared<std::atomic<bool>>(false)) {}
  void cancel() const { cancelled_->store(true, std::memory_order_release); }
  bool cancelled() const { return cancelled_->load(std::memory_order_acquire); }

 private:
  friend class CancellationScope;
  std::shared_ptr<std::atomic<bool>> cancelled_;
};

// While a scope lives, `cancellation` can stop the calls that its thread makes. An op or a model that has a device
// create a primitive or compile a graph then throws Error with Code::cancelled: before the call, or during it if the
// device can stop. A prepared program stops between two of its launches; the tensors that it could have written are
// then poisoned. A single op that needs no compiler runs to its end, and so do other threads, even those that wait for
// the same primitive. A cancelled call leaves nothing behind: the same call works later. Scopes nest, and each of them
// counts.
class CancellationScope {
 public:
  explicit CancellationScope(Cancellation cancellation);
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

  // True if a scope of the calling thread is cancelled.
  static bool cancelled_here();
  // The cancellations of all scopes of the calling thread.
  static std::vector<Cancellation> here();

 private:
  Cancellation cancellation_;
  const CancellationScope* outer_;
};

}  // namespace tenon
#pragma GCC visibility pop
