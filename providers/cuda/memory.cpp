// Blocks of memory. Pool 0 is device memory; pool 1 is pinned host memory that the device can access. Device memory
// comes from the driver's stream-ordered allocator if there is one, because cuMemFree waits for all work of the device.
#include "providers/cuda/device.h"

namespace tenon::provider::cuda {
namespace {

ep_status out_of_memory(ep_device* device, uint32_t pool, uint64_t size, ep_error** error) {
  const auto bytes = static_cast<unsigned long long>(size);
  if (pool == pinned_pool) {
    return fail(device->host, error, EP_STATUS_OUT_OF_HOST_MEMORY, "The driver cannot pin %llu bytes of host memory.",
                bytes);
  }
  size_t free_bytes = 0;
  size_t total = 0;
  device->driver->mem_get_info(&free_bytes, &total);
  return fail(device->host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY,
              "%s has no block of %llu bytes: %zu of %zu are free.", device->facts.name.c_str(), bytes, free_bytes,
              total);
}

// Returns when every stream can use the block, because the allocation stream has no other work. The pool reuses memory
// that was just freed.
CUresult allocate_ordered(ep_device* device, uint64_t size, CUdeviceptr* out) {
  const Driver& driver = *device->driver;
  CUresult result = driver.mem_alloc_from_pool_async(out, size, device->pool, device->allocation_stream);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    result = driver.stream_synchronize(device->allocation_stream);
    if (result == CUDA_SUCCESS) {
      result = driver.mem_alloc_from_pool_async(out, size, device->pool, device->allocation_stream);
    }
  }
  return result == CUDA_SUCCESS ? driver.stream_synchronize(device->allocation_stream) : result;
}

CUresult allocate_in(ep_device* device, uint32_t pool, uint64_t size, ep_memory* memory) {
  const Driver& driver = *device->driver;
  if (pool == pinned_pool) {
    const CUresult result =
        driver.mem_host_alloc(&memory->mapped, size, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    memory->address = reinterpret_cast<CUdeviceptr>(memory->mapped);  // host and device share one address space
    return result;
  }
  memory->ordered = device->pool != nullptr;
  return memory->ordered ? allocate_ordered(device, size, &memory->address) : driver.mem_alloc(&memory->address, size);
}

ep_status memory_allocate(ep_device* device, uint32_t pool, uint64_t size, ep_memory** out_memory, ep_error** error) {
  if (pool > pinned_pool) {
    return fail(device->host, error, EP_STATUS_INVALID_ARGUMENT, "cuda has two pools; there is no pool %u.", pool);
  }
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  ep_memory* memory = make<ep_memory>(device->host);
  const Current current(device);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) {
    result = size > (uint64_t{1} << 62) ? CUDA_ERROR_OUT_OF_MEMORY : allocate_in(device, pool, size, memory);
  }
  if (result == CUDA_SUCCESS) {
    *out_memory = memory;
    return EP_STATUS_OK;
  }
  destroy(memory);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return out_of_memory(device, pool, size, error);
  return driver_failed(device, result, "allocating memory", error);
}

void memory_free(ep_device* device, ep_memory* memory) noexcept {
  if (memory == nullptr) return;
  {
    const Current current(device);
    const bool is_theirs = memory->imported && memory->external == nullptr;
    if (memory->mapped != nullptr)
      device->driver->mem_free_host(memory->mapped);
    else if (memory->ordered)
      device->driver->mem_free_async(memory->address, device->allocation_stream);
    else if (!is_theirs)
      device->driver->mem_free(memory->address);
    if (memory->external != nullptr) device->driver->destroy_external_memory(memory->external);
  }
  destroy(memory);
}

ep_status memory_map(ep_device* device, ep_memory* memory, void** out_pointer, ep_error** error) {
  if (memory->mapped == nullptr) {
    return fail_text(device->host, error, EP_STATUS_UNSUPPORTED,
                     "Memory of pool 0 lies in the device and has no host address.");
  }
  *out_pointer = memory->mapped;
  return EP_STATUS_OK;
}

ep_status memory_native_handle(ep_device*, ep_memory* memory, uint64_t* out_handle, ep_error**) {
  *out_handle = memory->address;
  return EP_STATUS_OK;
}

// Returns freed memory from the pool to the driver.
void device_trim(ep_device* device) noexcept {
  if (device->pool == nullptr) return;
  const Current current(device);
  if (current.result() != CUDA_SUCCESS) return;
  device->driver->stream_synchronize(device->allocation_stream);
  device->driver->mem_pool_trim_to(device->pool, 0);
}

}  // namespace

void fill_memory(ep_device_ops* ops) {
  ops->device_trim = device_trim;
  ops->memory_allocate = entry<memory_allocate>;
  ops->memory_free = memory_free;
  ops->memory_map = entry<memory_map>;
  ops->memory_native_handle = entry<memory_native_handle>;
}

}  // namespace tenon::provider::cuda
