#include "providers/cuda/faults/fault_log.h"

#include <cstring>

#include "providers/cuda/driver/driver.h"

namespace tenon::provider::cuda {

CUresult FaultLog::take_memory(const Driver& driver, CUstream stream) {
  if (claim_ == 0) {
    if (const CUresult result = driver.mem_alloc(&claim_, sizeof(uint64_t)); result != CUDA_SUCCESS) return result;
    const CUresult result = driver.memset_d8_async(claim_, 0, sizeof(uint64_t), stream);
    if (result != CUDA_SUCCESS) return result;
  }
  void* place = nullptr;
  const CUresult result = driver.mem_host_alloc(&place, fault_slots * sizeof(FaultRecord),
                                                CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  if (result != CUDA_SUCCESS) return result;
  std::memset(place, 0, fault_slots * sizeof(FaultRecord));
  slots_ = static_cast<FaultRecord*>(place);
  return CUDA_SUCCESS;
}

CUresult FaultLog::make_room(const Driver& driver, CUstream stream) {
  const std::lock_guard lock(mutex_);
  if (slots_ == nullptr) {
    if (const CUresult result = take_memory(driver, stream); result != CUDA_SUCCESS) return result;
  }
  // A captured stream cannot be waited for, and its launches keep their slots as long as the list lives.
  if (kept_) return last_.load(std::memory_order_relaxed) + 1 < fault_slots ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
  if (pending_.size() >= fault_slots) settle();
  if (pending_.size() < fault_slots) return CUDA_SUCCESS;
  if (const CUresult result = driver.stream_synchronize(stream); result != CUDA_SUCCESS) return result;
  complete(last_.load(std::memory_order_relaxed));
  settle();
  return CUDA_SUCCESS;
}

void FaultLog::release(const Driver& driver) {
  const std::lock_guard lock(mutex_);
  if (slots_ != nullptr) driver.mem_free_host(slots_);
  if (claim_ != 0) driver.mem_free(claim_);
  slots_ = nullptr;
  claim_ = 0;
  pending_.clear();
  ready_.clear();
  open_.store(0, std::memory_order_release);
}

FaultTarget FaultLog::add(uint64_t tag, int32_t operand) {
  const std::lock_guard lock(mutex_);
  const uint64_t sequence = last_.load(std::memory_order_relaxed) + 1;
  pending_.push_back({sequence, tag, operand, nullptr});
  open_.store(pending_.size() + ready_.size(), std::memory_order_release);
  last_.store(sequence, std::memory_order_release);
  return {claim_, reinterpret_cast<uint64_t>(&slots_[sequence % fault_slots]), sequence};
}

void FaultLog::add_replay(uint64_t tag, std::shared_ptr<FaultLog> list) {
  const std::lock_guard lock(mutex_);
  const uint64_t sequence = last_.load(std::memory_order_relaxed) + 1;
  pending_.push_back({sequence, tag, 0, std::move(list)});
  open_.store(pending_.size() + ready_.size(), std::memory_order_release);
  last_.store(sequence, std::memory_order_release);
}

void FaultLog::end_replay(FaultLog& log, uint64_t sequence) {
  log.complete(sequence);
  const std::lock_guard lock(log.mutex_);
  log.settle();
}

ep_fault FaultLog::fault_of(const Pending& launch, uint64_t tag, uint64_t flags) const {
  const FaultRecord& slot = slots_[launch.sequence % fault_slots];
  const bool own = launch.operand == of_kernel;
  return {tag, slot.code, own ? slot.operand : launch.operand, slot.value, slot.limit, flags};
}

// Takes the faults of a replay, and clears the slots for the next one.
void FaultLog::collect(uint64_t tag, std::deque<ep_fault>* out_faults) {
  const std::lock_guard lock(mutex_);
  for (const Pending& launch : pending_) {
    FaultSlot& slot = slots_[launch.sequence % fault_slots];
    if (slot.sequence != launch.sequence) continue;
    out_faults->push_back(fault_of(launch, tag, EP_FAULT_FLAG_NODE(launch.tag)));
    slot.sequence = 0;
  }
}

void FaultLog::cancel() {
  const std::lock_guard lock(mutex_);
  if (!pending_.empty()) pending_.pop_back();
  open_.store(pending_.size() + ready_.size(), std::memory_order_release);
}

void FaultLog::complete(uint64_t sequence) {
  uint64_t before = completed_.load(std::memory_order_relaxed);
  while (before < sequence && !completed_.compare_exchange_weak(before, sequence, std::memory_order_acq_rel)) {
  }
}

void FaultLog::settle() {
  const uint64_t completed = completed_.load(std::memory_order_acquire);
  while (!pending_.empty() && pending_.front().sequence <= completed) {
    const Pending& done = pending_.front();
    if (done.list != nullptr) {
      done.list->collect(done.tag, &ready_);
      pending_.pop_front();
      continue;
    }
    if (slots_[done.sequence % fault_slots].sequence == done.sequence) ready_.push_back(fault_of(done, done.tag, 0));
    pending_.pop_front();
  }
  open_.store(pending_.size() + ready_.size(), std::memory_order_release);
}

std::optional<ep_fault> FaultLog::take() {
  if (open_.load(std::memory_order_acquire) == 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  settle();
  if (ready_.empty()) return std::nullopt;
  const ep_fault fault = ready_.front();
  ready_.pop_front();
  open_.store(pending_.size() + ready_.size(), std::memory_order_release);
  return fault;
}

}  // namespace tenon::provider::cuda
