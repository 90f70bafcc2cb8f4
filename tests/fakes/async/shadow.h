// Shadow: who may touch which byte of the fake's memory. A happens-before checker: every stream has a vector clock, so
// has the host; an event carries one; a wait joins them.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace tenon::fakes {

// Streams of the process, by number; the last entry is the host's.
constexpr int kClocks = 9;
constexpr int kHostClock = kClocks - 1;

struct Clock {
  std::array<uint64_t, kClocks> seen{};

  void join(const Clock& other) {
    for (int i = 0; i < kClocks; ++i) {
      if (seen[i] < other.seen[i]) seen[i] = other.seen[i];
    }
  }
};

// Four bytes: who wrote them last, and who has read them since, as instruction numbers by stream.
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

  // The host hands an instruction to stream `stream`; all it has seen happened before. Returns its number.
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

  // Checks and notes that instruction `number` of `stream` reads or writes a range. The message of what it collides
  // with, or empty.
  std::string access(ShadowMemory& memory, int stream, uint64_t number, uint64_t offset, uint64_t bytes, bool write);
  // Everything that used `memory` was seen by the host: it may be freed.
  std::string free(const ShadowMemory& memory);

 private:
  std::mutex mutex_;
  int streams_ = 0;
  std::array<Clock, kClocks> clocks_{};
};

}  // namespace tenon::fakes
