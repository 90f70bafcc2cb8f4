// Which of a device's memory types serves what: a pure function of what vkGetPhysicalDeviceMemoryProperties says, so
// that it is tested against recorded tables of devices nobody here has.
#pragma once

#include <cstdint>
#include <optional>

#include "providers/vulkan/driver/api.h"

namespace tenon::provider::vulkan {

struct MemoryType {
  uint32_t index = 0;
  VkMemoryPropertyFlags flags = 0;
  uint64_t heap_size = 0;

  bool is_mapped() const { return (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0; }
  bool is_coherent() const { return (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0; }
};

struct MemoryPlan {
  MemoryType operands;    // where primitives' operands lie
  MemoryType upload;      // the host writes, the device reads; coherent
  MemoryType download;    // the device writes, the host reads: cached where there is such a type
  MemoryType parameters;  // small, written by the host for each launch and read by every workgroup; coherent
};

// Of the types in `allowed` (VkMemoryRequirements::memoryTypeBits):
//   operands    DEVICE_LOCAL on the largest such heap. Where all of the device's memory is the host's too (integrated,
//               software) a mapped type is preferred, cached first, then coherent; on a discrete GPU one that is not
//               mapped, since a mapped type may be a small window, or slow. If there is nothing else, a mapped one.
//   upload      HOST_VISIBLE and COHERENT, not DEVICE_LOCAL where there is a choice.
//   download    HOST_VISIBLE and CACHED, COHERENT preferred; else as upload.
//   parameters  DEVICE_LOCAL, HOST_VISIBLE and COHERENT where there is such a type; else as upload.
// Lazily allocated, protected and AMD's uncached types are never taken. Nothing if no type serves one of the four.
std::optional<MemoryPlan> plan_memory(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed,
                                      VkPhysicalDeviceType device_type);

}  // namespace tenon::provider::vulkan
