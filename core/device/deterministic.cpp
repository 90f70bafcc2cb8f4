#include "core/device/deterministic.h"

#include "core/device/deterministic_switch.h"
#include "loader/settings/settings.h"

namespace tenon {

std::atomic<int8_t>& deterministic_switch() {
  static std::atomic<int8_t> wanted{-1};
  return wanted;
}

bool are_deterministic_algorithms_enabled() {
  const int8_t wanted = deterministic_switch().load(std::memory_order_relaxed);
  return wanted < 0 ? loader::settings().deterministic == loader::Deterministic::on : wanted != 0;
}

}  // namespace tenon
