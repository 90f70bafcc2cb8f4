// The best copy of this machine: non-temporal stores on several threads. Rows of ops that move memory divide by its
// speed.
#pragma once

#include <cstddef>

namespace tenon::bench {

// Copies `bytes` (a multiple of 64; both addresses are multiples of 64) on `threads` threads.
void stream_copy(void* dst, const void* src, size_t bytes, int threads);

}  // namespace tenon::bench
