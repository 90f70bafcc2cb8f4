// What use_deterministic_algorithms has set: -1 is nothing, so that the setting counts. Internal.
#pragma once

#include <atomic>
#include <cstdint>

namespace tenon {

std::atomic<int8_t>& deterministic_switch();

}  // namespace tenon
