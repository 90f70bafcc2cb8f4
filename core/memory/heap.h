// Heap: best fit with coalescing over the provider's blocks (extents). Serves blocks above 32 KiB, and slabs, which
// are cut into smaller blocks.
//
// A range is live or free. Neighbouring free ranges are merged into one, which carries the tickets that still use any
// part of it. A request takes the smallest fitting free range without tickets, else the smallest fitting one with
// tickets, else part of a new extent.
//
// In a pool with EP_POOL_FLAG_EXCLUSIVE, an extent is a single range that is never cut: a request takes a free one of
// its size class, or a new one.
//
// Threads: not thread-safe. The allocator holds its lock around every call.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/device/block.h"
#include "core/device/stats.h"
#include "core/device/ticket_list.h"
#include "loader/loader.h"
#include "primitives/status/status.h"

namespace tenon::memory {

struct Extent;

// A range of an extent, linked with its neighbours in address order.
struct Range {
  Extent* extent = nullptr;
  uint64_t offset = 0;
  uint64_t size = 0;
  Range* before = nullptr;
  Range* after = nullptr;
  bool free = false;
  bool listed_clean = false;  // while it is free: true if the set of clean ranges contains it
  TicketList pending;         // free ranges only
};

// One block of the provider.
struct Extent {
  ep_memory* memory = nullptr;
  char* host = nullptr;
  uint64_t size = 0;
  uint64_t touched = 0;   // the tick at which a range of it was last taken or returned
  uint64_t last_use = 0;  // the number of that use, which orders uses within a tick
  Range* first = nullptr;
};

class Heap {
 public:
  // The size of every range is a multiple of this, so every range starts 256-aligned.
  static constexpr uint64_t kGrain = 512;

  explicit Heap(loader::OpenDevice* device, uint64_t limit);
  // Returns all extents to the provider; live ranges become invalid.
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // A live range of at least `bytes`, taken from the free ranges, or null.
  Range* take(uint64_t bytes);
  // A live range of at least `bytes` in a new extent. Errors: out_of_device_memory, from the provider or because of
  // the limit.
  Result<Range*> take_new(uint64_t bytes);
  // Frees `range`; `pending` are tickets that still use it.
  void give(Range* range, std::span<const Ticket> pending);

  // Returns extents that are free and without tickets to the provider: those that were unused since tick
  // `untouched_since`, then others, the longest unused first, until at most `keep` bytes are free. Returns the number
  // of bytes returned.
  uint64_t shrink(uint64_t untouched_since, uint64_t keep);
  // Adds the tickets that free ranges still carry.
  void pending_tickets(TicketList* out) const;

  void set_tick(uint64_t tick) { tick_ = tick; }
  // Bytes of the device that are held outside the heap and count towards the limit.
  void set_elsewhere(uint64_t bytes) { elsewhere_ = bytes; }
  uint64_t live_bytes() const { return live_; }
  uint64_t free_bytes() const { return reserved_ - live_; }
  uint64_t reserved_bytes() const { return reserved_; }
  uint64_t extent_count() const { return extents_.size(); }
  uint64_t limit() const { return limit_; }
  bool exclusive() const { return exclusive_; }
  // "3 x 4 MiB, 17 x 64 KiB": the live ranges, largest first.
  std::string largest_live(size_t lines) const;

 private:
  // Orders ranges by size, then by address. A bare size sorts before all ranges of that size.
  struct BySize {
    using is_transparent = void;
    bool operator()(const Range* a, const Range* b) const { return a->size != b->size ? a->size < b->size : a < b; }
    bool operator()(const Range* a, uint64_t size) const { return a->size < size; }
    bool operator()(uint64_t size, const Range* b) const { return size <= b->size; }
  };
  using FreeSet = std::set<Range*, BySize>;

  Result<Extent*> make_extent(uint64_t bytes);
  uint64_t extent_bytes(uint64_t bytes) const;
  uint64_t range_bytes(uint64_t bytes) const;
  Range* cut(Range* range, uint64_t bytes);
  void touch(Extent* extent);
  void enlist(Range* range);
  void delist(Range* range);
  void absorb_next(Range* range);
  void drop_extent(size_t index);
  void refresh_pending();

  loader::OpenDevice* device_;
  uint64_t limit_;
  uint64_t alignment_ = kGrain;
  bool mapped_ = false;
  bool exclusive_ = false;  // true: an extent is a single range
  uint64_t tick_ = 1;
  uint64_t uses_ = 0;
  uint64_t live_ = 0;
  uint64_t reserved_ = 0;
  uint64_t elsewhere_ = 0;
  FreeSet clean_;
  FreeSet waiting_;
  std::vector<Extent*> extents_;
};

}  // namespace tenon::memory
