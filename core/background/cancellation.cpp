#include "core/background/cancellation.h"

#include <atomic>
#include <utility>

#include "core/background/interrupt.h"
#include "core/background/stop.h"
#include "core/device/call_context.h"
#include "loader/host/cancellation.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

std::atomic<InterruptCheck> interrupt_check{nullptr};

bool interrupted(bool thorough) {
  const InterruptCheck check = interrupt_check.load(std::memory_order_relaxed);
  return check != nullptr && check(thorough);
}

// Providers call this within a launch, a few times a second.
bool launch_cancelled() { return interrupted(true) || CancellationScope::cancelled_here(); }

}  // namespace

void set_interrupt_check(InterruptCheck check) {
  interrupt_check.store(check, std::memory_order_relaxed);
  loader::set_launch_cancelled(&launch_cancelled);
}

CancellationScope::CancellationScope(Cancellation cancellation)
    : cancellation_(std::move(cancellation)), outer_(std::exchange(call_context.cancellation, this)) {
  loader::set_launch_cancelled(&launch_cancelled);
}

CancellationScope::~CancellationScope() { call_context.cancellation = outer_; }

bool CancellationScope::cancelled_here() {
  for (const CancellationScope* scope = call_context.cancellation; scope != nullptr; scope = scope->outer_) {
    if (scope->cancellation_.cancelled()) return true;
  }
  constexpr uint8_t kThoroughEvery = 255;  // a thorough check costs a system call
  thread_local uint8_t asked = 0;
  return interrupted((++asked & kThoroughEvery) == 0);
}

std::vector<Cancellation> CancellationScope::here() {
  return call_context.cancellation == nullptr ? std::vector<Cancellation>() : all_here();
}

std::vector<Cancellation> CancellationScope::all_here() {
  std::vector<Cancellation> all;
  for (const CancellationScope* scope = call_context.cancellation; scope != nullptr; scope = scope->outer_) {
    all.push_back(scope->cancellation_);
  }
  return all;
}

ep_status stoppable(const std::function<ep_status(ep_error** error)>& call, ep_error** error) {
  if (CancellationScope::cancelled_here()) return EP_STATUS_CANCELLED;
  const loader::StoppableCall stops(CancellationScope::cancelled_here);
  return call(error);
}

Status cancelled_error(const Status& why, std::string_view doing) {
  if (CancellationScope::cancelled_here()) {
    return Status(Code::cancelled, fmt::format("The program cancelled this: {}.", doing));
  }
  return Status(Code::internal,
                fmt::format("The provider returned CANCELLED without a request to stop (rule E04): {}", why.message()));
}

}  // namespace tenon
