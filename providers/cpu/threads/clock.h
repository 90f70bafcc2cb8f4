// The monotonic clock in nanoseconds, from the C library only.
#pragma once

#include <time.h>

#include <cstdint>

namespace tenon::provider::cpu {

inline int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace tenon::provider::cpu
