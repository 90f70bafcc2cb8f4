// The structs behind the handles of this provider, and what its files offer each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "providers/cuda/driver/driver.h"
#include "providers/cuda/faults/fault_log.h"
#include "providers/cuda/kernels/modules.h"
#include "providers/cuda/matmul/cublaslt.h"
#include "providers/cuda/transfer/staging.h"
#include "sdk/provider/entry.h"
#include "sdk/provider/handle.h"
#include "sdk/provider/negotiate.h"

// What is known of a device before it is opened.
struct DeviceFacts {
  CUdevice number = 0;
  int index = 0;  // among the driver's devices: cuda:<index>
  std::string name;
  std::string fingerprint;
  std::string unusable_reason;
  std::string remedy;
  CUuuid uuid{};
  int64_t pci[4] = {-1, -1, -1, -1};
  uint64_t memory = 0;
  int capability = 0;  // 90 for compute capability 9.0
  int processors = 0;  // multiprocessors
  int threads_per_processor = 0;
  bool integrated = false;
  bool memory_pools = false;  // the driver has stream-ordered allocation on it
};

struct ep_plugin {
  const ep_host* host = nullptr;
  std::once_flag loaded;  // the two below
  tenon::provider::cuda::Driver driver;
  std::vector<DeviceFacts> devices;
};

struct ep_device {
  const ep_host* host = nullptr;
  const tenon::provider::cuda::Driver* driver = nullptr;
  DeviceFacts facts;
  CUcontext context = nullptr;           // the primary one, which other libraries of the process share
  CUmemoryPool pool = nullptr;           // where the blocks of device memory come from; NULL: from cuMemAlloc
  CUstream allocation_stream = nullptr;  // orders what the pool does; nothing else runs on it
  tenon::provider::cuda::Modules modules;
  tenon::provider::cuda::CublasLt cublaslt;
  std::atomic<int> lost{0};  // the CUresult that ended it; 0: it lives
};

struct ep_memory {
  const ep_host* host = nullptr;
  CUdeviceptr address = 0;
  void* mapped = nullptr;  // the host's address of pinned memory
  bool ordered = false;    // from the device's pool
};

struct ep_stream {
  const ep_host* host = nullptr;
  ep_device* device = nullptr;
  CUstream handle = nullptr;
  tenon::provider::cuda::Staging staging;
  std::shared_ptr<tenon::provider::cuda::FaultLog> faults;
};

struct ep_event {
  const ep_host* host = nullptr;
  ep_device* device = nullptr;
  CUevent handle = nullptr;
  std::mutex mutex;  // of the two below: asked about on several threads, recorded again on one
  std::shared_ptr<tenon::provider::cuda::FaultLog> faults;  // of the stream it was recorded on; NULL: never recorded
  uint64_t fault_sequence = 0;                              // the last launch before the record
};

namespace tenon::provider::cuda {

inline constexpr uint32_t device_pool = 0;
inline constexpr uint32_t pinned_pool = 1;

// The device's context for as long as this lives, on a thread that had another one, or none, and has that again after.
class Current {
 public:
  explicit Current(const ep_device* device) : device_(device) {
    result_ = device->driver->ctx_push_current(device->context);
  }
  ~Current() {
    CUcontext popped = nullptr;
    if (result_ == CUDA_SUCCESS) device_->driver->ctx_pop_current(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  CUresult result() const { return result_; }

 private:
  const ep_device* device_;
  CUresult result_;
};

inline CUdeviceptr address_of(ep_buffer buffer) {
  return buffer.memory == nullptr ? 0 : buffer.memory->address + buffer.offset;
}

// The error of a call of the driver that failed while `doing` ("recording an event"); a lost device stays lost.
ep_status driver_failed(ep_device* device, CUresult result, const char* doing, ep_error** error);
// What a wait was answered, or a question whether work is done: a driver that has ended, at the program's exit, runs
// none any more.
inline CUresult as_waited(CUresult result) { return result == CUDA_ERROR_DEINITIALIZED ? CUDA_SUCCESS : result; }
// EP_STATUS_OK, or the error of a device that was lost earlier.
ep_status check_lost(ep_device* device, ep_error** error);

// Copies in the order of `stream`, whose context is current: within its device, and from and to pinned memory.
CUresult copy_on(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size);

// Each fills its slots of a device's table.
void fill_memory(ep_device_ops* ops);
void fill_stream(ep_device_ops* ops);
void fill_event(ep_device_ops* ops);
void fill_peer(ep_device_ops* ops);
void fill_primitive(ep_device_ops* ops);

// The table of a device, all of the above.
ep_device_ops device_ops();

// Makes and unmakes a device.
ep_status open_device(const ep_host* host, const Driver& driver, const DeviceFacts& facts, ep_device** out_device,
                      ep_error** error);
void close_device(ep_device* device) noexcept;

}  // namespace tenon::provider::cuda
