// ExternalMemory: memory that another API or another VkDevice made, and the block for it.
#pragma once

#include "providers/vulkan/queue/block.h"

namespace tenon::provider::vulkan {

// Memory by file descriptor (`fd`) or by host address (`pointer`). The caller keeps ownership.
struct ExternalMemory {
  VkExternalMemoryHandleTypeFlagBits type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  int fd = -1;
  void* pointer = nullptr;
  uint64_t size = 0;       // bytes of the whole allocation
  bool dedicated = false;  // it was allocated for one buffer
};

// Makes a block for `memory`; free_block ends the import. Vulkan does not report the memory type of a file descriptor,
// so the types that serve our buffers are tried, the type of operands first. On failure nothing is left.
ep_status import_block(Context& context, const ExternalMemory& memory, Block* out_block, ep_error** error);

// A block for all of `buffer`, which belongs to the application and to the device `context.device`.
ep_status borrow_buffer(Context& context, VkBuffer buffer, uint64_t size, Block* out_block, ep_error** error);

}  // namespace tenon::provider::vulkan
