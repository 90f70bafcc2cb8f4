// What a physical device is, and whether it can be used: read from the driver once, judged by pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "providers/vulkan/driver/memory_types.h"
#include "providers/vulkan/driver/options.h"

namespace tenon::provider::vulkan {

// What the driver says of a device.
struct PhysicalFacts {
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceVulkan12Features features12{};
  VkPhysicalDeviceMemoryProperties memory{};
  uint8_t uuid[16]{};
  uint64_t largest_allocation = 0;  // a multiple of a block's granularity that a memory and a buffer may both have
  int64_t pci[4]{-1, -1, -1, -1};   // domain, bus, device, function
  bool int64 = false;
  bool storage16 = false;
  bool layered = false;                  // the driver has VK_KHR_portability_subset, which is then to be enabled
  bool keeps_nan = false;                // f32 in shaders can be asked to keep NaN, infinities and the sign of 0
  bool rounds_even = false;              // f32 in shaders can be asked to round to nearest even
  std::optional<uint32_t> queue_family;  // with compute; one that draws too is taken last
  uint32_t queue_count = 0;
};

// The optional features this provider uses; without them some element types are left to the ladder.
struct Features {
  bool narrow = false;  // 8- and 16-bit storage: types of 1 and 2 bytes
  bool int64 = false;   // arithmetic on i64 and u64
};

struct PhysicalDevice {
  VkPhysicalDevice handle = nullptr;
  PhysicalFacts facts;
  Features features;
  std::optional<MemoryPlan> memory;
  std::string name;
  std::string fingerprint;
  std::string unusable;  // empty: usable
  std::string remedy;
};

PhysicalFacts read_facts(const Api& api, VkPhysicalDevice handle);

// The largest block: what a memory and (0: the driver does not say) a buffer may have, in whole granules of 256 bytes.
uint64_t largest_block(uint64_t memory, uint64_t buffer);

// Why the device cannot be used: one sentence with everything that is missing; empty if it can.
std::string why_unusable(const PhysicalFacts& facts);

// EP_DEVICE_CLASS_*
int32_t class_of(VkPhysicalDeviceType type);

PhysicalDevice describe(const Api& api, VkPhysicalDevice handle, const Options& options);

// The operands' pool and, where they are not the host's, one for staging.
void fill_info(const PhysicalDevice& device, ep_device_info* info);

}  // namespace tenon::provider::vulkan
