#include "providers/vulkan/driver/describe.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "sdk/provider/error.h"
#include "sdk/provider/import.h"
#include "sdk/provider/plugin.h"

namespace tenon::provider::vulkan {
namespace {

constexpr uint64_t own_allocations = 256;  // staging blocks, in addition to the host's blocks

std::vector<VkExtensionProperties> extensions_of(const Api& api, VkPhysicalDevice handle) {
  uint32_t count = 0;
  if (api.vkEnumerateDeviceExtensionProperties(handle, nullptr, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<VkExtensionProperties> extensions(count);
  if (api.vkEnumerateDeviceExtensionProperties(handle, nullptr, &count, extensions.data()) < VK_SUCCESS) return {};
  return extensions;
}

bool has(const std::vector<VkExtensionProperties>& extensions, const char* name) {
  return std::any_of(extensions.begin(), extensions.end(),
                     [name](const VkExtensionProperties& one) { return std::strcmp(one.extensionName, name) == 0; });
}

void read_properties(const Api& api, VkPhysicalDevice handle, PhysicalFacts* facts) {
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci{};
  pci.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT;
  VkPhysicalDeviceMaintenance4PropertiesKHR buffers{};
  buffers.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES_KHR;
  const std::vector<VkExtensionProperties> extensions = extensions_of(api, handle);
  const bool has_pci = has(extensions, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
  VkPhysicalDeviceVulkan12Properties properties12{};
  properties12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  if (has_pci) properties12.pNext = &pci;
  if (has(extensions, VK_KHR_MAINTENANCE_4_EXTENSION_NAME)) {
    buffers.pNext = properties12.pNext;
    properties12.pNext = &buffers;
  }
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host_memory{};
  host_memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT;
  if (has(extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) {
    host_memory.pNext = properties12.pNext;
    properties12.pNext = &host_memory;
  }
  VkPhysicalDeviceVulkan11Properties properties11{};
  properties11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  properties11.pNext = &properties12;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &properties11;
  api.vkGetPhysicalDeviceProperties2(handle, &properties);
  std::memcpy(facts->uuid, properties11.deviceUUID, sizeof facts->uuid);
  facts->largest_allocation = largest_block(properties11.maxMemoryAllocationSize, buffers.maxBufferSize);
  facts->layered = has(extensions, "VK_KHR_portability_subset");
  facts->memory_fd = has(extensions, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  facts->dma_buf = facts->memory_fd && has(extensions, VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
  facts->semaphore_fd = has(extensions, VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
  facts->host_page = host_memory.minImportedHostPointerAlignment;
  facts->keeps_nan = properties12.shaderSignedZeroInfNanPreserveFloat32 != 0;
  facts->rounds_even = properties12.shaderRoundingModeRTEFloat32 != 0 &&
                       properties12.roundingModeIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  facts->keeps_denormals = properties12.shaderDenormPreserveFloat32 != 0 &&
                           properties12.denormBehaviorIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  constexpr VkSubgroupFeatureFlags wanted =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT |
      VK_SUBGROUP_FEATURE_SHUFFLE_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  facts->subgroup = properties11.subgroupSize;
  facts->subgroups = (properties11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                     (properties11.subgroupSupportedOperations & wanted) == wanted;
  if (!has_pci) return;
  const int64_t place[4] = {pci.pciDomain, pci.pciBus, pci.pciDevice, pci.pciFunction};
  std::copy(place, place + 4, facts->pci);
}

void read_features(const Api& api, VkPhysicalDevice handle, PhysicalFacts* facts) {
  VkPhysicalDeviceVulkan11Features features11{};
  features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  facts->features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  facts->features12.pNext = &features11;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &facts->features12;
  api.vkGetPhysicalDeviceFeatures2(handle, &features);
  facts->features12.pNext = nullptr;
  facts->int64 = features.features.shaderInt64 != 0;
  facts->int16 = features.features.shaderInt16 != 0;
  facts->float64 = features.features.shaderFloat64 != 0;
  facts->storage16 = features11.storageBuffer16BitAccess != 0;
}

void read_queues(const Api& api, VkPhysicalDevice handle, PhysicalFacts* facts) {
  uint32_t count = 0;
  api.vkGetPhysicalDeviceQueueFamilyProperties(handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.vkGetPhysicalDeviceQueueFamilyProperties(handle, &count, families.data());
  for (uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0 || families[i].queueCount == 0) continue;
    const bool draws = (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0;
    if (facts->queue_family && draws) continue;
    facts->queue_family = i;
    facts->queue_count = families[i].queueCount;
    const uint32_t bits = families[i].timestampValidBits;
    facts->timestamp_mask = bits >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
    if (!draws) return;
  }
}

std::string fingerprint_of(const VkPhysicalDeviceProperties& properties) {
  std::string fingerprint = fmt::format("{}, {:04x}:{:04x}, driver {:08x}, pipelines ", properties.deviceName,
                                        properties.vendorID, properties.deviceID, properties.driverVersion);
  for (uint8_t byte : properties.pipelineCacheUUID) fingerprint += fmt::format("{:02x}", byte);
  return fingerprint;
}

}  // namespace

PhysicalFacts read_facts(const Api& api, VkPhysicalDevice handle) {
  PhysicalFacts facts;
  api.vkGetPhysicalDeviceProperties(handle, &facts.properties);
  api.vkGetPhysicalDeviceMemoryProperties(handle, &facts.memory);
  read_queues(api, handle, &facts);
  // A driver older than Vulkan 1.2 ignores the structures of 1.2.
  if (facts.properties.apiVersion < VK_API_VERSION_1_2) return facts;
  read_properties(api, handle, &facts);
  read_features(api, handle, &facts);
  return facts;
}

uint64_t memory_handles(const PhysicalFacts& facts) {
  uint64_t taken = handle_bit(EP_HANDLE_VK_BUFFER);
  if (facts.memory_fd) taken |= handle_bit(EP_HANDLE_OPAQUE_FD);
  if (facts.dma_buf) taken |= handle_bit(EP_HANDLE_DMA_BUF);
  return taken;
}

uint64_t semaphore_handles(const PhysicalFacts& facts) {
  return handle_bit(EP_HANDLE_VK_SEMAPHORE) | (facts.semaphore_fd ? handle_bit(EP_HANDLE_OPAQUE_FD) : 0);
}

std::vector<const char*> extensions_to_enable(const PhysicalFacts& facts) {
  std::vector<const char*> names;
  if (facts.layered) names.push_back("VK_KHR_portability_subset");
  if (facts.memory_fd) names.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  if (facts.dma_buf) names.push_back(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
  if (facts.semaphore_fd) names.push_back(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
  if (facts.host_page != 0) names.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  return names;
}

uint64_t largest_block(uint64_t memory, uint64_t buffer) {
  return (buffer == 0 ? memory : std::min(memory, buffer)) / 256 * 256;
}

std::string why_unusable(const PhysicalFacts& facts) {
  const uint32_t version = facts.properties.apiVersion;
  if (version < VK_API_VERSION_1_2) {
    return fmt::format("its driver speaks Vulkan {}.{}; 1.2 is needed.", VK_API_VERSION_MAJOR(version),
                       VK_API_VERSION_MINOR(version));
  }
  std::string missing;
  const auto need = [&missing](bool present, const char* what) {
    if (!present) missing.append(missing.empty() ? "" : ", ").append(what);
  };
  need(facts.features12.bufferDeviceAddress != 0, "bufferDeviceAddress");
  need(facts.features12.timelineSemaphore != 0, "timelineSemaphore");
  need(facts.features12.scalarBlockLayout != 0, "scalarBlockLayout");
  need(facts.queue_family.has_value(), "a queue that computes");
  need(plan_memory(facts.memory, ~0U, facts.properties.deviceType).has_value(), "memory that the host can write");
  return missing.empty() ? missing : fmt::format("its driver does not offer {}.", missing);
}

int32_t class_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return EP_DEVICE_CLASS_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return EP_DEVICE_CLASS_INTEGRATED;
    default: return EP_DEVICE_CLASS_SOFTWARE;  // a processor, or an unknown type
  }
}

PhysicalDevice describe(const Api& api, VkPhysicalDevice handle, const Options& options) {
  PhysicalDevice device;
  device.handle = handle;
  device.facts = read_facts(api, handle);
  device.name = device.facts.properties.deviceName;
  device.fingerprint = fingerprint_of(device.facts.properties);
  device.memory = plan_memory(device.facts.memory, ~0U, device.facts.properties.deviceType);
  const std::string reason = why_unusable(device.facts);
  if (!reason.empty()) {
    device.unusable = fmt::format("{} cannot be used: {}", device.name, reason);
    device.remedy = "Install a newer driver for it.";
  }
  if (!options.baseline) {
    device.features.narrow = device.facts.features12.storageBuffer8BitAccess != 0 && device.facts.storage16;
    device.features.int64 = device.facts.int64;
    device.features.float64 = device.facts.float64;
    device.features.float16 = device.facts.features12.shaderFloat16 != 0 && device.facts.storage16;
    device.features.int8 = device.facts.features12.shaderInt8 != 0;
    device.features.int16 = device.facts.int16;
  }
  return device;
}

// Our functions keep tier full if sums and products are rounded to nearest. Everything is computed in f32, so a narrow
// dtype has the tier of f32; denormals of f16 are normal numbers in f32, denormals of bf16 are not. f64 is only moved.
void state_accuracy(const PhysicalFacts& facts, ep_device_info* info) {
  const auto bit = [](int32_t dtype) { return UINT64_C(1) << dtype; };
  const uint64_t narrow = bit(EP_DTYPE_f16) | bit(EP_DTYPE_bf16) | bit(EP_DTYPE_f8e4m3fn) | bit(EP_DTYPE_f8e5m2);
  if (!facts.rounds_even) info->portable_dtypes = bit(EP_DTYPE_f32) | narrow;
  if (!facts.keeps_denormals) info->flushed_dtypes = bit(EP_DTYPE_f32) | bit(EP_DTYPE_bf16);
}

void fill_info(const PhysicalDevice& device, ep_device_info* info) {
  const PhysicalFacts& facts = device.facts;
  info->name = to_ep_string(device.name);
  info->fingerprint = to_ep_string(device.fingerprint);
  info->unusable_reason = to_ep_string(device.unusable);
  info->remedy = to_ep_string(device.remedy);
  info->device_class = class_of(facts.properties.deviceType);
  info->dtypes = every_dtype;
  state_accuracy(facts, info);
  std::memcpy(info->uuid, facts.uuid, sizeof info->uuid);
  std::copy(facts.pci, facts.pci + 4, info->pci);
  info->memory_handles = memory_handles(facts);
  info->semaphore_handles = semaphore_handles(facts);
  info->device_handles = handle_bit(EP_HANDLE_VK_DEVICE);
  info->native_memory = EP_HANDLE_VK_BUFFER;
  if (!device.memory) return;
  const MemoryType& type = device.memory->operands;
  const bool software = info->device_class == EP_DEVICE_CLASS_SOFTWARE;
  const uint64_t most = facts.properties.limits.maxMemoryAllocationCount;
  info->pool_count = 1;
  ep_memory_pool_info& pool = info->pools[0];
  pool.flags = (type.flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0 ? EP_POOL_FLAG_DEVICE_LOCAL : 0;
  if (type.is_mapped()) pool.flags |= EP_POOL_FLAG_HOST_VISIBLE;
  if (type.is_mapped() && type.is_coherent()) pool.flags |= EP_POOL_FLAG_COHERENT;
  if ((type.flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0) pool.flags |= EP_POOL_FLAG_HOST_CACHED;
  pool.size = type.heap_size;
  pool.minimum_alignment = std::max<uint64_t>(operand_alignment, facts.properties.limits.nonCoherentAtomSize);
  pool.preferred_block = software ? UINT64_C(2) << 20 : UINT64_C(16) << 20;
  pool.largest_allocation = facts.largest_allocation;
  pool.maximum_allocations = most < (UINT64_C(1) << 31) ? most - std::min(most / 2, own_allocations) : 0;
  if (!device.memory->upload.is_coherent()) return;
  // A pool that the host writes and the device copies from, so that no data is staged twice.
  info->pool_count = 2;
  info->pools[staging_pool] = pool;
  info->pools[staging_pool].flags = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT | EP_POOL_FLAG_STAGING;
  info->pools[staging_pool].size = device.memory->upload.heap_size;
}

}  // namespace tenon::provider::vulkan
