#include "providers/vulkan/device.h"

namespace tenon::provider::vulkan {
namespace {

ep_status memory_allocate(ep_device* device, uint32_t pool, uint64_t size, ep_memory** out_memory, ep_error** error) {
  const ep_host* host = device->host;
  Context& context = *device->context;
  if (pool > staging_pool) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "vulkan has two pools; there is no pool %u.", pool);
  }
  if (const ep_status status = context.check(error); status != EP_STATUS_OK) return status;
  const uint64_t largest = context.physical->facts.largest_allocation;
  if (size > largest) {
    return fail(host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY,
                "A block of %llu bytes exceeds the largest allocation of %s (%llu bytes).",
                static_cast<unsigned long long>(size), context.physical->name.c_str(),
                static_cast<unsigned long long>(largest));
  }
  ep_memory* memory = make<ep_memory>(host, host, Block{});
  const char* call = nullptr;
  const VkResult result = allocate_block(
      context, pool == staging_pool ? context.memory.upload : context.memory.operands, size, &memory->block, &call);
  if (result == VK_SUCCESS) {
    *out_memory = memory;
    return EP_STATUS_OK;
  }
  destroy(memory);
  return context.failed(error, call, result);
}

void memory_free(ep_device* device, ep_memory* memory) noexcept {
  if (memory == nullptr) return;
  free_block(*device->context, &memory->block);
  destroy(memory);
}

ep_status memory_map(ep_device* device, ep_memory* memory, void** out_pointer, ep_error** error) {
  if (memory->block.host == nullptr) {
    return fail(device->host, error, EP_STATUS_UNSUPPORTED, "The memory of %s is not accessible to the host.",
                device->context->physical->name.c_str());
  }
  *out_pointer = memory->block.host;
  return EP_STATUS_OK;
}

ep_status memory_flush(ep_device* device, ep_memory* memory, uint64_t offset, uint64_t size, ep_error** error) {
  const VkResult result = flush_block(*device->context, memory->block, offset, size);
  return result == VK_SUCCESS ? EP_STATUS_OK : device->context->failed(error, "vkFlushMappedMemoryRanges", result);
}

ep_status memory_invalidate(ep_device* device, ep_memory* memory, uint64_t offset, uint64_t size, ep_error** error) {
  const VkResult result = invalidate_block(*device->context, memory->block, offset, size);
  return result == VK_SUCCESS ? EP_STATUS_OK : device->context->failed(error, "vkInvalidateMappedMemoryRanges", result);
}

// The native handle is the VkBuffer of the whole block.
ep_status memory_native_handle(ep_device*, ep_memory* memory, uint64_t* out_handle, ep_error**) {
  *out_handle = reinterpret_cast<uint64_t>(memory->block.buffer);
  return EP_STATUS_OK;
}

}  // namespace

void fill_memory(ep_device_ops* ops) {
  ops->memory_allocate = entry<memory_allocate>;
  ops->memory_free = memory_free;
  ops->memory_map = entry<memory_map>;
  ops->memory_flush = entry<memory_flush>;
  ops->memory_invalidate = entry<memory_invalidate>;
  ops->memory_native_handle = entry<memory_native_handle>;
}

}  // namespace tenon::provider::vulkan
