#include "loader/host/cancellation.h"

#include <atomic>
#include <utility>

namespace tenon::loader {
namespace {

thread_local bool (*stops)() = nullptr;
std::atomic<bool (*)()> stops_launch{nullptr};

}  // namespace

StoppableCall::StoppableCall(bool (*cancelled)()) : outer_(std::exchange(stops, cancelled)) {}
StoppableCall::~StoppableCall() { stops = outer_; }

void set_launch_cancelled(bool (*cancelled)()) { stops_launch.store(cancelled, std::memory_order_relaxed); }

bool cancel_requested() {
  bool (*const cancelled)() = stops != nullptr ? stops : stops_launch.load(std::memory_order_relaxed);
  return cancelled != nullptr && cancelled();
}

}  // namespace tenon::loader
