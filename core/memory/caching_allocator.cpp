#include "core/memory/caching_allocator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <mutex>

#include "core/device/process.h"
#include "core/device/trace.h"
#include "core/memory/heap.h"
#include "core/memory/housekeeping.h"
#include "core/memory/images.h"
#include "core/memory/small_blocks.h"
#include "core/vm/vm.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::memory {
namespace {

constexpr uint64_t kAlwaysKept = uint64_t{64} << 20;
constexpr uint64_t kPeakTicks = 10;
constexpr uint64_t kTickNs = 1000000000;

uint64_t now_ns() { return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()); }

std::string mib(uint64_t bytes) {
  const uint64_t tenths = (bytes * 10 + (uint64_t{1} << 19)) >> 20;
  return fmt::format("{}.{} MiB", tenths / 10, tenths % 10);
}

// True for failures that freeing memory may fix.
bool is_shortage(const Status& status) {
  return status.code() == Code::out_of_device_memory || status.code() == Code::out_of_host_memory;
}

class CachingAllocator;

// All allocators. An index is never reused, so a thread's table cannot refer to the wrong allocator.
struct Registry {
  std::mutex mutex;
  std::vector<CachingAllocator*> allocators;  // null: the allocator was destroyed
};

Registry& registry() {
  static auto* all = new Registry;
  return *all;
}

// The lists of a thread, by allocator index. Plain data, so that it can be read at any time in the thread's life.
// `ended` is set once the guard has run.
struct ThreadTable {
  ThreadLists** lists;
  uint32_t size;
  bool ended;
};
__attribute__((tls_model("initial-exec"))) thread_local constinit ThreadTable thread_table{nullptr, 0, false};

struct ThreadGuard {
  void arm() {}
  ~ThreadGuard();
};
thread_local ThreadGuard thread_guard;

class CachingAllocator final : public Allocator {
 public:
  CachingAllocator(loader::OpenDevice* device, uint64_t limit)
      : device_(device), heap_(device, limit), images_(device, limit) {
    Registry& all = registry();
    std::lock_guard lock(all.mutex);
    index_ = static_cast<uint32_t>(all.allocators.size());
    all.allocators.push_back(this);
  }

  ~CachingAllocator() override {
    Registry& all = registry();
    std::lock_guard lock(all.mutex);
    all.allocators[index_] = nullptr;
  }

  Result<Block> allocate(uint64_t bytes, TicketList* waits) override {
    Block block;
    if (take_at_hand(bytes, &block)) return block;
    return bytes > kSmallLimit || heap_.exclusive() ? allocate_large(bytes, waits)
                                                    : allocate_small(size_class(bytes), waits);
  }

  // A small block whose class is a power of two starts 256-aligned, and so does every larger block.
  Result<Block> allocate_aligned(uint64_t bytes, TicketList* waits) override {
    return allocate(bytes <= kSmallLimit && !heap_.exclusive() ? std::max<uint64_t>(256, std::bit_ceil(bytes)) : bytes,
                    waits);
  }

  Result<Block> allocate_image(const Layout& layout, uint64_t bytes, TicketList* waits) override {
    const TraceScope trace("allocate", "memory", device_->spelling);
    Status status;
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (attempt == 1) recover();
      std::lock_guard lock(mutex_);
      maybe_tick();
      Image* image = images_.take(layout);
      if (image == nullptr) {
        const Result<Image*> made = images_.take_new(layout, bytes, heap_.reserved_bytes());
        if (!made.ok() && !is_shortage(made.status())) return made.status();
        status = made.status();
        if (!made.ok()) continue;
        image = made.value();
        heap_.set_elsewhere(images_.reserved_bytes());
      }
      hand_over(image->pending, waits);
      note_peak();
      return Block{image->memory, 0, image->bytes, nullptr, tagged(image)};
    }
    return exhausted(bytes, status);
  }

  bool take_at_hand(uint64_t bytes, Block* out) override {
    ThreadLists* lists = own_lists();
    if (lists == nullptr || bytes > kSmallLimit) return false;
    SmallBlock* block = lists->classes[static_cast<size_t>(size_class(bytes))].pop_clean();
    if (block == nullptr) return false;
    count(lists->taken, block->block.size);
    *out = block->block;
    return true;
  }

  void release(const Block& block, std::span<const Ticket> pending) override {
    const auto owner = reinterpret_cast<uintptr_t>(block.owner);
    if ((owner & 1) == 0) {
      if ((owner & kImageTag) != 0) return release_image(block, pending);
      return release_large(reinterpret_cast<Range*>(owner), pending);
    }
    auto* small = reinterpret_cast<SmallBlock*>(owner & ~uintptr_t{1});
    ThreadLists* lists = own_lists();
    if (lists == nullptr || !pending.empty()) [[unlikely]]
      return release_small(small, pending);
    ClassList& list = lists->classes[small->size_class];
    list.push_clean(small);
    count(lists->given, small->block.size);
    if (list.count > SmallBlocks::kept(small->size_class)) [[unlikely]]
      overflow(small->size_class, list);
  }

  void recover() override {
    trim();
    TicketList pending;
    {
      std::lock_guard lock(mutex_);
      heap_.pending_tickets(&pending);
      small_.pending_tickets(&pending);
      images_.pending_tickets(&pending);
    }
    for (Ticket ticket : pending) static_cast<void>(vm::wait(ticket));
    if (device_->ops.device_trim != nullptr) device_->ops.device_trim(device_->handle);
    trim();
  }

  void trim() override {
    flush_own();
    std::lock_guard lock(mutex_);
    small_.shrink(heap_, ~uint64_t{0});
    heap_.shrink(~uint64_t{0}, 0);
    shrink_images(~uint64_t{0});
  }

  void tick() override {
    std::lock_guard lock(mutex_);
    tick_locked(now_ns());
  }

  void tick_if_due() override {
    std::lock_guard lock(mutex_);
    const uint64_t now = now_ns();
    if (now - last_tick_ns_ >= kTickNs) tick_locked(now);
  }

  Stats stats() const override {
    std::lock_guard lock(mutex_);
    return stats_locked();
  }

  // Takes over the lists of a thread that ends.
  void adopt(ThreadLists* lists) {
    std::lock_guard lock(mutex_);
    for (int i = 0; i < kSizeClasses; ++i) small_.take_back(i, lists->classes[static_cast<size_t>(i)], 0);
    small_taken_ += lists->taken.load(std::memory_order_relaxed);
    small_given_ += lists->given.load(std::memory_order_relaxed);
    std::erase_if(threads_, [&](const auto& owned) { return owned.get() == lists; });
  }

  bool holds_free_memory() const {
    std::lock_guard lock(mutex_);
    return heap_.reserved_bytes() + images_.reserved_bytes() > live_bytes();
  }

  std::string row() const {
    std::lock_guard lock(mutex_);
    const Stats all = stats_locked();
    std::string text = fmt::format("  {}: {} live, {} free, {} in {} blocks", device_->spelling, mib(all.live),
                                   mib(all.cached), mib(all.reserved), all.extents);
    if (all.limit != 0) text += fmt::format(", limit {}", mib(all.limit));
    if (const std::string live = heap_.largest_live(5); !live.empty()) text += fmt::format("; live: {}", live);
    return text;
  }

 private:
  // Tags in Block::owner: a small block has the lowest bit, an image the next bit, a range of the heap neither.
  static constexpr uintptr_t kImageTag = 2;

  static void* tagged(Image* image) { return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(image) | kImageTag); }

  static void count(std::atomic<uint64_t>& counter, uint64_t bytes) {
    counter.store(counter.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }

  ThreadLists* own_lists() const {
    const ThreadTable& table = thread_table;
    return index_ < table.size ? table.lists[index_] : nullptr;
  }

  // The calling thread's lists; creates them if needed; null while the thread ends. The caller holds the lock.
  ThreadLists* make_own_lists() {
    if (ThreadLists* lists = own_lists()) return lists;
    ThreadTable& table = thread_table;
    if (table.ended) return nullptr;
    thread_guard.arm();
    if (index_ >= table.size) {
      const uint32_t size = std::max(8u, index_ * 2);
      auto** larger = new ThreadLists*[size]();
      std::copy_n(table.lists, table.size, larger);
      delete[] table.lists;
      table.lists = larger;
      table.size = size;
    }
    threads_.push_back(std::make_unique<ThreadLists>());
    return table.lists[index_] = threads_.back().get();
  }

  static void hand_over(TicketList& pending, TicketList* waits) {
    for (Ticket ticket : pending) {
      if (!vm::is_done(ticket)) waits->add(ticket);
    }
    pending.clear();
  }

  Block take(ThreadLists* lists, SmallBlock* block, TicketList* waits) {
    hand_over(block->pending, waits);
    if (lists != nullptr) {
      count(lists->taken, block->block.size);
    } else {
      small_taken_ += block->block.size;
    }
    return block->block;
  }

  Result<Block> allocate_small(int size_class, TicketList* waits) {
    if (ThreadLists* lists = own_lists()) {
      ClassList& list = lists->classes[static_cast<size_t>(size_class)];
      if (SmallBlock* block = list.pop_waiting()) return take(lists, block, waits);
    }
    Status status;
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (attempt == 1) recover();
      std::lock_guard lock(mutex_);
      maybe_tick();
      ThreadLists* lists = make_own_lists();
      ClassList single;
      ClassList& list = lists != nullptr ? lists->classes[static_cast<size_t>(size_class)] : single;
      if (!small_.refill(heap_, size_class, list, &status)) {
        if (!is_shortage(status)) return status;
        continue;
      }
      SmallBlock* block = list.pop();
      if (lists == nullptr) small_.take_back(size_class, list, 0);
      note_peak();
      return take(lists, block, waits);
    }
    return exhausted(class_bytes(size_class), status);
  }

  Result<Block> allocate_large(uint64_t bytes, TicketList* waits) {
    const TraceScope trace("allocate", "memory", device_->spelling);
    Status status;
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (attempt == 1) recover();
      std::lock_guard lock(mutex_);
      maybe_tick();
      Range* range = heap_.take(bytes);
      if (range == nullptr) {
        Result<Range*> made = heap_.take_new(bytes);
        if (!made.ok() && !is_shortage(made.status())) return made.status();
        status = made.status();
        if (made.ok()) range = made.value();
      }
      if (range == nullptr) continue;
      hand_over(range->pending, waits);
      note_peak();
      char* host = range->extent->host;
      return Block{range->extent->memory, range->offset, range->size, host != nullptr ? host + range->offset : nullptr,
                   range};
    }
    return exhausted(bytes, status);
  }

  void release_small(SmallBlock* block, std::span<const Ticket> pending) {
    for (Ticket ticket : pending) {
      if (!vm::is_done(ticket)) block->pending.add(ticket);
    }
    if (ThreadLists* lists = own_lists()) {
      ClassList& list = lists->classes[block->size_class];
      block->pending.empty() ? list.push_clean(block) : list.push_waiting(block);
      count(lists->given, block->block.size);
      if (list.count > list.limit) overflow(block->size_class, list);
      return;
    }
    std::lock_guard lock(mutex_);
    ClassList single;
    block->pending.empty() ? single.push_clean(block) : single.push_waiting(block);
    small_given_ += block->block.size;
    small_.take_back(block->size_class, single, 0);
    static_cast<void>(make_own_lists());
  }

  void overflow(int size_class, ClassList& list) {
    {
      std::lock_guard lock(mutex_);
      small_.take_back(size_class, list, SmallBlocks::kept(size_class) - SmallBlocks::batch(size_class));
      maybe_tick();
    }
    wake_housekeeping();
  }

  void release_large(Range* range, std::span<const Ticket> pending) {
    {
      std::lock_guard lock(mutex_);
      heap_.give(range, pending);
      if (heap_.free_bytes() > kAlwaysKept) bound_cache();
      maybe_tick();
    }
    wake_housekeeping();
  }

  void release_image(const Block& block, std::span<const Ticket> pending) {
    {
      std::lock_guard lock(mutex_);
      images_.give(reinterpret_cast<Image*>(reinterpret_cast<uintptr_t>(block.owner) & ~kImageTag), pending);
      if (images_.free_bytes() > kAlwaysKept) shrink_images(~uint64_t{0});
      maybe_tick();
    }
    wake_housekeeping();
  }

  void shrink_images(uint64_t untouched_since) {
    images_.shrink(untouched_since);
    heap_.set_elsewhere(images_.reserved_bytes());
  }

  void flush_own() {
    ThreadLists* lists = own_lists();
    if (lists == nullptr) return;
    std::lock_guard lock(mutex_);
    for (int i = 0; i < kSizeClasses; ++i) small_.take_back(i, lists->classes[static_cast<size_t>(i)], 0);
  }

  Status exhausted(uint64_t bytes, const Status& cause) const;

  uint64_t live_bytes() const {
    uint64_t taken = small_taken_;
    uint64_t given = small_given_;
    for (const auto& lists : threads_) {
      given += lists->given.load(std::memory_order_relaxed);
      taken += lists->taken.load(std::memory_order_relaxed);
    }
    const uint64_t small = taken > given ? taken - given : 0;
    return heap_.live_bytes() - std::min(heap_.live_bytes(), small_.slab_bytes()) + small + images_.live_bytes();
  }

  Stats stats_locked() const {
    Stats all;
    all.live = live_bytes();
    all.peak = std::max(peak_, all.live);
    all.reserved = heap_.reserved_bytes() + images_.reserved_bytes();
    all.cached = all.reserved - std::min(all.reserved, all.live);
    all.extents = heap_.extent_count() + images_.count();
    all.limit = heap_.limit();
    return all;
  }

  // Called on slow paths only. So the peak counts blocks above 32 KiB and slabs, not each small block.
  void note_peak() {
    peak_ = std::max(peak_, live_bytes());
    uint64_t& recent = recent_peaks_[tick_count_ % kPeakTicks];
    recent = std::max(recent, heap_.live_bytes());
  }

  void bound_cache() {
    const uint64_t bound = std::max(kAlwaysKept, *std::max_element(recent_peaks_.begin(), recent_peaks_.end()));
    if (heap_.free_bytes() > bound) heap_.shrink(0, bound);
  }

  void maybe_tick() {
    if ((++slow_calls_ & 63) != 0) return;
    const uint64_t now = now_ns();
    if (now - last_tick_ns_ >= kTickNs) tick_locked(now);
  }

  void tick_locked(uint64_t now) {
    last_tick_ns_ = now;
    ++tick_count_;
    heap_.set_tick(tick_count_);
    small_.set_tick(tick_count_);
    images_.set_tick(tick_count_);
    recent_peaks_[tick_count_ % kPeakTicks] = heap_.live_bytes();
    if (tick_count_ < 3) return;
    small_.shrink(heap_, tick_count_ - 2);
    shrink_images(tick_count_ - 2);
    const uint64_t given = heap_.shrink(tick_count_ - 2, ~uint64_t{0});
    bound_cache();
    if (given != 0 && loader::log_enabled(loader::LogTopic::memory, loader::LogLevel::debug)) {
      loader::log(
          loader::LogTopic::memory, loader::LogLevel::debug,
          fmt::format("gave back {} of {} that nothing had used for two seconds", mib(given), device_->spelling));
    }
  }

  loader::OpenDevice* device_;
  uint32_t index_ = 0;
  mutable std::mutex mutex_;
  Heap heap_;
  SmallBlocks small_;
  Images images_;
  std::vector<std::unique_ptr<ThreadLists>> threads_;
  uint64_t small_taken_ = 0;  // by threads that ended or have no lists
  uint64_t small_given_ = 0;
  uint64_t peak_ = 0;
  std::array<uint64_t, kPeakTicks> recent_peaks_{};
  uint64_t tick_count_ = 1;
  uint64_t last_tick_ns_ = 0;
  uint32_t slow_calls_ = 0;
};

ThreadGuard::~ThreadGuard() {
  const ThreadTable table = thread_table;
  const std::unique_ptr<ThreadLists*[]> lists(table.lists);
  thread_table = {nullptr, 0, true};
  if (process::forked()) return;
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  for (uint32_t i = 0; i < table.size; ++i) {
    if (table.lists[i] != nullptr && all.allocators[i] != nullptr) all.allocators[i]->adopt(table.lists[i]);
  }
}

Status CachingAllocator::exhausted(uint64_t bytes, const Status& cause) const {
  std::string text = fmt::format(
      "{} cannot allocate {} bytes, even after cached memory was returned and pending work has ended: {}\nMemory in "
      "use:",
      device_->spelling, bytes, cause.message());
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  for (const CachingAllocator* allocator : all.allocators) {
    if (allocator != nullptr) text += fmt::format("\n{}", allocator->row());
  }
  return Status(
      Code::out_of_device_memory, std::move(text),
      "Drop tensors that are no longer needed, use smaller batches, or raise TENON_MEMORY_LIMIT if it is set.");
}

}  // namespace

bool tick_all() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  bool more = false;
  for (CachingAllocator* allocator : all.allocators) {
    if (allocator == nullptr) continue;
    allocator->tick();
    more = allocator->holds_free_memory() || more;
  }
  return more;
}

std::unique_ptr<Allocator> make_allocator(loader::OpenDevice* device) {
  return std::make_unique<CachingAllocator>(device, loader::settings().memory_limit);
}

}  // namespace tenon::memory
