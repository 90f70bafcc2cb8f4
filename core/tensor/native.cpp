#include "core/tensor/native.h"

#include <algorithm>
#include <cstring>

#include "core/device/device_state.h"
#include "core/device/process.h"
#include "core/tensor/factory.h"
#include "core/tensor/opened_devices.h"
#include "core/tensor/stream.h"
#include "core/vm/opaque.h"
#include "core/vm/storage.h"
#include "core/vm/vm.h"
#include "ep_api/ep_names.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

// Errors: invalid_argument if `device` is empty; unsupported if `slot` is missing or `taken` lacks the type.
DeviceState* device_that_takes(std::string_view caller, Device device, NativeHandle handle, uint64_t taken,
                               bool has_slot, std::string_view what) {
  DeviceState* state = device.state();
  const auto type = static_cast<int32_t>(handle.type);
  if (has_slot && type > 0 && type < 64 && (taken >> type & 1) != 0) return state;
  throw Error(Subject{caller}, Code::unsupported,
              fmt::format("{} does not accept a {} of type {}; it accepts {}.", state->opened->spelling, what,
                          ep_handle_name(type), loader::handle_names(taken)));
}

DeviceState* require(std::string_view caller, Device device) {
  throw_if_error(process::usable());
  if (device.state() != nullptr) return device.state();
  throw Error(Subject{caller}, Code::invalid_argument, "this handle names no device.");
}

ep_import_desc import_desc(NativeHandle handle, const std::array<uint8_t, 16>& uuid) {
  ep_import_desc desc{};
  desc.struct_size = sizeof desc;
  desc.struct_type = EP_STRUCT_IMPORT_DESC;
  desc.handle_type = static_cast<int32_t>(handle.type);
  desc.handle = handle.value;
  std::copy(uuid.begin(), uuid.end(), desc.uuid);
  return desc;
}

ep_memory* import_memory(DeviceState* state, const NativeMemory& memory) {
  ep_memory* made = nullptr;
  ep_error* error = nullptr;
  ep_status code = EP_STATUS_OK;
  if (memory.handle.type == HandleType::host_pointer) {
    auto* pointer = reinterpret_cast<void*>(static_cast<uintptr_t>(memory.handle.value));
    code = state->ops.memory_import_host(state->handle, pointer, memory.bytes, &made, &error);
  } else {
    ep_import_desc desc = import_desc(memory.handle, memory.uuid);
    desc.size = memory.bytes;
    desc.flags = memory.dedicated ? EP_IMPORT_FLAG_DEDICATED : 0;
    code = state->ops.memory_import(state->handle, &desc, &made, &error);
  }
  throw_if_error(loader::take_error(code, error, fmt::format("importing memory on {}", state->opened->spelling)));
  return made;
}

// The host address of `memory`, if the host reaches it in the same way as the device's own blocks.
char* host_address(DeviceState* state, const NativeMemory& native, ep_memory* memory) {
  if (native.handle.type == HandleType::host_pointer) {
    return reinterpret_cast<char*>(static_cast<uintptr_t>(native.handle.value));
  }
  if (!state->mapped || state->ops.memory_map == nullptr) return nullptr;
  void* address = nullptr;
  ep_error* error = nullptr;
  const ep_status code = state->ops.memory_map(state->handle, memory, &address, &error);
  return loader::take_error(code, error, {}).ok() ? static_cast<char*>(address) : nullptr;
}

void check_place(const NativeMemory& memory, uint64_t offset, uint64_t bytes, DType dtype) {
  const auto size = static_cast<uint64_t>(std::max<int64_t>(1, dtype_size(dtype)));
  if (memory.bytes == 0) throw Error(Subject{"tensor_over"}, Code::invalid_argument, "the memory has 0 bytes.");
  if (memory.handle.value == 0 && memory.handle.type == HandleType::host_pointer) {
    throw Error(Subject{"tensor_over"}, Code::invalid_argument,
                fmt::format("the data pointer is null, but {} bytes are needed.", memory.bytes));
  }
  if (offset % size != 0) {
    throw Error(Subject{"tensor_over"}, Code::invalid_argument,
                fmt::format("the offset {} is not a multiple of {}, which an element "
                            "of {} needs.",
                            offset, size, dtype_name(dtype)));
  }
  if (offset <= memory.bytes && bytes <= memory.bytes - offset) return;
  throw Error(
      Subject{"tensor_over"}, Code::invalid_argument,
      fmt::format("the shape reaches {} bytes from offset {}; the memory has {} bytes.", bytes, offset, memory.bytes));
}

Storage* storage_over(DeviceState* state, const NativeMemory& memory, std::function<void()> deleter) {
  memory::Block block;
  block.size = memory.bytes;
  block.memory = import_memory(state, memory);
  block.host = host_address(state, memory, block.memory);
  state->borrowed.fetch_add(1, std::memory_order_relaxed);
  auto release = [state, handle = block.memory, user = std::move(deleter)] {
    free_imported(state, handle);
    state->borrowed.fetch_sub(1, std::memory_order_relaxed);
    if (user) user();
  };
  return Storage::borrow(state, block, memory.bytes, std::move(release));
}

}  // namespace

Tensor tensor_over(Device device, const NativeMemory& memory, const Dims& dims, const Dims& strides, DType dtype,
                   uint64_t offset, std::function<void()> deleter) {
  const std::string_view caller = "tensor_over";
  DeviceState* state = require(caller, device);
  const bool by_pointer = memory.handle.type == HandleType::host_pointer;
  const bool has_slot = by_pointer ? state->ops.memory_import_host != nullptr : state->ops.memory_import != nullptr;
  const uint64_t pointers = state->ops.memory_import_host != nullptr ? UINT64_C(1) << EP_HANDLE_HOST_POINTER : 0;
  device_that_takes(caller, device, memory.handle, state->opened->info.memory_handles | pointers, has_slot, "memory");
  const int64_t elements = value_or_throw(checked_elements(dims, dtype));
  const Dims actual = strides.empty() ? contiguous_strides(dims) : strides;
  check_place(memory, offset, static_cast<uint64_t>(bytes_reached(caller, dims, actual, dtype, elements)), dtype);
  TensorImpl* impl = make_impl(state, dtype, dims, elements);
  Tensor tensor(impl);
  impl->storage = storage_over(state, memory, std::move(deleter));
  impl->strides = actual;
  impl->contiguous = is_contiguous(dims, actual);
  impl->offset = dtype_size(dtype) == 0 ? static_cast<int64_t>(offset) * 8 / dtype_info(dtype).bits
                                        : static_cast<int64_t>(offset) / dtype_size(dtype);
  return tensor;
}

NativePlace native_place(const Tensor& tensor) {
  NativePlace place = native_place_pending(tensor);
  throw_if_error(vm::settle(value_or_throw(vm::expose(tensor.impl()->storage)), true, false));
  return place;
}

NativePlace native_place_pending(const Tensor& tensor) {
  DeviceState* state = require("native_place", tensor.device());
  if (tensor.impl()->storage == nullptr) refuse_recorded("native_place: the tensor", tensor);
  Storage* storage = value_or_throw(vm::expose(tensor.impl()->storage));
  const auto type = static_cast<HandleType>(state->opened->info.native_memory);
  if (state->ops.memory_native_handle == nullptr || type == HandleType::none || storage->block.memory == nullptr) {
    throw Error(Subject{"native_place"}, Code::unsupported,
                fmt::format("{} has no handles of its own for memory.", state->opened->spelling));
  }
  NativePlace place;
  ep_error* error = nullptr;
  const ep_status code =
      state->ops.memory_native_handle(state->handle, storage->block.memory, &place.handle.value, &error);
  throw_if_error(loader::take_error(code, error, fmt::format("naming memory of {}", state->opened->spelling)));
  place.handle.type = type;
  place.offset = storage->block.offset + static_cast<uint64_t>(dtype_bytes(tensor.dtype(), tensor.impl()->offset));
  return place;
}

Semaphore::Semaphore(Device device, NativeHandle handle, SemaphoreKind kind, const std::array<uint8_t, 16>& uuid)
    : kind_(kind) {
  DeviceState* state = require("Semaphore", device);
  device_that_takes("Semaphore", device, handle, state->opened->info.semaphore_handles,
                    state->ops.semaphore_import != nullptr, "semaphore");
  const bool is_event = handle.type == HandleType::cl_event || handle.type == HandleType::cuda_event;
  if (is_event != (kind == SemaphoreKind::event)) {
    throw Error(Code::invalid_argument,
                fmt::format("Semaphore: a handle of type {} {} the kind event.",
                            ep_handle_name(static_cast<int32_t>(handle.type)), is_event ? "must have" : "cannot have"));
  }
  ep_import_desc desc = import_desc(handle, uuid);
  desc.semaphore = static_cast<int32_t>(kind);
  ep_semaphore* made = nullptr;
  ep_error* error = nullptr;
  const ep_status code = state->ops.semaphore_import(state->handle, &desc, &made, &error);
  throw_if_error(loader::take_error(code, error, fmt::format("importing a semaphore on {}", state->opened->spelling)));
  state->semaphores.fetch_add(1, std::memory_order_relaxed);
  state_ = std::make_shared<vm::ImportedSemaphore>(state, made);
}

Stream Stream::over(Device device, const NativeHandle& handle) {
  DeviceState* state = require("Stream::over", device);
  device_that_takes("Stream::over", device, handle, state->opened->info.stream_handles,
                    state->ops.stream_import != nullptr && !state->synchronous, "stream");
  return Stream(value_or_throw(vm::import_stream(state, import_desc(handle, {}))), device);
}

NativeContext NativeContext::opencl(void* context) {
  NativeContext native;
  native.type = HandleType::cl_context;
  native.handles = {reinterpret_cast<uintptr_t>(context)};
  return native;
}

NativeContext NativeContext::vulkan(void* device, void* physical_device, void* queue, uint32_t family,
                                    void (*lock)(void*), void (*unlock)(void*), void* lock_context) {
  NativeContext native;
  native.type = HandleType::vk_device;
  native.handles = {reinterpret_cast<uintptr_t>(device), reinterpret_cast<uintptr_t>(physical_device),
                    reinterpret_cast<uintptr_t>(queue), family};
  native.lock = lock;
  native.unlock = unlock;
  native.lock_context = lock_context;
  return native;
}

Device adopt_device(std::string_view spelling, const NativeContext& context) {
  if (context.handles.size() > EP_ADOPT_MAX_HANDLES) {
    throw Error(Subject{"adopt_device"}, Code::invalid_argument,
                fmt::format("the context has {} handles; at most {} are possible.", context.handles.size(),
                            EP_ADOPT_MAX_HANDLES));
  }
  ep_adopt_desc desc{};
  desc.struct_size = sizeof desc;
  desc.struct_type = EP_STRUCT_ADOPT_DESC;
  desc.handle_type = static_cast<int32_t>(context.type);
  desc.handle_count = static_cast<uint32_t>(context.handles.size());
  std::copy(context.handles.begin(), context.handles.end(), desc.handles);
  desc.lock = context.lock;
  desc.unlock = context.unlock;
  desc.lock_context = context.lock_context;
  return Device(value_or_throw(adopt_device_state(spelling, desc)));
}

}  // namespace tenon
