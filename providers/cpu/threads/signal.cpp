#include "providers/cpu/threads/signal.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "providers/cpu/threads/clock.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t longest_spin = 200'000;  // nanoseconds, if other programs do not use the processors
constexpr int64_t shortest_spin = 5'000;   // if they do
constexpr int64_t time_slice = 300'000;    // a gap this long means that another thread ran here
constexpr int looks_per_clock = 16;

// How much other programs use the processors, for the whole process. Each gap adds four times its length to a balance
// in nanoseconds, which decreases with time. Single gaps, which every machine has, fade; gaps of more than a fifth of
// the time make the balance grow. If it exceeds `crowded`, spins are short for `remembered` nanoseconds.
constexpr int64_t weight = 4;
constexpr int64_t crowded = 20'000'000;
constexpr int64_t remembered = 100'000'000;
std::atomic<int64_t> gaps_until{0};

void note_gap(int64_t gap, int64_t time) {
  const int64_t left = std::max<int64_t>(0, gaps_until.load(std::memory_order_relaxed) - time) + weight * gap;
  gaps_until.store(time + (left > crowded ? crowded + remembered : left), std::memory_order_relaxed);
}

void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  static_assert(sizeof word == sizeof(uint32_t));
  syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

}  // namespace

// Returns true if the value changed.
bool Signal::spin(uint32_t seen) const {
  const int64_t begin = now();
  for (int64_t last = begin;;) {
    for (int look = 0; look < looks_per_clock; ++look) {
      if (value() != seen) return true;
      pause_processor();
    }
    const int64_t time = now();
    if (time - last > time_slice) note_gap(time - last, time);
    last = time;
    const bool is_crowded = gaps_until.load(std::memory_order_relaxed) - time > crowded;
    if (time - begin > (is_crowded ? shortest_spin : longest_spin)) return false;
  }
}

void Signal::wait(uint32_t seen) {
  if (value() != seen || spin(seen)) return;
  sleepers_.fetch_add(1);
  while (value_.load() == seen) futex(value_, FUTEX_WAIT, seen);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Signal::raise(bool wakes) {
  value_.fetch_add(1);
  if (wakes && sleepers_.load() != 0) futex(value_, FUTEX_WAKE, INT_MAX);
}

}  // namespace tenon::provider::cpu
