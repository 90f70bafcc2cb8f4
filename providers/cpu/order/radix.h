// Stable radix sort of keys, alone or with positions, least significant digit first.
#pragma once

#include <cstdint>

namespace tenon::provider::cpu {

// A 64-bit key and its position. A key of up to 32 bits shares a uint64_t with its position, in the upper half.
struct WideEntry {
  uint64_t key;
  int64_t position;
};

inline uint64_t packed_entry(uint64_t key, int64_t position) { return key << 32 | static_cast<uint64_t>(position); }

// The entry of a key of type U with its position.
template <class U>
struct EntryOf {
  using Type = uint64_t;
  static Type make(U key, int64_t position) { return packed_entry(key, position); }
  static U key(Type entry) { return static_cast<U>(entry >> 32); }
  static int64_t position(Type entry) { return static_cast<int64_t>(entry & 0xffffffffU); }
};
template <>
struct EntryOf<uint64_t> {
  using Type = WideEntry;
  static Type make(uint64_t key, int64_t position) { return {key, position}; }
  static uint64_t key(const Type& entry) { return entry.key; }
  static int64_t position(const Type& entry) { return entry.position; }
};

// Sorts n entries by the lowest `bits` bits of their keys, stably. The input is in `a`; `b` has room for n entries.
// Returns `a` or `b`, whichever holds the result. uint32_t entries are keys alone; uint64_t entries are keys of up to
// 32 bits with positions. `counts` has room for radix_counts(n) numbers. Long lists use up to `threads` threads.
uint32_t* radix_sort(uint32_t* a, uint32_t* b, int64_t n, int32_t bits, int32_t threads, int64_t* counts);
uint64_t* radix_sort(uint64_t* a, uint64_t* b, int64_t n, int32_t bits, int32_t threads, int64_t* counts);
WideEntry* radix_sort(WideEntry* a, WideEntry* b, int64_t n, int32_t bits, int32_t threads, int64_t* counts);

// The number of elements that `counts` needs for n entries.
int64_t radix_counts(int64_t n);

}  // namespace tenon::provider::cpu
