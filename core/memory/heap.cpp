#include "core/memory/heap.h"

#include <algorithm>
#include <bit>
#include <map>

#include "core/vm/rules.h"
#include "core/vm/vm.h"
#include "primitives/text/format.h"

namespace tenon::memory {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

uint64_t round_up(uint64_t bytes, uint64_t step) { return (bytes + step - 1) / step * step; }

std::string bytes_text(uint64_t bytes) {
  if (bytes >= kMiB && bytes % kMiB == 0) return fmt::format("{} MiB", bytes / kMiB);
  if (bytes >= 1024 && bytes % 1024 == 0) return fmt::format("{} KiB", bytes / 1024);
  return fmt::format("{} bytes", bytes);
}

}  // namespace

Heap::Heap(loader::OpenDevice* device, uint64_t limit) : device_(device), limit_(limit) {
  if (device->info.pools.empty()) return;
  const loader::MemoryPool& pool = device->info.pools[0];
  constexpr uint64_t wanted = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT;
  mapped_ = (pool.flags & wanted) == wanted;
  exclusive_ = (pool.flags & EP_POOL_FLAG_EXCLUSIVE) != 0;
  alignment_ = std::max(kGrain, pool.minimum_alignment);
}

Heap::~Heap() {
  while (!extents_.empty()) drop_extent(extents_.size() - 1);
}

// The size of the range for a request. Ranges that are never cut come in eight sizes per doubling, so that later
// requests can reuse them.
uint64_t Heap::range_bytes(uint64_t bytes) const {
  if (!exclusive_) return round_up(bytes, alignment_);
  return round_up(bytes, std::max(alignment_, std::bit_floor(bytes) / 8));
}

Range* Heap::take(uint64_t bytes) {
  bytes = range_bytes(bytes);
  for (FreeSet* set : {&clean_, &waiting_}) {
    const auto found = set->lower_bound(bytes);
    if (found == set->end() || (exclusive_ && (*found)->size != bytes)) continue;
    return cut(*found, bytes);
  }
  return nullptr;
}

Result<Range*> Heap::take_new(uint64_t bytes) {
  bytes = range_bytes(bytes);
  Result<Extent*> extent = make_extent(extent_bytes(bytes));
  if (!extent.ok() && extent_bytes(bytes) > bytes) extent = make_extent(bytes);
  TENON_RETURN_IF_ERROR(extent.status());
  return cut(extent.value()->first, bytes);
}

// The size of a new extent: half of the memory already held, so that the number of extents grows with the logarithm
// of the use; less on a small device.
uint64_t Heap::extent_bytes(uint64_t bytes) const {
  if (exclusive_) return bytes;
  uint64_t wanted = std::clamp(round_up(reserved_ / 2, 2 * kMiB), 2 * kMiB, 64 * kMiB);
  if (!device_->info.pools.empty()) {
    const loader::MemoryPool& pool = device_->info.pools[0];
    wanted = std::max(wanted, pool.preferred_block);
    if (pool.size != 0) wanted = std::min(wanted, pool.size / 16);
    if (pool.largest_allocation != 0) wanted = std::min(wanted, pool.largest_allocation);
  }
  wanted = round_up(std::max(wanted, bytes), alignment_);
  return bytes >= 2 * kMiB ? std::max(round_up(bytes, 2 * kMiB), wanted) : wanted;
}

Result<Extent*> Heap::make_extent(uint64_t bytes) {
  if (limit_ != 0 && elsewhere_ + reserved_ + bytes > limit_) {
    return Status(Code::out_of_device_memory, fmt::format("A further {} would exceed the limit of {} on {}.",
                                                          bytes_text(bytes), bytes_text(limit_), device_->spelling));
  }
  const uint64_t most = device_->info.pools.empty() ? 0 : device_->info.pools[0].maximum_allocations;
  if (most != 0 && extents_.size() >= most) shrink(~uint64_t{0}, 0);
  if (most != 0 && extents_.size() >= most) {
    return Status(Code::out_of_device_memory,
                  fmt::format("{} allows {} blocks, and all are in use.", device_->spelling, most));
  }
  ep_memory* memory = nullptr;
  ep_error* error = nullptr;
  const ep_status code = device_->ops.memory_allocate(device_->handle, 0, bytes, &memory, &error);
  if (code != EP_STATUS_OK) {
    return loader::take_error(code, error, fmt::format("allocating {} bytes on {}", bytes, device_->spelling));
  }
  void* host = nullptr;
  if (mapped_) {
    const ep_status mapping = device_->ops.memory_map(device_->handle, memory, &host, &error);
    if (mapping != EP_STATUS_OK) {
      device_->ops.memory_free(device_->handle, memory);
      return loader::take_error(mapping, error, fmt::format("mapping memory of {}", device_->spelling));
    }
  }
  auto* extent = new Extent{memory, static_cast<char*>(host), bytes, tick_, uses_, nullptr};
  auto* range = new Range;
  range->extent = extent;
  range->size = bytes;
  range->free = true;
  extent->first = range;
  extents_.push_back(extent);
  reserved_ += bytes;
  enlist(range);
  return extent;
}

void Heap::touch(Extent* extent) {
  extent->touched = tick_;
  extent->last_use = ++uses_;
}

Range* Heap::cut(Range* range, uint64_t bytes) {
  delist(range);
  touch(range->extent);
  if (range->size - bytes >= std::max(alignment_, bytes / 64)) {
    auto* rest = new Range;
    rest->extent = range->extent;
    rest->offset = range->offset + bytes;
    rest->size = range->size - bytes;
    rest->before = range;
    rest->after = range->after;
    rest->free = true;
    rest->pending.add(range->pending);
    if (range->after != nullptr) range->after->before = rest;
    range->after = rest;
    range->size = bytes;
    enlist(rest);
  }
  range->free = false;
  live_ += range->size;
  return range;
}

void Heap::give(Range* range, std::span<const Ticket> pending) {
  live_ -= range->size;
  range->free = true;
  touch(range->extent);
  range->pending.clear();
  for (Ticket ticket : pending) {
    if (!vm::is_done(ticket)) range->pending.add(ticket);
  }
  if (range->after != nullptr && range->after->free) absorb_next(range);
  if (range->before != nullptr && range->before->free) {
    range = range->before;
    delist(range);
    absorb_next(range);
  }
  enlist(range);
}

// Merges `range`, which is in no set, with the free range after it.
void Heap::absorb_next(Range* range) {
  Range* next = range->after;
  if (next->free) delist(next);
  range->pending.add(next->pending);
  range->size += next->size;
  range->after = next->after;
  if (range->after != nullptr) range->after->before = range;
  delete next;
}

void Heap::enlist(Range* range) {
  range->pending.remove_if([](Ticket ticket) { return vm::is_done(ticket); });
  range->listed_clean = range->pending.empty();
  (range->listed_clean ? clean_ : waiting_).insert(range);
}

void Heap::delist(Range* range) { (range->listed_clean ? clean_ : waiting_).erase(range); }

void Heap::refresh_pending() {
  const std::vector<Range*> all(waiting_.begin(), waiting_.end());
  for (Range* range : all) {
    delist(range);
    enlist(range);
  }
}

void Heap::pending_tickets(TicketList* out) const {
  for (const Range* range : waiting_) out->add(range->pending);
}

void Heap::drop_extent(size_t index) {
  Extent* extent = extents_[index];
  for (Range* range = extent->first; range != nullptr;) {
    Range* after = range->after;
    if (range->free) delist(range);
    delete range;
    range = after;
  }
  device_->ops.memory_free(device_->handle, extent->memory);
  reserved_ -= extent->size;
  extents_.erase(extents_.begin() + static_cast<std::ptrdiff_t>(index));
  delete extent;
}

uint64_t Heap::shrink(uint64_t untouched_since, uint64_t keep) {
  refresh_pending();
  std::sort(extents_.begin(), extents_.end(),
            [](const Extent* a, const Extent* b) { return a->last_use > b->last_use; });
  uint64_t given = 0;
  for (size_t i = extents_.size(); i-- > 0;) {
    const Range* range = extents_[i]->first;
    const bool idle = range->free && range->after == nullptr && range->listed_clean;
    if (!idle || (extents_[i]->touched > untouched_since && free_bytes() <= keep)) continue;
    given += extents_[i]->size;
    drop_extent(i);
  }
  return given;
}

std::string Heap::largest_live(size_t lines) const {
  std::map<uint64_t, uint64_t, std::greater<>> counts;
  for (const Extent* extent : extents_) {
    for (const Range* range = extent->first; range != nullptr; range = range->after) {
      if (!range->free) ++counts[range->size];
    }
  }
  std::string text;
  for (const auto& [size, count] : counts) {
    if (lines-- == 0) return fmt::format("{}, ...", text);
    if (!text.empty()) text += ", ";
    text += fmt::format("{} x {}", count, bytes_text(size));
  }
  return text;
}

}  // namespace tenon::memory
