#include "providers/vulkan/queue/external.h"

#include <sys/stat.h>
#include <unistd.h>

#include <vector>

namespace tenon::provider::vulkan {
namespace {

MemoryType type_at(const Context& context, uint32_t index) {
  const VkPhysicalDeviceMemoryProperties& memory = context.physical->facts.memory;
  const VkMemoryType& type = memory.memoryTypes[index];
  return {index, type.propertyFlags, memory.memoryHeaps[type.heapIndex].size};
}

// The types in `allowed`, in the order in which they are tried.
std::vector<MemoryType> candidates(const Context& context, uint32_t allowed, bool coherent) {
  std::vector<MemoryType> types;
  const auto add = [&](uint32_t index) {
    if ((allowed >> index & 1) == 0) return;
    allowed &= ~(UINT32_C(1) << index);
    const MemoryType type = type_at(context, index);
    if (!coherent || (type.is_mapped() && type.is_coherent())) types.push_back(type);
  };
  add(context.memory.operands.index);
  for (uint32_t i = 0; i < context.physical->facts.memory.memoryTypeCount; ++i) add(i);
  return types;
}

VkResult make_buffer(const Context& context, const ExternalMemory& memory, VkBuffer* out_buffer) {
  VkExternalMemoryBufferCreateInfo external{};
  external.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
  external.handleTypes = memory.type;
  VkBufferCreateInfo info = buffer_info(memory.size);
  info.pNext = &external;
  return context.api.vkCreateBuffer(context.device, &info, nullptr, out_buffer);
}

// The memory types that `memory` may have.
VkResult read_types(const Context& context, const ExternalMemory& memory, uint32_t* types) {
  const DeviceApi& api = context.api;
  if (memory.pointer != nullptr) {
    VkMemoryHostPointerPropertiesEXT host{};
    host.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT;
    const VkResult result = api.vkGetMemoryHostPointerPropertiesEXT(context.device, memory.type, memory.pointer, &host);
    *types &= host.memoryTypeBits;
    return result;
  }
  if (memory.type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT)
    return VK_SUCCESS;  // Vulkan reports no types for
                        // these
  VkMemoryFdPropertiesKHR fd{};
  fd.sType = VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR;
  const VkResult result = api.vkGetMemoryFdPropertiesKHR(context.device, memory.type, memory.fd, &fd);
  *types &= fd.memoryTypeBits;
  return result;
}

// Closes `duplicate` of `fd` after the driver has refused it. By Vulkan's rules a refused descriptor stays open, but
// Mesa's lavapipe (22.3) closes it, and its number may already belong to another file.
void close_refused(int duplicate, int fd) {
  struct stat ours {};
  struct stat theirs {};
  if (fstat(duplicate, &ours) != 0 || fstat(fd, &theirs) != 0) return;
  if (ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino) close(duplicate);
}

// Imports `memory` with memory type `type`. On success the driver owns a duplicate of the file descriptor.
VkResult allocate(const Context& context, const ExternalMemory& memory, const MemoryType& type, Block* block) {
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryDedicatedAllocateInfo dedicated{};
  dedicated.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO;
  dedicated.buffer = block->buffer;
  if (memory.dedicated) flags.pNext = &dedicated;
  VkImportMemoryHostPointerInfoEXT by_pointer{};
  by_pointer.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT;
  by_pointer.pNext = &flags;
  by_pointer.handleType = memory.type;
  by_pointer.pHostPointer = memory.pointer;
  VkImportMemoryFdInfoKHR by_fd{};
  by_fd.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR;
  by_fd.pNext = &flags;
  by_fd.handleType = memory.type;
  by_fd.fd = memory.pointer == nullptr ? dup(memory.fd) : -1;
  if (memory.pointer == nullptr && by_fd.fd == -1) return VK_ERROR_TOO_MANY_OBJECTS;
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = memory.pointer != nullptr ? static_cast<const void*>(&by_pointer) : &by_fd;
  info.allocationSize = memory.size;
  info.memoryTypeIndex = type.index;
  const VkResult result = context.api.vkAllocateMemory(context.device, &info, nullptr, &block->memory);
  if (result != VK_SUCCESS) {
    block->memory = VK_NULL_HANDLE;
    if (by_fd.fd != -1) close_refused(by_fd.fd, memory.fd);
  }
  block->type = type;
  return result;
}

// Imports with the first type that the driver accepts for `memory`.
ep_status allocate_any(Context& context, const ExternalMemory& memory, uint32_t allowed, Block* block,
                       ep_error** error) {
  VkResult result = VK_ERROR_INVALID_EXTERNAL_HANDLE;
  for (const MemoryType& type : candidates(context, allowed, memory.pointer != nullptr)) {
    result = allocate(context, memory, type, block);
    if (result != VK_ERROR_INVALID_EXTERNAL_HANDLE) break;
  }
  if (result == VK_SUCCESS) return EP_STATUS_OK;
  if (result != VK_ERROR_INVALID_EXTERNAL_HANDLE) return context.failed(error, "vkAllocateMemory", result);
  if (memory.pointer != nullptr) {
    return fail(context.host, error, EP_STATUS_UNSUPPORTED,
                "The driver of %s cannot use the %llu bytes of host memory at %p.", context.physical->name.c_str(),
                static_cast<unsigned long long>(memory.size), memory.pointer);
  }
  return fail(context.host, error, EP_STATUS_INVALID_ARGUMENT,
              "The driver of %s does not accept the file descriptor %d as memory of %llu bytes.",
              context.physical->name.c_str(), memory.fd, static_cast<unsigned long long>(memory.size));
}

ep_status fill_block(Context& context, const ExternalMemory& memory, Block* block, ep_error** error) {
  const DeviceApi& api = context.api;
  VkResult result = make_buffer(context, memory, &block->buffer);
  if (result != VK_SUCCESS) return context.failed(error, "vkCreateBuffer", result);
  VkMemoryRequirements requirements{};
  api.vkGetBufferMemoryRequirements(context.device, block->buffer, &requirements);
  if (requirements.size > memory.size) {
    return fail(context.host, error, EP_STATUS_INVALID_ARGUMENT,
                "A buffer over memory of %llu bytes needs %llu bytes on %s; give the size of the whole allocation.",
                static_cast<unsigned long long>(memory.size), static_cast<unsigned long long>(requirements.size),
                context.physical->name.c_str());
  }
  uint32_t allowed = requirements.memoryTypeBits;
  result = read_types(context, memory, &allowed);
  if (result == VK_ERROR_INVALID_EXTERNAL_HANDLE) allowed = 0;
  if (result != VK_SUCCESS && allowed != 0) return context.failed(error, "vkGetMemory*PropertiesKHR", result);
  const ep_status status = allocate_any(context, memory, allowed, block, error);
  if (status != EP_STATUS_OK) return status;
  result = api.vkBindBufferMemory(context.device, block->buffer, block->memory, 0);
  if (result != VK_SUCCESS) return context.failed(error, "vkBindBufferMemory", result);
  block->host = static_cast<char*>(memory.pointer);
  if (memory.pointer == nullptr && block->type.is_mapped() && block->type.is_coherent()) {
    void* host = nullptr;
    result = api.vkMapMemory(context.device, block->memory, 0, VK_WHOLE_SIZE, 0, &host);
    if (result != VK_SUCCESS) return context.failed(error, "vkMapMemory", result);
    block->host = static_cast<char*>(host);
  }
  return EP_STATUS_OK;
}

}  // namespace

ep_status import_block(Context& context, const ExternalMemory& memory, Block* out_block, ep_error** error) {
  Block block;
  block.size = memory.size;
  if (const ep_status status = fill_block(context, memory, &block, error); status != EP_STATUS_OK) {
    free_block(context, &block);
    return status;
  }
  block.address = address_of(context, block.buffer);
  *out_block = block;
  return EP_STATUS_OK;
}

ep_status borrow_buffer(Context& context, VkBuffer buffer, uint64_t size, Block* out_block, ep_error** error) {
  VkMemoryRequirements requirements{};
  context.api.vkGetBufferMemoryRequirements(context.device, buffer, &requirements);
  if (size > requirements.size) {
    return fail(context.host, error, EP_STATUS_INVALID_ARGUMENT,
                "An import of %llu bytes was requested, but the VkBuffer needs %llu bytes.",
                static_cast<unsigned long long>(size), static_cast<unsigned long long>(requirements.size));
  }
  const uint64_t address = address_of(context, buffer);
  if (address == 0 || address % operand_alignment != 0) {
    return fail(context.host, error, EP_STATUS_UNSUPPORTED,
                "The VkBuffer has the device address 0x%llx; a multiple of %llu, not 0, is needed.",
                static_cast<unsigned long long>(address), static_cast<unsigned long long>(operand_alignment));
  }
  *out_block = Block();
  out_block->buffer = buffer;
  out_block->borrowed = true;
  out_block->address = address;
  out_block->size = size;
  return EP_STATUS_OK;
}

}  // namespace tenon::provider::vulkan
