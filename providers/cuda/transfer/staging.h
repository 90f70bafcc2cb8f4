// Staging: how bytes go between the device and host memory that the driver has not pinned. Such a transfer would be
// synchronous, or wait inside the call; through pinned memory of the stream's own it is neither:
//
//   small uploads   are copied at the call into a ring of pinned slots, from where the device takes them;
//   all others      go chunk by chunk through one pinned buffer, and the host's half of the copy is a function that the
//                   stream calls in its order, so that the buffer needs no waiting for.
//
// One per stream, used under the stream's order and its own lock. Memory is taken when first needed.
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
  static constexpr uint64_t slot_bytes = 64 * 1024;  // a small upload has at most as many
  static constexpr uint64_t slots = 16;
  static constexpr uint64_t chunk_bytes = 4 * 1024 * 1024;

  // The device's context is current in all of these.
  CUresult upload(const Driver& driver, CUstream stream, CUdeviceptr dst, const void* src, uint64_t size);
  CUresult download(const Driver& driver, CUstream stream, void* dst, CUdeviceptr src, uint64_t size);
  // Between two places in pinned memory: the driver's own copy would wait in the call.
  CUresult copy(const Driver& driver, CUstream stream, void* dst, const void* src, uint64_t size);
  // The stream has been synchronised, or its device was lost.
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
  std::array<CUevent, slots> taken_{};  // fires when the slot has been read
  uint64_t next_slot_ = 0;
  char* buffer_ = nullptr;
  std::deque<HostCopy> copies_;  // those handed to the stream; the oldest first
};

// True if the driver has pinned the `size` bytes at `pointer`, so that they can be copied from and to directly: asked
// of the first and the last of them, since part of what is allocated in one may be pinned.
bool is_pinned(const Driver& driver, const void* pointer, uint64_t size);

}  // namespace tenon::provider::cuda
