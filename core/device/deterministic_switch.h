// The value set by use_deterministic_algorithms; -1: not set, and the setting decides. Internal.
#pragma once

#include <atomic>
#include <cstdint>

namespace tenon {

std::atomic<int8_t>& deterministic_switch();

}  // namespace tenon
