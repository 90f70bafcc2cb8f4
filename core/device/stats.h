// Stats: what an allocator holds, in bytes. Part of the public API.
#pragma once

#include <cstdint>

namespace tenon::memory {

struct Stats {
  uint64_t live = 0;      // handed out
  uint64_t peak = 0;      // highest `live` so far
  uint64_t cached = 0;    // free, kept
  uint64_t reserved = 0;  // what the provider gave: live + cached + rounding
  uint64_t segments = 0;  // provider blocks
  uint64_t limit = 0;     // TENON_MEMORY_LIMIT, 0 none
  uint64_t packed = 0;    // of `live`: constants in layouts of the device's kernels
  // Of the prepared program whose values between ops take the most: what a run takes for them, and the largest sum of
  // their bytes at one step, which no plan can do without.
  uint64_t planned_peak = 0;
  uint64_t planned_lower_bound = 0;
};

}  // namespace tenon::memory
