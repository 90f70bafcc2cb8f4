#include "core/background/cancellation.h"

#include <utility>

#include "core/background/stop.h"
#include "loader/host/cancellation.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

thread_local const CancellationScope* innermost = nullptr;

}  // namespace

CancellationScope::CancellationScope(Cancellation cancellation)
    : cancellation_(std::move(cancellation)), outer_(std::exchange(innermost, this)) {}

CancellationScope::~CancellationScope() { innermost = outer_; }

bool CancellationScope::cancelled_here() {
  for (const CancellationScope* scope = innermost; scope != nullptr; scope = scope->outer_) {
    if (scope->cancellation_.cancelled()) return true;
  }
  return false;
}

std::vector<Cancellation> CancellationScope::here() {
  std::vector<Cancellation> all;
  for (const CancellationScope* scope = innermost; scope != nullptr; scope = scope->outer_) {
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
