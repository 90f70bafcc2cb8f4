// The best copy of this machine, with non-temporal stores, and the best read. Rows of ops that move memory compare with
// their speed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::bench {

// Fills `bytes` (a multiple of 8) with nonzero words. Some processors write lines of zeros to memory three times as
// fast as other lines, so a copy of zeros would be no peer.
void fill_for_copy(void* at, size_t bytes);
// Copies `bytes` (a multiple of 64; both addresses are multiples of 64) on `threads` threads.
void stream_copy(void* dst, const void* src, size_t bytes, int threads);
// Reads `bytes` at `src` like stream_copy; returns the exclusive or of all 64-bit words, so that no read can be
// optimised away.
uint64_t stream_read(const void* src, size_t bytes, int threads);

}  // namespace tenon::bench
