// The structs behind the handles of the cuda provider, and the functions that its files offer each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "providers/cuda/convolution/cudnn.h"
#include "providers/cuda/driver/driver.h"
#include "providers/cuda/faults/fault_log.h"
#include "providers/cuda/kernels/modules.h"
#include "providers/cuda/matmul/cublaslt.h"
#include "providers/cuda/modules/nvrtc_compiler.h"
#include "providers/cuda/transfer/staging.h"
#include "sdk/provider/entry.h"
#include "sdk/provider/handle.h"
#include "sdk/provider/import.h"
#include "sdk/provider/negotiate.h"

// Facts about a device that are known before it is opened.
struct DeviceFacts {
  CUdevice number = 0;
  int index = 0;  // number in the driver's list: cuda:<index>
  std::string name;
  std::string fingerprint;
  std::string unusable_reason;
  std::string remedy;
  CUuuid uuid{};
  int64_t pci[4] = {-1, -1, -1, -1};
  uint64_t memory = 0;
  int capability = 0;  // 90 for compute capability 9.0
  int processors = 0;  // number of multiprocessors
  int threads_per_processor = 0;
  int group_items = 1024;  // most threads of a block, in total and along each axis
  int group_dims[3] = {1024, 1024, 64};
  int groups[3] = {0x7fffffff, 65535, 65535};  // most blocks along each axis
  int shared_bytes = 48 << 10;                 // limit for a kernel without special permission
  int shared_bytes_on_demand = 48 << 10;       // limit for a launch, if its kernel has been allowed more
  bool integrated = false;
  bool memory_pools = false;  // the driver has stream-ordered allocation on this device
};

struct ep_plugin {
  const ep_host* host = nullptr;
  std::once_flag loaded;  // guards driver and devices
  tenon::provider::cuda::Driver driver;
  std::vector<DeviceFacts> devices;
};

struct ep_device {
  const ep_host* host = nullptr;
  const tenon::provider::cuda::Driver* driver = nullptr;
  DeviceFacts facts;
  CUcontext context = nullptr;           // the primary context, shared with other libraries of the process
  CUmemoryPool pool = nullptr;           // source of device memory; NULL: cuMemAlloc is used
  CUstream allocation_stream = nullptr;  // orders allocations from the pool; runs nothing else
  tenon::provider::cuda::Modules modules;
  std::unique_ptr<tenon::provider::cuda::NvrtcCompiler> compiler;  // compiles kernel modules
  tenon::provider::cuda::CublasLt cublaslt;
  std::unique_ptr<tenon::provider::cuda::Cudnn> cudnn;
  std::atomic<int> lost{0};  // the CUresult that ended the device; 0: the device works
};

struct ep_memory {
  const ep_host* host = nullptr;
  CUdeviceptr address = 0;
  void* mapped = nullptr;  // host address of pinned memory
  bool ordered = false;    // the memory is from the device's pool
  bool imported = false;   // the memory belongs to the application, or to `external`
  CUexternalMemory external = nullptr;
};

// A semaphore of another API, or an event of the application.
struct ep_semaphore {
  const ep_host* host = nullptr;
  CUexternalSemaphore external = nullptr;
  CUevent event = nullptr;
};

struct ep_stream {
  const ep_host* host = nullptr;
  ep_device* device = nullptr;
  CUstream handle = nullptr;
  bool imported = false;  // `handle` belongs to the application
  tenon::provider::cuda::Staging staging;
  std::shared_ptr<tenon::provider::cuda::FaultLog> faults;
  bool timed = false;
  // True between command_list_begin and command_list_end. The stream is then being captured, and `faults` belongs to
  // the list.
  std::atomic<bool> records{false};
  std::shared_ptr<tenon::provider::cuda::FaultLog> own_faults;  // the stream's own log while it records
  ep_command_list* list = nullptr;                              // the list that is being recorded
  uint64_t recorded_calls = 0;
  bool recording_failed = false;
};

struct ep_event {
  const ep_host* host = nullptr;
  ep_device* device = nullptr;
  CUevent handle = nullptr;
  std::mutex mutex;  // guards the two members below: several threads query the event, one records it again
  std::shared_ptr<tenon::provider::cuda::FaultLog> faults;  // fault log of the recorded stream; NULL: never recorded
  uint64_t fault_sequence = 0;                              // number of the last launch before the record
  CUevent clock = nullptr;  // recorded before `handle` on timed streams; made at the first such record
  bool timed = false;       // the last record was on a timed stream
};

namespace tenon::provider::cuda {

inline constexpr uint32_t device_pool = 0;
inline constexpr uint32_t pinned_pool = 1;

// Blocks begin at multiples of this.
inline constexpr uint64_t block_alignment = 256;

// Handle types that the device imports: bits 1 << EP_HANDLE_*.
inline constexpr uint64_t imported_memory = handle_bit(EP_HANDLE_OPAQUE_FD) | handle_bit(EP_HANDLE_CUDA_POINTER);
inline constexpr uint64_t imported_semaphores = handle_bit(EP_HANDLE_OPAQUE_FD) | handle_bit(EP_HANDLE_CUDA_EVENT);

// Makes the device's context current on this thread during its lifetime, and restores the thread's earlier context.
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

// The error of a driver call that failed while `doing` ("recording an event"). Marks the device as lost if it is.
ep_status driver_failed(ep_device* device, CUresult result, const char* doing, ep_error** error);
// Translates the result of a wait or a query. At the exit of the program the driver has shut down and no work runs;
// that counts as success.
inline CUresult as_waited(CUresult result) { return result == CUDA_ERROR_DEINITIALIZED ? CUDA_SUCCESS : result; }
// EP_STATUS_OK, or an error if the device is lost.
ep_status check_lost(ep_device* device, ep_error** error);

// A stream around `handle`. Destroying it destroys the handle, unless it is `imported`.
ep_stream* make_stream(ep_device* device, CUstream handle, bool imported);

// Copies in the order of `stream`, within its device or between its device and pinned memory. The stream's context is
// current.
CUresult copy_on(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size);

// Each function fills its part of a device's table.
void fill_memory(ep_device_ops* ops);
void fill_stream(ep_device_ops* ops);
void fill_event(ep_device_ops* ops);
void fill_peer(ep_device_ops* ops);
void fill_primitive(ep_device_ops* ops);
void fill_interop(ep_device_ops* ops);
void fill_command_list(ep_device_ops* ops);
void fill_modules(ep_device_ops* ops);

// Scope of a launch or copy on a stream. If the stream records and the call fails or throws, the recording has failed.
class RecordableCall {
 public:
  explicit RecordableCall(ep_stream* stream) : stream_(stream) {}
  ~RecordableCall() {
    if (!stream_->records) return;
    ++stream_->recorded_calls;
    if (!ended_well_) stream_->recording_failed = true;
  }
  RecordableCall(const RecordableCall&) = delete;
  RecordableCall& operator=(const RecordableCall&) = delete;
  ep_status end(ep_status status) {
    ended_well_ = status == EP_STATUS_OK;
    return status;
  }

 private:
  ep_stream* const stream_;
  bool ended_well_ = false;
};

// The table of a device, filled by the functions above.
ep_device_ops device_ops();

// open_device makes a device; close_device destroys one.
ep_status open_device(const ep_host* host, const Driver& driver, const DeviceFacts& facts, ep_device** out_device,
                      ep_error** error);
void close_device(ep_device* device) noexcept;

}  // namespace tenon::provider::cuda
