// Shadow: a happens-before checker that knows who may access each byte of the fake's memory. Every stream and the host
// have a vector clock. An event carries a clock, and a wait joins clocks.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace tenon::fakes {

// The streams of the process, by number. The last entry is the host.
constexpr int kClocks = 13;
constexpr int kHostClock = kClocks - 1;

struct Clock {
  std::array<uint64_t, kClocks> seen{};

  void join(const Clock& other) {
    for (int i = 0; i < kClocks; ++i) {
      if (seen[i] < other.seen[i]) seen[i] = other.seen[i];
    }
  }
};

// Four bytes of memory: the last instruction that wrote them, and the instructions that have read them since, by
// stream.
struct Cell {
  int8_t writer = -1;
  uint64_t written = 0;
  std::array<uint32_t, kClocks> read{};
};

// The cells of one memory object.
struct ShadowMemory {
  explicit ShadowMemory(uint64_t bytes) : cells((bytes + 3) / 4) {}
  std::vector<Cell> cells;
};

class Shadow {
 public:
  int add_stream() {
    std::lock_guard lock(mutex_);
    return streams_ < kHostClock ? streams_++ : -1;
  }
  void reset() {
    std::lock_guard lock(mutex_);
    streams_ = 0;
    clocks_ = {};
  }

  // The host submits an instruction to `stream`; everything that the host has seen happened before it. Returns the
  // number of the instruction.
  uint64_t begin(int stream) {
    std::lock_guard lock(mutex_);
    Clock& clock = clocks_[static_cast<size_t>(stream)];
    clock.join(clocks_[kHostClock]);
    return ++clock.seen[static_cast<size_t>(stream)];
  }
  Clock record(int stream) {
    std::lock_guard lock(mutex_);
    return clocks_[static_cast<size_t>(stream)];
  }
  void wait(int stream, const Clock& clock) {
    std::lock_guard lock(mutex_);
    clocks_[static_cast<size_t>(stream)].join(clock);
  }

  // Notes that instruction `number` of `stream` reads or writes a range. Returns the message of a conflict, or an empty
  // string.
  std::string access(ShadowMemory& memory, int stream, uint64_t number, uint64_t offset, uint64_t bytes, bool write);
  // True if the host has seen instruction `number` of `stream` to be done.
  bool host_has_seen(int stream, uint64_t number) {
    std::lock_guard lock(mutex_);
    return clocks_[kHostClock].seen[static_cast<size_t>(stream)] >= number;
  }
  bool host_has_seen_all(int stream) {
    std::lock_guard lock(mutex_);
    const auto at = static_cast<size_t>(stream);
    return clocks_[kHostClock].seen[at] >= clocks_[at].seen[at];
  }
  // Checks that the host has seen every use of `memory`, so that the memory may be freed.
  std::string free(const ShadowMemory& memory);

 private:
  std::mutex mutex_;
  int streams_ = 0;
  std::array<Clock, kClocks> clocks_{};
};

}  // namespace tenon::fakes
