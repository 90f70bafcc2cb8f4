// Rules of ordering. Tests switch them off one at a time to show that the random programs fail without them. Only tests
// write this word. It is read on slow paths and under the submission lock.
#pragma once

#include <atomic>
#include <cstdint>

namespace tenon::vm {

enum Rule : uint32_t {
  kWaitBetweenStreams = 1,  // an instruction waits for its dependences in other streams of its device
  kWaitBetweenDevices = 2,  // an instruction waits for its dependences in streams of other devices
  kWriteAfterRead = 4,      // a write waits for the reads before it
  kWaitBeforeReuse = 8,     // a block that is reused waits for the tickets it carries
  kPoison = 16,             // an instruction that reads a poisoned storage is poisoned
  kHeal = 32,               // a whole overwrite heals
};

// The rules in force: all of them.
inline constinit std::atomic<uint32_t> rules{~uint32_t{0}};

inline bool holds(Rule rule) { return (rules.load(std::memory_order_relaxed) & rule) != 0; }

}  // namespace tenon::vm
