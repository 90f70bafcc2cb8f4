// sort_halves: sorts long keys approximately, by the first bits in which they differ.
//
// An entry holds the upper half of a key above its position, as in EntryOf<uint32_t>. Two digits are sorted, the lower
// one first. Both are counted in one pass, and the first move reads the keys themselves. A list that exceeds the L2
// cache, or that several threads share, is first divided into buckets by a further digit, and one thread sorts each
// bucket.
#pragma once

#include <algorithm>
#include <cstdint>

#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {

// Sorts the n entries entry_at(0), entry_at(1), ... into `to` by two digits; the lower digit begins at bit `shift`. The
// entries may be in `to`; `between` has room for n entries. A digit may overlap the position bits, because positions
// ascend.
template <int kDigit, class EntryAt>
void sort_two_digits(const EntryAt& entry_at, int64_t n, int32_t shift, uint64_t* between, uint64_t* to) {
  constexpr uint64_t digits = uint64_t{1} << kDigit;
  uint32_t places[2][digits] = {};
  const auto lesser = [&](uint64_t entry) { return entry >> shift & (digits - 1); };
  const auto greater = [&](uint64_t entry) { return entry >> (shift + kDigit) & (digits - 1); };
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t entry = entry_at(i);
    ++places[0][lesser(entry)];
    ++places[1][greater(entry)];
  }
  uint32_t before[2] = {};
  for (uint64_t digit = 0; digit < digits; ++digit) {
    for (int k = 0; k < 2; ++k) {
      const uint32_t count = places[k][digit];
      places[k][digit] = before[k];
      before[k] += count;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t entry = entry_at(i);
    between[places[0][lesser(entry)]++] = entry;
  }
  for (int64_t i = 0; i < n; ++i) to[places[1][greater(between[i])]++] = between[i];
}

// Chooses digits wide enough that few of n random entries share both. All entries share their first `skipped` bits.
template <class EntryAt>
void sort_first_bits(const EntryAt& entry_at, int64_t n, int32_t skipped, uint64_t* between, uint64_t* to) {
  if (n < 2048) return sort_two_digits<7>(entry_at, n, 64 - skipped - 14, between, to);
  if (n < 16384) return sort_two_digits<8>(entry_at, n, 64 - skipped - 16, between, to);
  sort_two_digits<10>(entry_at, n, 64 - skipped - 20, between, to);
}

// Sorts the n entries entry_at(0), entry_at(1), ... into `to`, approximately, by their bits after the first `skipped`
// (at most 16) bits. `between` has room for n entries.
template <class EntryAt>
void sort_halves(const EntryAt& entry_at, int64_t n, int32_t skipped, uint64_t* between, uint64_t* to,
                 int32_t threads) {
  constexpr int64_t shared = 32768, cached = int64_t{1} << 18;
  constexpr int64_t bucket_bits = 8, buckets = int64_t{1} << bucket_bits, most_chunks = 8;
  if (n < (threads > 1 ? shared : cached)) return sort_first_bits(entry_at, n, skipped, between, to);
  const int64_t chunks = threads > 1 ? std::min(n * 2 / shared, most_chunks) : 1;
  uint32_t places[most_chunks][buckets] = {};
  const auto bucket_of = [shift = 64 - skipped - bucket_bits](uint64_t entry) {
    return entry >> shift & (buckets - 1);
  };
  const auto for_entries = [&](const auto& body) {
    parallel(threads, n * 2, [&](int32_t part, int32_t parts) {
      for (int64_t chunk = chunks * part / parts; chunk < chunks * (part + 1) / parts; ++chunk) {
        for (int64_t i = n * chunk / chunks; i < n * (chunk + 1) / chunks; ++i) body(entry_at(i), places[chunk]);
      }
    });
  };
  for_entries([&](uint64_t entry, uint32_t* counts) { ++counts[bucket_of(entry)]; });
  uint32_t before = 0;
  int64_t first[buckets + 1];
  for (int64_t bucket = 0; bucket < buckets; ++bucket) {
    first[bucket] = before;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const uint32_t count = places[chunk][bucket];
      places[chunk][bucket] = before;
      before += count;
    }
  }
  first[buckets] = n;
  for_entries([&](uint64_t entry, uint32_t* at) { to[at[bucket_of(entry)]++] = entry; });
  parallel(threads, n * 3, [&](int32_t part, int32_t parts) {
    for (int64_t bucket = buckets * part / parts; bucket < buckets * (part + 1) / parts; ++bucket) {
      uint64_t* const some = to + first[bucket];
      const auto some_at = [some](int64_t i) { return some[i]; };
      sort_first_bits(some_at, first[bucket + 1] - first[bucket], skipped + bucket_bits, between + first[bucket], some);
    }
  });
}

}  // namespace tenon::provider::cpu
