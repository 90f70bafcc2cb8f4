// The best copy of this machine, with non-temporal stores, and the best read. Rows of ops that move memory divide by
// their speed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::bench {

// Copies `bytes` (a multiple of 64; both addresses are multiples of 64) on `threads` threads.
void stream_copy(void* dst, const void* src, size_t bytes, int threads);
// Reads `bytes` at `src`, as stream_copy does; returns the exclusive or of all 64-bit words, so that nothing is left
// out.
uint64_t stream_read(const void* src, size_t bytes, int threads);

}  // namespace tenon::bench
