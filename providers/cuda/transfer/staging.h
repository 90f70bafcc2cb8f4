// Staging: transfers between the device and host memory that the driver has not pinned. The driver's own copy would be
// synchronous or wait inside the call. Staging uses pinned memory of the stream:
//
// - Small uploads: the call copies them into a ring of pinned slots, from which the device reads.
// - Other transfers: chunks go through one pinned buffer. The stream calls a host function for the host's part of each
//   chunk, in stream order, so no thread waits for the buffer.
//
// Owner: one stream. Threads: any, under the lock. Memory is allocated at first use.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>

namespace tenon::provider::cuda {

struct Driver;

class Staging {
 public:
  static constexpr uint64_t slot_bytes = 64 * 1024;  // most bytes of a small upload
  static constexpr uint64_t slots = 16;
  static constexpr uint64_t chunk_bytes = 4 * 1024 * 1024;

  // The device's context is current in every function below.
  CUresult upload(const Driver& driver, CUstream stream, CUdeviceptr dst, const void* src, uint64_t size);
  CUresult download(const Driver& driver, CUstream stream, void* dst, CUdeviceptr src, uint64_t size);
  // Copies within pinned memory. The driver's own copy would wait inside the call.
  CUresult copy(const Driver& driver, CUstream stream, void* dst, const void* src, uint64_t size);
  // Frees everything. The stream must be synchronised, or its device lost.
  void release(const Driver& driver);

 private:
  struct HostCopy {
    void* dst;
    const void* src;
    uint64_t size;
    std::atomic<bool> done{false};
  };
  static void CUDA_CB run_host_copy(void* copy);

  CUresult small_upload(const Driver& driver, CUstream stream, CUdeviceptr dst, const void* src, uint64_t size,
                        bool* out_done);
  CUresult host_copy(const Driver& driver, CUstream stream, void* dst, const void* src, uint64_t size);
  CUresult take_ring(const Driver& driver);
  CUresult take_buffer(const Driver& driver);

  std::mutex mutex_;
  char* ring_ = nullptr;
  std::array<CUevent, slots> taken_{};  // fires when the device has read the slot
  uint64_t next_slot_ = 0;
  char* buffer_ = nullptr;
  std::deque<HostCopy> copies_;  // pending copies of the stream, oldest first
};

// True if the driver has pinned the `size` bytes at `pointer`, so that the device can copy them directly. Checks the
// first and the last byte, because only part of an allocation may be pinned.
bool is_pinned(const Driver& driver, const void* pointer, uint64_t size);

}  // namespace tenon::provider::cuda
