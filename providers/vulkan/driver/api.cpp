#include "providers/vulkan/driver/api.h"

#include <fmt/core.h>

#include <dlfcn.h>

namespace tenon::provider::vulkan {

std::string Api::open(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return dlerror();
  vkGetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(handle, "vkGetInstanceProcAddr"));
  if (vkGetInstanceProcAddr == nullptr) return fmt::format("{} has no symbol vkGetInstanceProcAddr", library);
#define TENON_VULKAN_GLOBAL(name) name = reinterpret_cast<PFN_##name>(vkGetInstanceProcAddr(nullptr, #name));
  TENON_VULKAN_GLOBAL(vkCreateInstance)
  TENON_VULKAN_GLOBAL(vkEnumerateInstanceVersion)
  TENON_VULKAN_GLOBAL(vkEnumerateInstanceExtensionProperties)
#undef TENON_VULKAN_GLOBAL
  if (vkCreateInstance == nullptr) return fmt::format("{} has no function vkCreateInstance", library);
  return {};
}

const char* Api::load_instance(VkInstance instance) {
#define TENON_VULKAN_LOAD(name)                                                \
  name = reinterpret_cast<PFN_##name>(vkGetInstanceProcAddr(instance, #name)); \
  if (name == nullptr) return #name;
  TENON_VULKAN_INSTANCE_FUNCTIONS(TENON_VULKAN_LOAD)
#undef TENON_VULKAN_LOAD
  vkCreateDebugUtilsMessengerEXT = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      vkGetInstanceProcAddr(instance, "vkCreateDebugUtilsMessengerEXT"));
  vkDestroyDebugUtilsMessengerEXT = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
      vkGetInstanceProcAddr(instance, "vkDestroyDebugUtilsMessengerEXT"));
  return nullptr;
}

const char* DeviceApi::load(const Api& api, VkDevice device) {
#define TENON_VULKAN_LOAD(name)                                                \
  name = reinterpret_cast<PFN_##name>(api.vkGetDeviceProcAddr(device, #name)); \
  if (name == nullptr) return #name;
  TENON_VULKAN_DEVICE_FUNCTIONS(TENON_VULKAN_LOAD)
#undef TENON_VULKAN_LOAD
#define TENON_VULKAN_LOAD(name) name = reinterpret_cast<PFN_##name>(api.vkGetDeviceProcAddr(device, #name));
  TENON_VULKAN_EXTENSION_FUNCTIONS(TENON_VULKAN_LOAD)
#undef TENON_VULKAN_LOAD
  return nullptr;
}

}  // namespace tenon::provider::vulkan
