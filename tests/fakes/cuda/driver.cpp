// The entry points of the CUDA driver that the provider calls.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "tests/fakes/cuda/fake.h"
#include "tests/fakes/cuda/stream.h"

namespace tenon::fakes::cuda {
namespace {

constexpr int most_devices = 8;

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

// Plain memory, because calls at the end of the process come after the destructors of thread_local objects.
struct ContextStack {
  CUcontext contexts[64];
  size_t depth;

  bool empty() const { return depth == 0; }
  size_t size() const { return depth; }
  CUcontext back() const { return contexts[depth - 1]; }
  void push_back(CUcontext context) { contexts[depth++] = context; }
  void pop_back() { --depth; }
};
thread_local constinit ContextStack context_stack{};

}  // namespace

CUresult enter(bool needs_context) {
  if (const int lost = control().lost.load(); lost != 0) return static_cast<CUresult>(lost);
  if (needs_context && context_stack.empty()) {
    control().violate("a call without a current context");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  return CUDA_SUCCESS;
}

CUdevice current_device() { return context_stack.back()->device; }

CUresult belongs_here(CUdevice device) {
  if (device == current_device()) return CUDA_SUCCESS;
  control().violate("a stream or an event is used in the context of another device");
  return CUDA_ERROR_INVALID_HANDLE;
}

Control& control() {
  static auto* state = [] {
    auto* made = new Control;
    made->version = from_environment("FAKE_CUDA_VERSION", made->version);
    made->devices = from_environment("FAKE_CUDA_DEVICES", made->devices);
    made->init_result = from_environment("FAKE_CUDA_INIT", made->init_result);
    made->capability = from_environment("FAKE_CUDA_CAPABILITY", made->capability);
    made->delay_us = from_environment("FAKE_CUDA_DELAY_US", made->delay_us);
    made->peers = from_environment("FAKE_CUDA_PEERS", 1) != 0;
    return made;
  }();
  return *state;
}

}  // namespace tenon::fakes::cuda

using tenon::fakes::cuda::allocate_block;
using tenon::fakes::cuda::check_range;
using tenon::fakes::cuda::context_stack;
using tenon::fakes::cuda::control;
using tenon::fakes::cuda::current_device;
using tenon::fakes::cuda::enqueue_copy;
using tenon::fakes::cuda::enter;
using tenon::fakes::cuda::free_block;

FAKE_API tenon::fakes::cuda::Control* fake_cuda_control() { return &control(); }
// The number of contexts on the stack of this thread.
FAKE_API size_t fake_cuda_contexts() { return context_stack.size(); }

FAKE_API CUresult cuInit(unsigned int) { return static_cast<CUresult>(control().init_result.load()); }
FAKE_API CUresult cuDriverGetVersion(int* version) {
  *version = control().version;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuGetErrorName(CUresult error, const char** text) {
  switch (error) {
    case CUDA_ERROR_OUT_OF_MEMORY: *text = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case CUDA_ERROR_ILLEGAL_ADDRESS: *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case CUDA_ERROR_UNKNOWN: *text = "CUDA_ERROR_UNKNOWN"; break;
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: *text = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuGetErrorString(CUresult error, const char** text) {
  if (error != CUDA_ERROR_ILLEGAL_ADDRESS) return CUDA_ERROR_INVALID_VALUE;
  *text = "an illegal memory access was encountered";
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuDeviceGetCount(int* count) {
  *count = control().devices;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal < control().devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
FAKE_API CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  *fmt::format_to_n(name, static_cast<size_t>(length) - 1, "Fake GPU {}", device).out = '\0';
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(16 * device + i);
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = control().memory;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = control().capability / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = control().capability % 10; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 4; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: *value = control().pools ? 1 : 0; break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 0x7fffffff; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 48 << 10; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = (control().capability >= 80 ? 99 : 64) << 10;
      break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: *value = 0x81 + device; break;
    default: *value = 0;
  }
  return CUDA_SUCCESS;
}

namespace {

CUctx_st& primary_context(CUdevice device) {
  static CUctx_st contexts[tenon::fakes::cuda::most_devices];
  return contexts[device];
}

}  // namespace

FAKE_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  FAKE_ENTER(false);
  CUctx_st& primary = primary_context(device);
  primary.device = device;
  ++primary.users;
  *context = &primary;
  ++control().objects;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  if (--primary_context(device).users == 0) tenon::fakes::cuda::forget_peers(device);
  --control().objects;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (control().lost == CUDA_ERROR_DEINITIALIZED) return CUDA_ERROR_DEINITIALIZED;
  context_stack.push_back(context);
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (context_stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = context_stack.back();
  context_stack.pop_back();
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  FAKE_ENTER(true);
  *free = tenon::fakes::cuda::free_memory();
  *total = control().memory;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t size) {
  FAKE_ENTER(true);
  return allocate_block(size, {current_device(), nullptr, false}, address);
}
FAKE_API CUresult cuMemFree_v2(CUdeviceptr address) { return free_block(address, false); }
FAKE_API CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  if (context_stack.empty()) control().violate("a call without a current context");
  stream->push([address] { free_block(address, false); });
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuMemHostAlloc(void** pointer, size_t size, unsigned int) {
  FAKE_ENTER(true);
  CUdeviceptr address = 0;
  const CUresult result = allocate_block(size, {current_device(), nullptr, true}, &address);
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
  return result;
}
FAKE_API CUresult cuMemFreeHost(void* pointer) { return free_block(reinterpret_cast<CUdeviceptr>(pointer), true); }
FAKE_API CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  FAKE_ENTER(true);
  const auto range = tenon::fakes::cuda::range_of(address);
  if (!range) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      if (!range->owner.pinned) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<unsigned int*>(data) = CU_MEMORYTYPE_HOST;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(data) = range->owner.device; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *static_cast<CUdeviceptr*>(data) = range->start; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *static_cast<size_t*>(data) = range->size; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

FAKE_API CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream) {
  FAKE_ENTER(true);
  FAKE_HERE(stream);
  check_range("the destination of a copy", dst, size, current_device());
  check_range("the source of a copy", src, size, current_device());
  if (tenon::fakes::cuda::is_pinned_block(dst) && tenon::fakes::cuda::is_pinned_block(src)) {
    control().violate("a copy from host memory to host memory waits in the call");
  }
  return enqueue_copy(stream, dst, src, size);
}
FAKE_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void* src, size_t size, CUstream stream) {
  FAKE_ENTER(true);
  FAKE_HERE(stream);
  check_range("the destination of an upload", dst, size, current_device());
  check_range("the source of an upload, which is not pinned,", reinterpret_cast<CUdeviceptr>(src), size,
              current_device());
  return enqueue_copy(stream, dst, reinterpret_cast<uint64_t>(src), size);
}
FAKE_API CUresult cuMemcpyDtoHAsync_v2(void* dst, CUdeviceptr src, size_t size, CUstream stream) {
  FAKE_ENTER(true);
  FAKE_HERE(stream);
  check_range("the source of a download", src, size, current_device());
  check_range("the destination of a download, which is not pinned,", reinterpret_cast<CUdeviceptr>(dst), size,
              current_device());
  return enqueue_copy(stream, reinterpret_cast<uint64_t>(dst), src, size);
}
FAKE_API CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t size, CUstream stream) {
  FAKE_ENTER(true);
  FAKE_HERE(stream);
  check_range("a fill", dst, size, current_device());
  stream->push([=] { std::memset(reinterpret_cast<void*>(dst), value, size); });
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int, int priority) {
  FAKE_ENTER(true);
  *stream = new CUstream_st(current_device());
  control().last_priority = priority;
  ++control().objects;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuStreamDestroy_v2(CUstream stream) {
  delete stream;
  --control().objects;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  FAKE_ENTER(true);
  *context = &primary_context(stream->device);
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuStreamSynchronize(CUstream stream) {
  FAKE_ENTER(true);
  if (stream->captures()) control().violate("a wait for a stream that is captured");
  stream->drain();
  return static_cast<CUresult>(control().lost.load());
}
FAKE_API CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned int) {
  FAKE_ENTER(true);
  const std::shared_ptr<EventState> event = handle->state;
  uint64_t point = 0;
  {
    const std::lock_guard lock(event->mutex);
    point = event->recorded;
  }
  stream->push([event, point] {
    std::unique_lock lock(event->mutex);
    event->fired.wait(lock, [&] { return event->completed >= point; });
  });
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  FAKE_ENTER(true);
  stream->push([=] { function(data); });
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  FAKE_ENTER(true);
  *event = new CUevent_st{current_device(), std::make_shared<EventState>(), (flags & CU_EVENT_DISABLE_TIMING) == 0};
  ++control().objects;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuEventDestroy_v2(CUevent event) {
  delete event;
  --control().objects;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuEventRecord(CUevent handle, CUstream stream) {
  FAKE_ENTER(true);
  FAKE_HERE(stream);
  FAKE_HERE(handle);
  const std::shared_ptr<EventState> event = handle->state;
  uint64_t point = 0;
  {
    const std::lock_guard lock(event->mutex);
    point = ++event->recorded;
  }
  stream->push([event, point] {
    const std::lock_guard lock(event->mutex);
    if (event->completed < point) event->completed = point;
    event->completed_ns = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    event->fired.notify_all();
  });
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuEventQuery(CUevent handle) {
  FAKE_ENTER(true);
  const std::shared_ptr<EventState> event = handle->state;
  const std::lock_guard lock(event->mutex);
  return event->completed >= event->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
FAKE_API CUresult cuEventSynchronize(CUevent handle) {
  FAKE_ENTER(true);
  const std::shared_ptr<EventState> event = handle->state;
  std::unique_lock lock(event->mutex);
  const uint64_t point = event->recorded;
  event->fired.wait(lock, [&] { return event->completed >= point; });
  return static_cast<CUresult>(control().lost.load());
}

// The headers of CUDA 13 define this name as a macro for a newer version. Drivers still export this one.
#undef cuEventElapsedTime
FAKE_API CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end) {
  FAKE_ENTER(true);
  uint64_t times[2] = {};
  for (int i = 0; i < 2; ++i) {
    const CUevent handle = i == 0 ? begin : end;
    const std::lock_guard lock(handle->state->mutex);
    if (!handle->timed || handle->state->recorded == 0) return CUDA_ERROR_INVALID_HANDLE;
    if (handle->state->completed < handle->state->recorded) return CUDA_ERROR_NOT_READY;
    times[i] = handle->state->completed_ns;
  }
  *milliseconds = static_cast<float>(static_cast<double>(static_cast<int64_t>(times[1] - times[0])) / 1e6);
  return CUDA_SUCCESS;
}
