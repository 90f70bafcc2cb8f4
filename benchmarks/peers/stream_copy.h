// The best copy of this machine: non-temporal stores, split over threads. The denominator of everything that moves
// memory.
#pragma once

#include <cstddef>

namespace tenon::bench {

// Copies `bytes` (a multiple of 64, both sides 64-aligned) on `threads` threads.
void stream_copy(void* dst, const void* src, size_t bytes, int threads);

}  // namespace tenon::bench
