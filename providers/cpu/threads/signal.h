// Signal: a counter that one thread increases and others wait for.
//
// A waiter first spins, because waking a thread takes tens of microseconds and most regions follow each other sooner.
// It sleeps after 200 microseconds; or after 5 if other programs use the processors heavily, because spinning then
// takes time from the awaited thread. A spinning thread detects other programs by gaps: it reads the clock every half
// microsecond, and misses a time slice if another program runs. One gap says little; gaps of a fifth of the time count
// as heavy use.
#pragma once

#include <atomic>
#include <cstdint>

namespace tenon::provider::cpu {

class Signal {
 public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }
  // Returns when the value differs from `seen`. The raising thread's earlier writes are then visible.
  void wait(uint32_t seen);
  // Increments the value. Wakes sleeping waiters if `wakes`; spinning waiters continue in either case.
  void raise(bool wakes);

 private:
  bool spin(uint32_t seen) const;

  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace tenon::provider::cpu
