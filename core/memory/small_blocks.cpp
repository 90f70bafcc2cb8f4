#include "core/memory/small_blocks.h"

#include <algorithm>

#include "core/vm/vm.h"

namespace tenon::memory {
namespace {

bool still_used(const SmallBlock* block) {
  return std::any_of(block->pending.begin(), block->pending.end(), [](Ticket ticket) { return !vm::is_done(ticket); });
}

// The number of blocks of a slab: about 64 KiB of them, at least eight.
uint32_t blocks_per_slab(int size_class) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(64 * 1024 / class_bytes(size_class), 8, 256));
}

}  // namespace

ThreadLists::ThreadLists() {
  for (int i = 0; i < kSizeClasses; ++i) classes[static_cast<size_t>(i)].limit = SmallBlocks::kept(i);
}

bool SmallBlocks::refill(Heap& heap, int size_class, ClassList& list, Status* status) {
  ClassList& shared = shared_[static_cast<size_t>(size_class)];
  if (shared.count == 0 && !cut_slab(heap, size_class, status)) return false;
  for (uint32_t i = 0; i < batch(size_class) && shared.count > 0; ++i) {
    SmallBlock* block = shared.pop();
    --block->slab->idle;
    block->slab->touched = tick_;
    if (!block->pending.empty() && !still_used(block)) block->pending.clear();
    block->pending.empty() ? list.push_clean(block) : list.push_waiting(block);
  }
  return true;
}

void SmallBlocks::take_back(int size_class, ClassList& list, uint32_t keep) {
  ClassList& shared = shared_[static_cast<size_t>(size_class)];
  while (list.count > keep) {
    SmallBlock* block = list.waiting != nullptr ? list.pop_waiting() : list.pop_clean();
    ++block->slab->idle;
    block->slab->touched = tick_;
    block->pending.empty() ? shared.push_clean(block) : shared.push_waiting(block);
  }
}

bool SmallBlocks::cut_slab(Heap& heap, int size_class, Status* status) {
  const uint64_t bytes = class_bytes(size_class);
  Range* range = nullptr;
  uint32_t count = blocks_per_slab(size_class);
  for (; range == nullptr && count > 0; count /= 4) {
    range = heap.take(count * bytes);
    if (range != nullptr) break;
    Result<Range*> made = heap.take_new(count * bytes);
    if (made.ok()) {
      range = made.value();
      break;
    }
    *status = made.status();
  }
  if (range == nullptr) return false;

  auto slab = std::make_unique<Slab>();
  slab->range = range;
  slab->count = slab->idle = count;
  slab->touched = tick_;
  slab->blocks = std::make_unique<SmallBlock[]>(count);
  ClassList& shared = shared_[static_cast<size_t>(size_class)];
  for (uint32_t i = count; i-- > 0;) {
    SmallBlock& block = slab->blocks[i];
    const uint64_t offset = range->offset + i * bytes;
    char* host = range->extent->host;
    block.slab = slab.get();
    block.size_class = static_cast<uint8_t>(size_class);
    block.block = {range->extent->memory, offset, bytes, host != nullptr ? host + offset : nullptr, nullptr};
    block.block.owner = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(&block) | 1);
    block.pending.add(range->pending);
    block.pending.empty() ? shared.push_clean(&block) : shared.push_waiting(&block);
  }
  range->pending.clear();
  slab_bytes_ += range->size;
  slabs_.push_back(std::move(slab));
  return true;
}

// Removes from a shared list the blocks of slabs that are about to be returned. Such slabs have a count of 0.
void SmallBlocks::filter(ClassList& list) {
  ClassList kept;
  std::vector<SmallBlock*> clean;
  while (SmallBlock* block = list.pop_clean()) {
    if (block->slab->count != 0) clean.push_back(block);
  }
  while (!clean.empty()) {
    kept.push_clean(clean.back());
    clean.pop_back();
  }
  while (SmallBlock* block = list.pop_waiting()) {
    if (block->slab->count != 0) kept.push_waiting(block);
  }
  list = kept;
}

void SmallBlocks::shrink(Heap& heap, uint64_t untouched_since) {
  std::array<bool, kSizeClasses> changed{};
  for (auto& slab : slabs_) {
    if (slab->idle != slab->count || slab->touched > untouched_since) continue;
    changed[slab->blocks[0].size_class] = true;
    slab->count = 0;
  }
  for (int i = 0; i < kSizeClasses; ++i) {
    if (changed[static_cast<size_t>(i)]) filter(shared_[static_cast<size_t>(i)]);
  }
  std::erase_if(slabs_, [&](const std::unique_ptr<Slab>& slab) {
    if (slab->count != 0) return false;
    TicketList pending;
    for (uint32_t i = 0; i < slab->idle; ++i) pending.add(slab->blocks[i].pending);
    slab_bytes_ -= slab->range->size;
    heap.give(slab->range, pending);
    return true;
  });
}

void SmallBlocks::pending_tickets(TicketList* out) const {
  for (const ClassList& list : shared_) {
    for (const SmallBlock* block = list.waiting; block != nullptr; block = block->next) out->add(block->pending);
  }
}

}  // namespace tenon::memory
