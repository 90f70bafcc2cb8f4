// Cancellation: how a program stops ops that compile or compute for long. Public.
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

// While it lives, what the calling thread asks of Tenon may be stopped by `cancellation`. An op or a model that has a
// device make a primitive or compile a graph then throws Error with Code::cancelled: before the device is asked, or in
// the middle, where the device can stop. So does an op in the middle of a long launch on a synchronous device that can
// stop there, as cpu can. The op returns no tensor; a tensor that it writes in place, or that `out` names, then holds
// undefined values. A prepared program stops between two of its launches too; what it could have written is then
// poisoned. Other threads run on, those that wait for the same primitive included. Nothing of a cancelled call is
// remembered: the same call works later. Scopes nest, and each of them counts.
class CancellationScope {
 public:
  explicit CancellationScope(Cancellation cancellation);
  ~CancellationScope();
  CancellationScope(const CancellationScope&) = delete;
  CancellationScope& operator=(const CancellationScope&) = delete;

  // True if a scope of the calling thread is cancelled, or if the interrupt check (interrupt.h) says so.
  static bool cancelled_here();
  // The cancellations of all scopes of the calling thread.
  static std::vector<Cancellation> here();

 private:
  [[gnu::noinline]] static std::vector<Cancellation> all_here();

  Cancellation cancellation_;
  const CancellationScope* outer_;
};

}  // namespace tenon
#pragma GCC visibility pop
