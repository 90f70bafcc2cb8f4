// Stats: the memory that an allocator holds, in bytes. Part of the public API.
#pragma once

#include <cstdint>

namespace tenon::memory {

struct Stats {
  uint64_t live = 0;      // handed out
  uint64_t peak = 0;      // highest `live` so far
  uint64_t cached = 0;    // free, kept for reuse
  uint64_t reserved = 0;  // taken from the provider: live + cached + rounding
  uint64_t extents = 0;   // number of blocks of the provider
  uint64_t limit = 0;     // TENON_MEMORY_LIMIT; 0: none
  uint64_t packed = 0;    // the part of `live` that holds constants in layouts of the device's primitives
  // For the prepared program with the largest memory plan: the bytes that a run takes for values between ops, and the
  // lower bound of any plan, which is the largest sum of their bytes at one step.
  uint64_t planned_peak = 0;
  uint64_t planned_lower_bound = 0;
};

}  // namespace tenon::memory
