#include "loader/host/cancellation.h"

#include <utility>

namespace tenon::loader {
namespace {

thread_local bool (*stops)() = nullptr;

}  // namespace

StoppableCall::StoppableCall(bool (*cancelled)()) : outer_(std::exchange(stops, cancelled)) {}
StoppableCall::~StoppableCall() { stops = outer_; }

bool cancel_requested() { return stops != nullptr && stops(); }

}  // namespace tenon::loader
