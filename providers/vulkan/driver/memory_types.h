// Chooses the memory type for each purpose. The choice is a pure function of vkGetPhysicalDeviceMemoryProperties, so
// tests can run it on recorded tables of devices that no tester has.
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
  MemoryType operands;    // operands of primitives
  MemoryType upload;      // host writes, device reads; coherent
  MemoryType download;    // device writes, host reads; cached if possible
  MemoryType parameters;  // small; the host writes them for each launch, and every workgroup reads them; coherent
};

// Chooses among the types in `allowed` (VkMemoryRequirements::memoryTypeBits):
//   operands    DEVICE_LOCAL on the largest such heap. If the host shares all memory of the device (integrated,
//               software), a mapped type is better, cached first, then coherent. On a discrete GPU an unmapped type
//               is better, because a mapped one may be a small window, or slow; a mapped one is the last choice.
//   upload      HOST_VISIBLE and COHERENT, if possible not DEVICE_LOCAL.
//   download    HOST_VISIBLE and CACHED, COHERENT if possible; else as upload.
//   parameters  DEVICE_LOCAL, HOST_VISIBLE and COHERENT if such a type exists; else as upload.
// Lazily allocated, protected and AMD's uncached types are never chosen. Returns nothing if a purpose has no type.
std::optional<MemoryPlan> plan_memory(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed,
                                      VkPhysicalDeviceType device_type);

}  // namespace tenon::provider::vulkan
