// Block: one allocation of device memory, with a buffer over all of it.
#pragma once

#include "providers/vulkan/queue/context.h"

namespace tenon::provider::vulkan {

struct Block {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t address = 0;  // the address that kernels use
  uint64_t size = 0;
  char* host = nullptr;  // host address if the type is host-visible; mapped for the life of the block
  MemoryType type;
  bool borrowed = false;  // the buffer belongs to the application

  bool needs_flush() const { return !type.is_coherent(); }
};

// A buffer of `size` bytes for operands and transfers.
VkBufferCreateInfo buffer_info(uint64_t size);
// The device address of `buffer`, which must be bound to memory.
uint64_t address_of(const Context& context, VkBuffer buffer);

// VkMemoryRequirements::memoryTypeBits of the buffers made here. They differ only in size, so one answer serves all.
VkResult buffer_memory_types(const Context& context, uint32_t* out_types);

// Allocates `size` bytes of `type`. On failure nothing stays allocated, and `*out_call` names the call that failed.
VkResult allocate_block(const Context& context, const MemoryType& type, uint64_t size, Block* out_block,
                        const char** out_call);
void free_block(const Context& context, Block* block);

// Makes host writes visible to the device, or device writes visible to the host. Rounds to whole atoms.
VkResult flush_block(const Context& context, const Block& block, uint64_t offset, uint64_t size);
VkResult invalidate_block(const Context& context, const Block& block, uint64_t offset, uint64_t size);

}  // namespace tenon::provider::vulkan
