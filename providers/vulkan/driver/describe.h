// Describes a physical device and decides if it is usable. The facts are read from the driver once; pure functions
// judge them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "providers/vulkan/driver/memory_types.h"
#include "providers/vulkan/driver/options.h"

namespace tenon::provider::vulkan {

// The driver's facts about a device.
struct PhysicalFacts {
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceVulkan12Features features12{};
  VkPhysicalDeviceMemoryProperties memory{};
  uint8_t uuid[16]{};
  uint64_t largest_allocation = 0;  // most bytes of a block, in whole granules: the lower limit of memory and buffers
  int64_t pci[4]{-1, -1, -1, -1};   // domain, bus, device, function
  bool int64 = false;
  bool int16 = false;
  bool float64 = false;
  bool storage16 = false;
  uint32_t subgroup = 0;                 // invocations per subgroup
  bool subgroups = false;                // compute shaders can vote, shuffle and reduce in subgroups
  bool layered = false;                  // the driver has VK_KHR_portability_subset, which must then be enabled
  bool memory_fd = false;                // VK_KHR_external_memory_fd
  bool dma_buf = false;                  // VK_EXT_external_memory_dma_buf
  bool semaphore_fd = false;             // VK_KHR_external_semaphore_fd
  uint64_t host_page = 0;                // granularity of imported host memory; 0: host memory cannot be imported
  bool keeps_nan = false;                // shaders can demand that f32 keeps NaN, infinities and the sign of 0
  bool rounds_even = false;              // shaders can demand that f32 rounds to nearest even
  bool keeps_denormals = false;          // shaders can demand that f32 keeps denormals
  std::optional<uint32_t> queue_family;  // a family with compute; a family that also has graphics is chosen last
  uint32_t queue_count = 0;
  uint64_t timestamp_mask = 0;  // valid bits of a timestamp; 0: the queues have no clock
};

// Pool 0 holds operands.
inline constexpr uint32_t staging_pool = 1;

// Optional features that the provider uses. Without them the host computes some element types.
struct Features {
  bool narrow = false;  // 8- and 16-bit storage: types of 1 and 2 bytes
  bool int64 = false;   // arithmetic on i64 and u64
  // Only for kernel modules; never set for an application's device.
  bool float16 = false;
  bool float64 = false;
  bool int8 = false;  // 8-bit arithmetic; 8-bit storage without it only has loads and stores
  bool int16 = false;
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

// The largest block in whole granules of 256 bytes. `memory` and `buffer` are the limits; 0 means that the driver
// states none.
uint64_t largest_block(uint64_t memory, uint64_t buffer);

// Blocks begin at multiples of this.
inline constexpr uint64_t operand_alignment = 256;

// Handle types that the driver imports: bits 1 << EP_HANDLE_*.
uint64_t memory_handles(const PhysicalFacts& facts);
uint64_t semaphore_handles(const PhysicalFacts& facts);
// The extensions of the device that the provider uses.
std::vector<const char*> extensions_to_enable(const PhysicalFacts& facts);

// Why the device is unusable: one sentence that names everything that is missing. Empty if it is usable.
std::string why_unusable(const PhysicalFacts& facts);

// EP_DEVICE_CLASS_*
int32_t class_of(VkPhysicalDeviceType type);

PhysicalDevice describe(const Api& api, VkPhysicalDevice handle, const Options& options);

// Fills in the pool of operands, and the staging pool if operands are not in host memory.
void fill_info(const PhysicalDevice& device, ep_device_info* info);

}  // namespace tenon::provider::vulkan
