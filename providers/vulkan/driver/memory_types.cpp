#include "providers/vulkan/driver/memory_types.h"

namespace tenon::provider::vulkan {
namespace {

constexpr VkMemoryPropertyFlags device_local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
constexpr VkMemoryPropertyFlags coherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
constexpr VkMemoryPropertyFlags never = VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT |
                                        VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD |
                                        VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;

class Chooser {
 public:
  Chooser(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed) : memory_(memory), allowed_(allowed) {}

  // The best type that has all flags of `needed`: 100 points for first_choice, 20 for second_choice, minus 10 for any
  // flag of `unwanted`. Among equals, the type on the largest heap wins, then the first, because Vulkan orders types by
  // speed.
  std::optional<MemoryType> best(VkMemoryPropertyFlags needed, VkMemoryPropertyFlags first_choice,
                                 VkMemoryPropertyFlags second_choice, VkMemoryPropertyFlags unwanted) const {
    std::optional<MemoryType> found;
    int most = 0;
    for (uint32_t i = 0; i < memory_.memoryTypeCount; ++i) {
      const VkMemoryPropertyFlags flags = memory_.memoryTypes[i].propertyFlags;
      if ((allowed_ >> i & 1U) == 0 || (flags & needed) != needed || (flags & never) != 0) continue;
      const int points = ((flags & first_choice) == first_choice ? 100 : 0) +
                         ((flags & second_choice) == second_choice ? 20 : 0) - ((flags & unwanted) != 0 ? 10 : 0);
      const uint64_t heap = memory_.memoryHeaps[memory_.memoryTypes[i].heapIndex].size;
      if (found && (points < most || (points == most && heap <= found->heap_size))) continue;
      found = MemoryType{i, flags, heap};
      most = points;
    }
    return found;
  }

  // True if every heap is device-local.
  bool unified() const {
    for (uint32_t i = 0; i < memory_.memoryHeapCount; ++i) {
      if ((memory_.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0) return false;
    }
    return true;
  }

  // The device-local types on the largest heap that has such types.
  Chooser on_largest_device_heap() const {
    uint64_t largest = 0;
    uint32_t types = 0;
    for (uint32_t i = 0; i < memory_.memoryTypeCount; ++i) {
      const VkMemoryPropertyFlags flags = memory_.memoryTypes[i].propertyFlags;
      if ((allowed_ >> i & 1U) == 0 || (flags & device_local) == 0 || (flags & never) != 0) continue;
      const uint64_t heap = memory_.memoryHeaps[memory_.memoryTypes[i].heapIndex].size;
      if (heap < largest) continue;
      types = (heap > largest ? 0U : types) | 1U << i;
      largest = heap;
    }
    return {memory_, types};
  }

 private:
  const VkPhysicalDeviceMemoryProperties& memory_;
  uint32_t allowed_;
};

}  // namespace

std::optional<MemoryPlan> plan_memory(const VkPhysicalDeviceMemoryProperties& memory, uint32_t allowed,
                                      VkPhysicalDeviceType device_type) {
  const Chooser all(memory, allowed);
  const bool shared = device_type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
                      device_type == VK_PHYSICAL_DEVICE_TYPE_CPU || all.unified();
  const Chooser local = all.on_largest_device_heap();
  std::optional<MemoryType> operands = shared ? local.best(device_local, visible | cached, coherent, 0)
                                              : local.best(device_local, 0, 0, visible | cached);
  if (!operands) operands = all.best(0, device_local, 0, 0);
  const std::optional<MemoryType> upload = all.best(visible | coherent, 0, 0, device_local | cached);
  std::optional<MemoryType> download = all.best(visible | cached, coherent, 0, 0);
  if (!download) download = upload;
  const std::optional<MemoryType> parameters = all.best(visible | coherent, device_local, 0, cached);
  if (!operands || !upload || !download || !parameters) return std::nullopt;
  return MemoryPlan{*operands, *upload, *download, *parameters};
}

}  // namespace tenon::provider::vulkan
