#include "providers/cpu/order/radix.h"

#include <algorithm>
#include <cstring>

#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t few = 48;                // at most this many are sorted by insertion
constexpr int64_t many = 32768;            // from here on digits are wide, and threads share the work
constexpr int64_t chunk_length = 1 << 15;  // entries that a thread counts and moves at a time
constexpr int64_t most_chunks = 8;

int64_t chunks_of(int64_t n) { return std::clamp<int64_t>(n / chunk_length, 1, most_chunks); }

// The key of an entry.
inline uint64_t key_of(uint32_t entry) { return entry; }
inline uint64_t key_of(uint64_t entry) { return entry >> 32; }
inline uint64_t key_of(const WideEntry& entry) { return entry.key; }

// Insertion sort. Returns false if it needs more than `most` moves; the entries are then partly sorted, and equal ones
// keep their order.
template <class Entry>
bool insertion_sort(Entry* a, int64_t n, int64_t most) {
  uint64_t last = n > 0 ? key_of(a[0]) : 0;  // the greatest key so far
  for (int64_t i = 1; i < n; ++i) {
    const Entry entry = a[i];
    const uint64_t key = key_of(entry);
    if (key >= last) {
      last = key;
      continue;
    }
    int64_t at = i;
    for (; at > 0 && key < key_of(a[at - 1]); --at) a[at] = a[at - 1];
    a[at] = entry;
    most -= i - at;
    if (most < 0) return false;
  }
  return true;
}

template <int digit_bits, class Entry>
struct Radix {
  static constexpr int64_t buckets = int64_t{1} << digit_bits;
  static uint64_t digit(const Entry& entry, int32_t shift) { return key_of(entry) >> shift & (buckets - 1); }

  // One pass over the digit at `shift` for few entries; all digits were counted before.
  static void move(const Entry* from, Entry* to, int64_t begin, int64_t end, int32_t shift, int64_t* places) {
    for (int64_t i = begin; i < end; ++i) to[places[digit(from[i], shift)]++] = from[i];
  }

  static void count(const Entry* from, int64_t begin, int64_t end, int32_t shift, int64_t* counts) {
    std::memset(counts, 0, buckets * sizeof(int64_t));
    for (int64_t i = begin; i < end; ++i) ++counts[digit(from[i], shift)];
  }

  // Turns counts into the positions of the first entries: bucket by bucket, and within a bucket chunk by chunk. Returns
  // false if all entries are in one bucket.
  static bool places_of(int64_t* counts, int64_t chunks, int64_t n) {
    int64_t place = 0;
    for (int64_t bucket = 0; bucket < buckets; ++bucket) {
      const int64_t before = place;
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        int64_t& here = counts[chunk * buckets + bucket];
        const int64_t count = here;
        here = place;
        place += count;
      }
      if (place - before == n) return false;
      if (place == n && before == 0) return false;
    }
    return true;
  }

  // Sorts by the bits from `first` on.
  static Entry* sort(Entry* a, Entry* b, int64_t n, int32_t first, int32_t bits, int32_t threads, int64_t* counts) {
    const int64_t chunks = threads == 1 ? 1 : chunks_of(n);
    const auto for_chunks = [&](const auto& body) {
      if (chunks == 1) return body(0);
      parallel(threads, n * 2, [&](int32_t part, int32_t parts) {
        for (int64_t chunk = chunks * part / parts; chunk < chunks * (part + 1) / parts; ++chunk) body(chunk);
      });
    };
    for (int32_t shift = first; shift < bits; shift += digit_bits) {
      for_chunks([&](int64_t chunk) {
        count(a, n * chunk / chunks, n * (chunk + 1) / chunks, shift, counts + chunk * buckets);
      });
      if (!places_of(counts, chunks, n)) continue;
      for_chunks([&](int64_t chunk) {
        move(a, b, n * chunk / chunks, n * (chunk + 1) / chunks, shift, counts + chunk * buckets);
      });
      std::swap(a, b);
    }
    return a;
  }
};

template <class Entry>
Entry* sort_from(int32_t first, Entry* a, Entry* b, int64_t n, int32_t bits, int32_t threads, int64_t* counts) {
  if (n < many || bits <= 8) return Radix<8, Entry>::sort(a, b, n, first, bits, threads, counts);
  return Radix<11, Entry>::sort(a, b, n, first, bits, threads, counts);
}

// The number of leading key bits that distinguish n random keys, in whole digits.
int32_t telling_bits(int64_t n) { return n < many ? 2 * 8 : n <= int64_t{1} << 24 ? 2 * 11 : 3 * 11; }

template <class Entry>
Entry* sort(Entry* a, Entry* b, int64_t n, int32_t bits, int32_t threads, int64_t* counts) {
  if (n <= few) {
    insertion_sort(a, n, few * few);
    return a;
  }
  if (bits < 64) return sort_from(0, a, b, n, bits, threads, counts);
  // Sorting long keys by their first bits is enough if they differ well, like random keys; insertion sort does the
  // rest. If keys share these bits, a later pass sorts all bits; equal keys are still in order.
  Entry* const nearly = sort_from(bits - telling_bits(n), a, b, n, bits, threads, counts);
  if (insertion_sort(nearly, n, 2 * n)) return nearly;
  return sort_from(0, nearly, nearly == a ? b : a, n, bits, threads, counts);
}

}  // namespace

uint32_t* radix_sort(uint32_t* a, uint32_t* b, int64_t n, int32_t bits, int32_t threads, int64_t* counts) {
  return sort(a, b, n, bits, threads, counts);
}
uint64_t* radix_sort(uint64_t* a, uint64_t* b, int64_t n, int32_t bits, int32_t threads, int64_t* counts) {
  return sort(a, b, n, bits, threads, counts);
}
WideEntry* radix_sort(WideEntry* a, WideEntry* b, int64_t n, int32_t bits, int32_t threads, int64_t* counts) {
  return sort(a, b, n, bits, threads, counts);
}

int64_t radix_counts(int64_t n) { return chunks_of(n) * (n < many ? 256 : 2048); }

}  // namespace tenon::provider::cpu
