// SmallBlocks: blocks up to 32 KiB, cut from slabs by size class. Each thread has its own lists, which only that thread
// uses. Between these lists and the slabs there is one shared list per class, with which threads exchange batches. So a
// block that another thread has freed can be reused.
//
// A free block remembers the tickets that still use it. A thread takes blocks without tickets first, then the block
// that was freed longest ago.
//
// Threads: ThreadLists belongs to one thread; SmallBlocks is called with the allocator's lock held.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/device/block.h"
#include "core/device/ticket_list.h"
#include "core/memory/heap.h"
#include "core/memory/size_class.h"

namespace tenon::memory {

struct Slab;

struct SmallBlock {
  SmallBlock* next = nullptr;
  Slab* slab = nullptr;
  Block block;
  TicketList pending;
  uint8_t size_class = 0;
};

// A range of the heap cut into blocks of one class.
struct Slab {
  Range* range = nullptr;
  uint32_t count = 0;
  uint32_t idle = 0;     // the number of its blocks in the shared list
  uint64_t touched = 0;  // the tick at which `idle` last changed
  std::unique_ptr<SmallBlock[]> blocks;
};

// The free blocks of one class: those without tickets, most recently freed first, and those with tickets, first freed
// first.
struct ClassList {
  SmallBlock* clean = nullptr;
  SmallBlock* waiting = nullptr;
  SmallBlock* waiting_last = nullptr;
  uint32_t count = 0;
  uint32_t limit = 0;  // in a thread's list: the most blocks it keeps

  void push_clean(SmallBlock* block) {
    block->next = clean;
    clean = block;
    ++count;
  }
  void push_waiting(SmallBlock* block) {
    block->next = nullptr;
    (waiting == nullptr ? waiting : waiting_last->next) = block;
    waiting_last = block;
    ++count;
  }
  // Null when the list is empty.
  SmallBlock* pop_clean() {
    SmallBlock* block = clean;
    if (block != nullptr) {
      clean = block->next;
      --count;
    }
    return block;
  }
  SmallBlock* pop_waiting() {
    SmallBlock* block = waiting;
    if (block != nullptr) {
      waiting = block->next;
      --count;
    }
    return block;
  }
  SmallBlock* pop() { return clean != nullptr ? pop_clean() : pop_waiting(); }
};

// The lists of one thread. `taken` and `given` count bytes; only the thread writes them, any thread may read them.
struct ThreadLists {
  ThreadLists();

  std::array<ClassList, kSizeClasses> classes;
  std::atomic<uint64_t> taken{0};
  std::atomic<uint64_t> given{0};
};

class SmallBlocks {
 public:
  // kept: the most free blocks of a class that a thread keeps. batch: the number of blocks that move at once.
  static uint32_t kept(int size_class) { return class_bytes(size_class) <= 4096 ? 64 : 16; }
  static uint32_t batch(int size_class) { return kept(size_class) / 2; }

  // Moves a batch to `list`; cuts a new slab if there is no free block. False: the heap has no room for a slab, and
  // `status` says why it could not grow.
  bool refill(Heap& heap, int size_class, ClassList& list, Status* status);
  // Moves blocks of `list` back until `keep` are left.
  void take_back(int size_class, ClassList& list, uint32_t keep);
  // Returns slabs without live blocks that were unused since tick `untouched_since` to the heap.
  void shrink(Heap& heap, uint64_t untouched_since);
  void pending_tickets(TicketList* out) const;

  void set_tick(uint64_t tick) { tick_ = tick; }
  // Bytes of all slabs.
  uint64_t slab_bytes() const { return slab_bytes_; }

 private:
  bool cut_slab(Heap& heap, int size_class, Status* status);
  void filter(ClassList& list);

  std::array<ClassList, kSizeClasses> shared_;
  std::vector<std::unique_ptr<Slab>> slabs_;
  uint64_t slab_bytes_ = 0;
  uint64_t tick_ = 1;
};

}  // namespace tenon::memory
