// Native handles: Tenon uses memory, queues, semaphores and contexts that another API of the process made (Vulkan,
// OpenCL, CUDA), without copying. loader::DeviceInfo says which types of handles a device takes (memory_handles and so
// on, bits 1 << HandleType). For any other type a call fails as unsupported and lists the supported types.
//
// Ownership: the caller keeps the handle, whether the call succeeds or fails. File descriptors may be closed and OpenCL
// objects released when the call returns. Everything else (an address, a VkBuffer, a CUstream) must live until Tenon no
// longer uses it: memory until its deleter runs, a semaphore until its last handle is dropped and its work is done, a
// queue or a context until the provider is retired or the process ends.
//
// Order: these calls do not wait and do not order work. To order the work of the two APIs, use Stream::wait and signal,
// Stream::acquire and release, or wait on the host.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"
#include "ep_api/ep_api.h"

namespace tenon {

namespace vm {
struct ImportedSemaphore;
}

// The kind of object that a handle names. ep_api.h describes each kind.
enum class HandleType : int32_t {
  none = 0,
  host_pointer = EP_HANDLE_HOST_POINTER,  // memory
  opaque_fd = EP_HANDLE_OPAQUE_FD,        // memory or semaphore
  dma_buf = EP_HANDLE_DMA_BUF,            // memory
  cuda_pointer = EP_HANDLE_CUDA_POINTER,  // memory
  cuda_stream = EP_HANDLE_CUDA_STREAM,    // stream
  cuda_event = EP_HANDLE_CUDA_EVENT,      // semaphore
  cl_context = EP_HANDLE_CL_CONTEXT,      // context
  cl_mem = EP_HANDLE_CL_MEM,              // memory
  cl_queue = EP_HANDLE_CL_QUEUE,          // stream
  cl_event = EP_HANDLE_CL_EVENT,          // semaphore
  vk_device = EP_HANDLE_VK_DEVICE,        // context
  vk_buffer = EP_HANDLE_VK_BUFFER,        // memory
  vk_semaphore = EP_HANDLE_VK_SEMAPHORE,  // semaphore
};

struct NativeHandle {
  NativeHandle() = default;
  NativeHandle(HandleType of, int fd) : type(of), value(static_cast<uint64_t>(int64_t{fd})) {}
  NativeHandle(HandleType of, const void* object) : type(of), value(reinterpret_cast<uintptr_t>(object)) {}
  NativeHandle(HandleType of, uint64_t number) : type(of), value(number) {}

  HandleType type = HandleType::none;
  uint64_t value = 0;
};

// Memory of another API.
struct NativeMemory {
  NativeHandle handle;
  uint64_t bytes = 0;      // for a file descriptor: the size of the whole exported allocation
  bool dedicated = false;  // true if the exported allocation was made for a single buffer
  std::array<uint8_t, 16>
      uuid{};  // the device that made it, as in DeviceInfo::uuid; zero: the caller guarantees that it is this device
};

// A tensor of `device` over `memory`, without a copy. Its first element lies `offset` bytes after the beginning. Empty
// `strides` (in elements) mean row-major. `deleter` runs when the memory is no longer used, on any thread; on an error
// it does not run. Errors: invalid_argument (a shape that reaches beyond memory.bytes, an offset that is not a multiple
// of the element, strides as for Tensor::borrow, a handle that names nothing, memory of another device or context),
// unsupported (a type that the device does not take, memory that is not aligned as the device needs),
// out_of_device_memory.
TENON_API Tensor tensor_over(Device device, const NativeMemory& memory, const Dims& dims, const Dims& strides,
                             DType dtype, uint64_t offset = 0, std::function<void()> deleter = {});

// The location of a tensor in terms of its device's own API.
struct NativePlace {
  NativeHandle handle;  // the block, which other tensors may share; borrowed
  uint64_t offset = 0;  // the tensor's first element, in bytes
};
// The location of `tensor`. Waits for pending uses of it first. It is valid as long as a tensor holds the memory.
// Errors: unsupported (the device has no native handles), invalid_argument (a value of a program being recorded), the
// error of the op that failed to compute the tensor.
TENON_API NativePlace native_place(const Tensor& tensor);
// Like native_place, without waiting; the caller is an instruction that waits.
NativePlace native_place_pending(const Tensor& tensor);

// How a semaphore is signalled.
enum class SemaphoreKind : int32_t {
  binary = EP_SEMAPHORE_BINARY,      // a signal sets it and one wait resets it; submit the wait after the signal
  timeline = EP_SEMAPHORE_TIMELINE,  // a number that only grows; a wait may come before its signal
  event = EP_SEMAPHORE_EVENT,  // fires once and stays fired (cl_event, cuda_event); can be waited for, not signalled
};

// Semaphore: a cheap handle to a semaphore of another API that a device uses. Threads: any.
class TENON_API Semaphore {
 public:
  // No semaphore.
  Semaphore() = default;
  // `uuid` as in NativeMemory. Errors: invalid_argument (a handle that names nothing, another device or context, an
  // event with another kind), unsupported (a type that the device does not take, or not as this kind).
  Semaphore(Device device, NativeHandle handle, SemaphoreKind kind, const std::array<uint8_t, 16>& uuid = {});

  explicit operator bool() const { return state_ != nullptr; }
  SemaphoreKind kind() const { return kind_; }
  const std::shared_ptr<vm::ImportedSemaphore>& state() const { return state_; }

 private:
  std::shared_ptr<vm::ImportedSemaphore> state_;
  SemaphoreKind kind_ = SemaphoreKind::binary;
};

// A context of the application, in which a device can be opened.
struct NativeContext {
  // A cl_context that contains the device.
  static NativeContext opencl(void* context);
  // A VkDevice with its VkPhysicalDevice, and a VkQueue of the queue family `family`, to which Tenon submits. `lock`
  // and `unlock` are called with `lock_context` around each submission, on any thread; the application must hold the
  // same lock when it submits. Null: only Tenon uses the queue.
  static NativeContext vulkan(void* device, void* physical_device, void* queue, uint32_t family,
                              void (*lock)(void*) = nullptr, void (*unlock)(void*) = nullptr,
                              void* lock_context = nullptr);

  HandleType type = HandleType::none;
  std::vector<uint64_t> handles;  // as described in ep_adopt_desc
  void (*lock)(void*) = nullptr;
  void (*unlock)(void*) = nullptr;
  void* lock_context = nullptr;
};

// Opens the device that `spelling` names in `context`, so that it takes handles of that context. From then on the
// spelling names this device, until its provider is retired. Errors: busy (it is already open), unsupported (it cannot
// open in a context of that type), invalid_argument (the context is of another device), those of Device(spelling).
TENON_API Device adopt_device(std::string_view spelling, const NativeContext& context);

}  // namespace tenon
