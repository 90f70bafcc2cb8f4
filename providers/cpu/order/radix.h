// Stable sorting of keys, alone or with positions, by their digits: the least significant first.
#pragma once

#include <cstdint>

namespace tenon::provider::cpu {

// A key of 64 bits and its position. Keys of up to 32 bits share a uint64_t with their position, the key above it.
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

// Sorts n entries by the lowest `bits` bits of their keys, stably. The entries are at `a`; `b` is room for as many, and
// the result is in one of both, which is returned. uint32_t: keys alone. uint64_t: keys of up to 32 bits with
// positions. `counts` is room for radix_counts(chunks) numbers; with several chunks the work is cut among up to
// `threads` threads.
uint32_t* radix_sort(uint32_t* a, uint32_t* b, int64_t n, int32_t bits, int32_t threads, int64_t* counts);
uint64_t* radix_sort(uint64_t* a, uint64_t* b, int64_t n, int32_t bits, int32_t threads, int64_t* counts);
WideEntry* radix_sort(WideEntry* a, WideEntry* b, int64_t n, int32_t bits, int32_t threads, int64_t* counts);

// How many numbers `counts` has for n entries.
int64_t radix_counts(int64_t n);

}  // namespace tenon::provider::cpu
