#include "providers/opencl/device.h"

namespace tenon::provider::opencl {
namespace {

ep_status memory_allocate(ep_device* device, uint32_t pool, uint64_t size, ep_memory** out_memory, ep_error** error) {
  const ep_host* host = device->host;
  Context& context = *device->context;
  if (pool != 0)
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "opencl has one pool; there is no pool %u.", pool);
  if (const ep_status status = context.check(error); status != EP_STATUS_OK) return status;
  const uint64_t largest = context.physical.largest_allocation;
  if (size > largest) {
    return fail(host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY,
                "A block of %llu bytes exceeds the largest allocation of %s (%llu bytes).",
                static_cast<unsigned long long>(size), context.physical.name.c_str(),
                static_cast<unsigned long long>(largest));
  }
  ep_memory* memory = make<ep_memory>(host, host);
  cl_int result = CL_SUCCESS;
  memory->buffer = context.api.clCreateBuffer(context.handle(), CL_MEM_READ_WRITE, size, nullptr, &result);
  if (result == CL_SUCCESS) {
    *out_memory = memory;
    return EP_STATUS_OK;
  }
  destroy(memory);
  return context.failed(error, "clCreateBuffer", result);
}

void memory_free(ep_device* device, ep_memory* memory) noexcept {
  if (memory == nullptr) return;
  device->context->api.clReleaseMemObject(memory->buffer);
  destroy(memory);
}

// The native handle is the cl_mem of the whole block.
ep_status memory_native_handle(ep_device*, ep_memory* memory, uint64_t* out_handle, ep_error**) {
  *out_handle = reinterpret_cast<uint64_t>(memory->buffer);
  return EP_STATUS_OK;
}

}  // namespace

void fill_memory(ep_device_ops* ops) {
  ops->memory_allocate = entry<memory_allocate>;
  ops->memory_free = memory_free;
  ops->memory_native_handle = entry<memory_native_handle>;
}

}  // namespace tenon::provider::opencl
