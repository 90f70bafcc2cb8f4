#include "providers/cuda/transfer/staging.h"

#include <algorithm>
#include <cstring>

#include "providers/cuda/driver/driver.h"

namespace tenon::provider::cuda {

bool is_pinned(const Driver& driver, const void* pointer, uint64_t size) {
  const auto pinned_at = [&](CUdeviceptr address) {
    unsigned int type = 0;
    const CUresult result = driver.pointer_get_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    return result == CUDA_SUCCESS && type == CU_MEMORYTYPE_HOST;
  };
  const auto first = reinterpret_cast<CUdeviceptr>(pointer);
  return pinned_at(first) && pinned_at(first + size - 1);
}

void CUDA_CB Staging::run_host_copy(void* copy) {
  auto* work = static_cast<HostCopy*>(copy);
  std::memcpy(work->dst, work->src, work->size);
  work->done.store(true, std::memory_order_release);
}

CUresult Staging::take_ring(const Driver& driver) {
  if (ring_ != nullptr) return CUDA_SUCCESS;
  void* place = nullptr;
  const CUresult result = driver.mem_host_alloc(&place, slots * slot_bytes, CU_MEMHOSTALLOC_PORTABLE);
  if (result == CUDA_SUCCESS) ring_ = static_cast<char*>(place);
  return result;
}

CUresult Staging::take_buffer(const Driver& driver) {
  if (buffer_ != nullptr) return CUDA_SUCCESS;
  void* place = nullptr;
  const CUresult result = driver.mem_host_alloc(&place, chunk_bytes, CU_MEMHOSTALLOC_PORTABLE);
  if (result == CUDA_SUCCESS) buffer_ = static_cast<char*>(place);
  return result;
}

CUresult Staging::host_copy(const Driver& driver, CUstream stream, void* dst, const void* src, uint64_t size) {
  while (!copies_.empty() && copies_.front().done.load(std::memory_order_acquire)) copies_.pop_front();
  HostCopy& copy = copies_.emplace_back();
  copy.dst = dst;
  copy.src = src;
  copy.size = size;
  const CUresult result = driver.launch_host_func(stream, run_host_copy, &copy);
  if (result != CUDA_SUCCESS) copies_.pop_back();
  return result;
}

// `*out_done` stays false if the device still reads the next slot of the ring.
CUresult Staging::small_upload(const Driver& driver, CUstream stream, CUdeviceptr dst, const void* src, uint64_t size,
                               bool* out_done) {
  if (const CUresult result = take_ring(driver); result != CUDA_SUCCESS) return result;
  CUevent& taken = taken_[next_slot_ % slots];
  if (taken != nullptr) {
    const CUresult result = driver.event_query(taken);
    if (result == CUDA_ERROR_NOT_READY) return CUDA_SUCCESS;
    if (result != CUDA_SUCCESS) return result;
  } else if (const CUresult result = driver.event_create(&taken, CU_EVENT_DISABLE_TIMING); result != CUDA_SUCCESS) {
    return result;
  }
  char* slot = ring_ + next_slot_ % slots * slot_bytes;
  std::memcpy(slot, src, size);
  CUresult result = driver.memcpy_htod_async(dst, slot, size, stream);
  if (result != CUDA_SUCCESS) return result;
  ++next_slot_;
  *out_done = true;
  return driver.event_record(taken, stream);
}

CUresult Staging::upload(const Driver& driver, CUstream stream, CUdeviceptr dst, const void* src, uint64_t size) {
  if (is_pinned(driver, src, size)) return driver.memcpy_htod_async(dst, src, size, stream);
  const std::lock_guard lock(mutex_);
  if (size <= slot_bytes) {
    bool done = false;
    const CUresult result = small_upload(driver, stream, dst, src, size, &done);
    if (result != CUDA_SUCCESS || done) return result;
  }
  if (const CUresult result = take_buffer(driver); result != CUDA_SUCCESS) return result;
  for (uint64_t at = 0; at < size; at += chunk_bytes) {
    const uint64_t count = std::min(chunk_bytes, size - at);
    CUresult result = host_copy(driver, stream, buffer_, static_cast<const char*>(src) + at, count);
    if (result == CUDA_SUCCESS) result = driver.memcpy_htod_async(dst + at, buffer_, count, stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult Staging::download(const Driver& driver, CUstream stream, void* dst, CUdeviceptr src, uint64_t size) {
  if (is_pinned(driver, dst, size)) return driver.memcpy_dtoh_async(dst, src, size, stream);
  const std::lock_guard lock(mutex_);
  if (const CUresult result = take_buffer(driver); result != CUDA_SUCCESS) return result;
  for (uint64_t at = 0; at < size; at += chunk_bytes) {
    const uint64_t count = std::min(chunk_bytes, size - at);
    CUresult result = driver.memcpy_dtoh_async(buffer_, src + at, count, stream);
    if (result == CUDA_SUCCESS) result = host_copy(driver, stream, static_cast<char*>(dst) + at, buffer_, count);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult Staging::copy(const Driver& driver, CUstream stream, void* dst, const void* src, uint64_t size) {
  const std::lock_guard lock(mutex_);
  return host_copy(driver, stream, dst, src, size);
}

void Staging::release(const Driver& driver) {
  const std::lock_guard lock(mutex_);
  for (CUevent& event : taken_) {
    if (event != nullptr) driver.event_destroy(event);
    event = nullptr;
  }
  if (ring_ != nullptr) driver.mem_free_host(ring_);
  if (buffer_ != nullptr) driver.mem_free_host(buffer_);
  ring_ = buffer_ = nullptr;
  copies_.clear();
}

}  // namespace tenon::provider::cuda
