#include "providers/vulkan/queue/block.h"

#include <algorithm>

namespace tenon::provider::vulkan {

VkBufferCreateInfo buffer_info(uint64_t size) {
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = size;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  return info;
}

uint64_t address_of(const Context& context, VkBuffer buffer) {
  VkBufferDeviceAddressInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  info.buffer = buffer;
  return context.api.vkGetBufferDeviceAddress(context.device, &info);
}

namespace {

VkResult make_buffer(const Context& context, uint64_t size, VkBuffer* out_buffer) {
  const VkBufferCreateInfo info = buffer_info(size);
  return context.api.vkCreateBuffer(context.device, &info, nullptr, out_buffer);
}

VkResult make_memory(const Context& context, const MemoryType& type, Block* block) {
  VkMemoryRequirements requirements{};
  context.api.vkGetBufferMemoryRequirements(context.device, block->buffer, &requirements);
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = &flags;
  info.allocationSize = requirements.size;
  info.memoryTypeIndex = type.index;
  return context.api.vkAllocateMemory(context.device, &info, nullptr, &block->memory);
}

VkResult fill_block(const Context& context, Block* block, const char** out_call) {
  *out_call = "vkCreateBuffer";
  VkResult result = make_buffer(context, block->size, &block->buffer);
  if (result != VK_SUCCESS) return result;
  *out_call = "vkAllocateMemory";
  result = make_memory(context, block->type, block);
  if (result != VK_SUCCESS) return result;
  *out_call = "vkBindBufferMemory";
  result = context.api.vkBindBufferMemory(context.device, block->buffer, block->memory, 0);
  if (result != VK_SUCCESS) return result;
  if (block->type.is_mapped()) {
    *out_call = "vkMapMemory";
    void* host = nullptr;
    result = context.api.vkMapMemory(context.device, block->memory, 0, VK_WHOLE_SIZE, 0, &host);
    if (result != VK_SUCCESS) return result;
    block->host = static_cast<char*>(host);
  }
  block->address = address_of(context, block->buffer);
  return VK_SUCCESS;
}

VkMappedMemoryRange range_of(const Context& context, const Block& block, uint64_t offset, uint64_t size) {
  const uint64_t atom = std::max<uint64_t>(context.limits().nonCoherentAtomSize, 1);
  const uint64_t end = (offset + size + atom - 1) / atom * atom;
  VkMappedMemoryRange range{};
  range.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE;
  range.memory = block.memory;
  range.offset = offset / atom * atom;
  range.size = end >= block.size ? VK_WHOLE_SIZE : end - range.offset;
  return range;
}

}  // namespace

VkResult buffer_memory_types(const Context& context, uint32_t* out_types) {
  VkBuffer buffer = VK_NULL_HANDLE;
  const VkResult result = make_buffer(context, 256, &buffer);
  if (result != VK_SUCCESS) return result;
  VkMemoryRequirements requirements{};
  context.api.vkGetBufferMemoryRequirements(context.device, buffer, &requirements);
  context.api.vkDestroyBuffer(context.device, buffer, nullptr);
  *out_types = requirements.memoryTypeBits;
  return VK_SUCCESS;
}

VkResult allocate_block(const Context& context, const MemoryType& type, uint64_t size, Block* out_block,
                        const char** out_call) {
  Block block;
  block.type = type;
  block.size = (size + 255) / 256 * 256;  // a kernel may read the whole word that contains an element
  const VkResult result = fill_block(context, &block, out_call);
  if (result != VK_SUCCESS) {
    free_block(context, &block);
    return result;
  }
  *out_block = block;
  return VK_SUCCESS;
}

void free_block(const Context& context, Block* block) {
  if (block->buffer != VK_NULL_HANDLE && !block->borrowed)
    context.api.vkDestroyBuffer(context.device, block->buffer, nullptr);
  if (block->memory != VK_NULL_HANDLE) context.api.vkFreeMemory(context.device, block->memory, nullptr);
  *block = Block();
}

VkResult flush_block(const Context& context, const Block& block, uint64_t offset, uint64_t size) {
  if (!block.needs_flush()) return VK_SUCCESS;
  const VkMappedMemoryRange range = range_of(context, block, offset, size);
  return context.api.vkFlushMappedMemoryRanges(context.device, 1, &range);
}

VkResult invalidate_block(const Context& context, const Block& block, uint64_t offset, uint64_t size) {
  if (!block.needs_flush()) return VK_SUCCESS;
  const VkMappedMemoryRange range = range_of(context, block, offset, size);
  return context.api.vkInvalidateMappedMemoryRanges(context.device, 1, &range);
}

}  // namespace tenon::provider::vulkan
