#include "core/vm/staging.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/vm/vm.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

// The pool of `device` for transfers; 0 if the device has only the pool of operands.
uint32_t staging_pool(const DeviceState& device) {
  constexpr uint64_t needed = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT;
  const auto& pools = device.opened->info.pools;
  uint32_t found = 0;
  for (uint32_t i = 1; i < pools.size(); ++i) {
    if ((pools[i].flags & needed) != needed) continue;  // this also excludes image pools
    if ((pools[i].flags & EP_POOL_FLAG_STAGING) != 0) return i;
    if (found == 0) found = i;
  }
  return found;
}

}  // namespace

Staging* Staging::make(uint64_t bytes) {
  auto* staging = new Staging;
  staging->plain = std::make_unique_for_overwrite<char[]>(bytes);
  staging->data = staging->plain.get();
  staging->size = bytes;
  return staging;
}

void Staging::release() {
  if (count.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (pool != nullptr) {
    pool->put_back(this);
  } else {
    delete this;
  }
}

StagingPool::StagingPool(DeviceState* device) : device_(device), pool_(staging_pool(*device)) {}

StagingHandle StagingPool::take(uint64_t bytes) {
  const uint64_t size = std::max(kSmallest, std::bit_ceil(bytes));
  auto& list = free_[static_cast<size_t>(std::countr_zero(size / kSmallest))];
  {
    std::lock_guard lock(mutex_);
    if (!list.empty()) {
      std::unique_ptr<Staging> staging = std::move(list.back());
      list.pop_back();
      kept_ -= size;
      staging->count.store(1, std::memory_order_relaxed);
      staging->failure = Status();
      return StagingHandle(staging.release());
    }
  }
  auto staging = std::make_unique<Staging>();
  if (pool_ == 0 || !pin(staging.get(), size)) staging.reset(Staging::make(size));
  staging->pool = this;
  return StagingHandle(staging.release());
}

bool StagingPool::pin(Staging* staging, uint64_t bytes) {
  ep_error* error = nullptr;
  void* address = nullptr;
  ep_status code = device_->ops.memory_allocate(device_->handle, pool_, bytes, &staging->pinned, &error);
  if (code == EP_STATUS_OK) {
    code = device_->ops.memory_map(device_->handle, staging->pinned, &address, &error);
    if (code != EP_STATUS_OK) device_->ops.memory_free(device_->handle, std::exchange(staging->pinned, nullptr));
  }
  if (code != EP_STATUS_OK) {
    const Status why = loader::take_error(code, error, {});
    loader::log(loader::LogTopic::memory, loader::LogLevel::info,
                fmt::format("{} gives no pinned memory for an upload, which goes through plain memory instead: {}",
                            device_->opened->spelling, why.message()));
    return false;
  }
  staging->data = static_cast<char*>(address);
  staging->size = bytes;
  std::lock_guard lock(mutex_);
  held_ += bytes;
  return true;
}

void StagingPool::put_back(Staging* staging) {
  std::unique_ptr<Staging> owned(staging);
  std::lock_guard lock(mutex_);
  if (kept_ + staging->size > kMostKept) return give_back(*staging);
  kept_ += staging->size;
  free_[static_cast<size_t>(std::countr_zero(staging->size / kSmallest))].push_back(std::move(owned));
}

void StagingPool::give_back(Staging& staging) {
  if (staging.pinned == nullptr) return;
  held_ -= staging.size;
  device_->ops.memory_free(device_->handle, staging.pinned);
}

void StagingPool::trim() {
  std::lock_guard lock(mutex_);
  for (auto& list : free_) {
    for (const auto& staging : list) give_back(*staging);
    list.clear();
  }
  kept_ = 0;
}

uint64_t StagingPool::held() const {
  std::lock_guard lock(mutex_);
  return held_;
}

InFlight& InFlight::instance() {
  static auto* one = new InFlight;
  return *one;
}

void InFlight::make_room(uint64_t bytes) {
  for (;;) {
    Ticket oldest;
    {
      std::lock_guard lock(mutex_);
      while (!transfers_.empty() && is_done(transfers_.front().last)) {
        held_ -= transfers_.front().bytes;
        transfers_.pop_front();
      }
      if (transfers_.empty() || held_ + bytes <= kMost) return;
      oldest = transfers_.front().last;
    }
    if (!wait(oldest).ok()) return;
  }
}

void InFlight::add(Ticket last, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  transfers_.push_back({last, bytes});
  held_ += bytes;
}

}  // namespace tenon::vm
