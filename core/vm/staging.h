// Staging: host memory between two transfers. It comes from the device's staging pool if there is one. That memory is
// pinned, so the copy engine reads it without a copy by the driver. Otherwise it is plain host memory. InFlight limits
// the memory that transfers hold.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "core/device/device_state.h"
#include "core/device/ticket.h"
#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon::vm {

class StagingPool;

// Kept alive by its creator and by each slot that uses it.
struct Staging {
  std::atomic<int32_t> count{1};
  char* data = nullptr;
  uint64_t size = 0;
  ep_memory* pinned = nullptr;    // its memory on the device, at offset 0; null: plain memory
  StagingPool* pool = nullptr;    // the pool that it returns to; null: it is freed
  std::unique_ptr<char[]> plain;  // the memory of `data`, if it is not pinned
  // The failure of the instruction that fills this memory. Written before that instruction retires, since its failure
  // may be dropped before the next instruction is submitted.
  Status failure;

  // Plain memory of `bytes`.
  static Staging* make(uint64_t bytes);
  void retain() { count.fetch_add(1, std::memory_order_relaxed); }
  void release();
};

struct ReleaseStaging {
  void operator()(Staging* staging) const { staging->release(); }
};
using StagingHandle = std::unique_ptr<Staging, ReleaseStaging>;

// The staging memory of one device, in reusable blocks of a few sizes. Threads: every function is thread-safe.
class StagingPool {
 public:
  static constexpr uint64_t kLargest = uint64_t{4} << 20;

  explicit StagingPool(DeviceState* device);
  // Staging memory of at least `bytes`, at most kLargest: pinned if the device provides it, else plain.
  StagingHandle take(uint64_t bytes);
  // Returns unused blocks to the device.
  void trim();
  // The bytes of the device's pool that it holds.
  uint64_t held() const;

 private:
  friend struct Staging;
  static constexpr uint64_t kSmallest = uint64_t{128} << 10;
  static constexpr size_t kSizes = 6;

  static constexpr uint64_t kMostKept = uint64_t{16} << 20;

  void put_back(Staging* staging);
  void give_back(Staging& staging);
  bool pin(Staging* staging, uint64_t bytes);

  DeviceState* device_;
  uint32_t pool_ = 0;  // the device's pool; 0: it has none
  mutable std::mutex mutex_;
  std::array<std::vector<std::unique_ptr<Staging>>, kSizes> free_;
  uint64_t held_ = 0;  // pinned
  uint64_t kept_ = 0;  // bytes of the blocks in `free_`
};

// InFlight: limits the staging memory that transfers in flight hold. A transfer that would exceed the limit first waits
// for the oldest transfers. One object for the process. Threads: every function is thread-safe.
class InFlight {
 public:
  static constexpr uint64_t kMost = uint64_t{64} << 20;

  static InFlight& instance();
  // Returns once `bytes` more fit within the limit, or nothing else is held.
  void make_room(uint64_t bytes);
  // Notes that a transfer holds `bytes` until `last` is done.
  void add(Ticket last, uint64_t bytes);

 private:
  struct Transfer {
    Ticket last;
    uint64_t bytes;
  };

  std::mutex mutex_;
  std::deque<Transfer> transfers_;
  uint64_t held_ = 0;
};

}  // namespace tenon::vm
