// Signal: a number that one thread raises and others wait for.
//
// A waiter first spins, because waking a thread takes tens of microseconds and most regions follow each other sooner.
// It gives up the processor after 200 microseconds; or after 5, where other programs use the processors much, because
// then the spinning takes the time that the awaited thread needs. A spinning thread notices other programs: between two
// looks at the clock, which lie half a microsecond apart, it misses a time slice. One slice says little; a fifth of the
// time is much.
#pragma once

#include <atomic>
#include <cstdint>

namespace tenon::provider::cpu {

class Signal {
 public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }
  // Returns when the value is no longer `seen`. Sees what the raising thread wrote before.
  void wait(uint32_t seen);
  // Adds one to the value, and wakes all waiters that sleep if `wakes`. The others go on in either case.
  void raise(bool wakes);

 private:
  bool spin(uint32_t seen) const;

  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace tenon::provider::cpu
