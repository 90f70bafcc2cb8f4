#include "loader/host/cancellation.h"

#include <utility>

namespace tenon::loader {
namespace {

thread_local const std::atomic<bool>* stops = nullptr;

}  // namespace

StoppableCall::StoppableCall(const std::atomic<bool>* cancelled) : previous_(std::exchange(stops, cancelled)) {}
StoppableCall::~StoppableCall() { stops = previous_; }

bool cancel_requested() { return stops != nullptr && stops->load(std::memory_order_acquire); }

}  // namespace tenon::loader
