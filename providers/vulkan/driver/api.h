// Api: the functions of Vulkan, found at run time. The provider does not link libvulkan; it opens the Vulkan loader
// when the host first counts devices, so a machine without Vulkan gets a message instead of a load failure.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <string>

namespace tenon::provider::vulkan {

#define TENON_VULKAN_INSTANCE_FUNCTIONS(X)    \
  X(vkDestroyInstance)                        \
  X(vkEnumeratePhysicalDevices)               \
  X(vkEnumerateDeviceExtensionProperties)     \
  X(vkGetPhysicalDeviceProperties)            \
  X(vkGetPhysicalDeviceProperties2)           \
  X(vkGetPhysicalDeviceFeatures2)             \
  X(vkGetPhysicalDeviceMemoryProperties)      \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkCreateDevice)                           \
  X(vkGetDeviceProcAddr)

#define TENON_VULKAN_DEVICE_FUNCTIONS(X) \
  X(vkDestroyDevice)                     \
  X(vkGetDeviceQueue)                    \
  X(vkQueueSubmit)                       \
  X(vkDeviceWaitIdle)                    \
  X(vkAllocateMemory)                    \
  X(vkFreeMemory)                        \
  X(vkMapMemory)                         \
  X(vkFlushMappedMemoryRanges)           \
  X(vkInvalidateMappedMemoryRanges)      \
  X(vkCreateBuffer)                      \
  X(vkDestroyBuffer)                     \
  X(vkBindBufferMemory)                  \
  X(vkGetBufferMemoryRequirements)       \
  X(vkGetBufferDeviceAddress)            \
  X(vkCreateSemaphore)                   \
  X(vkDestroySemaphore)                  \
  X(vkGetSemaphoreCounterValue)          \
  X(vkWaitSemaphores)                    \
  X(vkCreateCommandPool)                 \
  X(vkDestroyCommandPool)                \
  X(vkResetCommandPool)                  \
  X(vkAllocateCommandBuffers)            \
  X(vkBeginCommandBuffer)                \
  X(vkEndCommandBuffer)                  \
  X(vkCmdPipelineBarrier)                \
  X(vkCmdCopyBuffer)                     \
  X(vkCmdBindPipeline)                   \
  X(vkCmdPushConstants)                  \
  X(vkCmdDispatch)                       \
  X(vkCreateQueryPool)                   \
  X(vkDestroyQueryPool)                  \
  X(vkCmdResetQueryPool)                 \
  X(vkCmdWriteTimestamp)                 \
  X(vkGetQueryPoolResults)               \
  X(vkCreateShaderModule)                \
  X(vkDestroyShaderModule)               \
  X(vkCreatePipelineLayout)              \
  X(vkDestroyPipelineLayout)             \
  X(vkCreatePipelineCache)               \
  X(vkDestroyPipelineCache)              \
  X(vkGetPipelineCacheData)              \
  X(vkCreateComputePipelines)            \
  X(vkDestroyPipeline)

// The functions of the Vulkan loader. open() fills them.
struct Api {
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr = nullptr;
  PFN_vkCreateInstance vkCreateInstance = nullptr;
  PFN_vkEnumerateInstanceVersion vkEnumerateInstanceVersion = nullptr;
  PFN_vkEnumerateInstanceExtensionProperties vkEnumerateInstanceExtensionProperties = nullptr;
  PFN_vkCreateDebugUtilsMessengerEXT vkCreateDebugUtilsMessengerEXT = nullptr;    // only with the validation layer
  PFN_vkDestroyDebugUtilsMessengerEXT vkDestroyDebugUtilsMessengerEXT = nullptr;  // only with the validation layer
#define TENON_VULKAN_MEMBER(name) PFN_##name name = nullptr;
  TENON_VULKAN_INSTANCE_FUNCTIONS(TENON_VULKAN_MEMBER)
#undef TENON_VULKAN_MEMBER

  // Opens the Vulkan loader. Returns the message of dlopen, or an empty string. The library stays open, because drivers
  // leave thread-locals that outlive dlclose.
  std::string open(const std::string& library);
  // Fills the functions of an instance. Returns the name of the first missing one, or NULL.
  const char* load_instance(VkInstance instance);
};

// Functions of extensions; null if the device was created without the extension.
#define TENON_VULKAN_EXTENSION_FUNCTIONS(X) \
  X(vkGetMemoryFdPropertiesKHR)             \
  X(vkGetMemoryHostPointerPropertiesEXT)    \
  X(vkImportSemaphoreFdKHR)

struct DeviceApi {
#define TENON_VULKAN_MEMBER(name) PFN_##name name = nullptr;
  TENON_VULKAN_DEVICE_FUNCTIONS(TENON_VULKAN_MEMBER)
  TENON_VULKAN_EXTENSION_FUNCTIONS(TENON_VULKAN_MEMBER)
#undef TENON_VULKAN_MEMBER

  const char* load(const Api& api, VkDevice device);
};

}  // namespace tenon::provider::vulkan
