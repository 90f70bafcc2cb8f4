#include "providers/vulkan/driver/instance.h"

#include <algorithm>
#include <cstring>

#include "providers/vulkan/driver/libraries.h"
#include "providers/vulkan/driver/result.h"

namespace tenon::provider::vulkan {
namespace {

constexpr const char* install_remedy =
    "Install the Vulkan loader and a driver (Debian: libvulkan1, mesa-vulkan-drivers); if VK_DRIVER_FILES or "
    "VK_ICD_FILENAMES is set, see that it names a driver's manifest.";
constexpr const char* validation_layer = "VK_LAYER_KHRONOS_validation";

// True if the Vulkan loader hides drivers that are layered on another API (MoltenVK) unless a program asks for them.
bool hides_layered_drivers(const Api& api) {
  uint32_t count = 0;
  if (api.vkEnumerateInstanceExtensionProperties == nullptr ||
      api.vkEnumerateInstanceExtensionProperties(nullptr, &count, nullptr) != VK_SUCCESS) {
    return false;
  }
  std::vector<VkExtensionProperties> extensions(count);
  if (api.vkEnumerateInstanceExtensionProperties(nullptr, &count, extensions.data()) < VK_SUCCESS) return false;
  return std::any_of(extensions.begin(), extensions.end(), [](const VkExtensionProperties& one) {
    return std::strcmp(one.extensionName, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME) == 0;
  });
}

VkBool32 VKAPI_PTR on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT,
                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  const auto* host = static_cast<const ep_host*>(user);
  const bool wrong = severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  log_line(host, wrong ? EP_LOG_ERROR : EP_LOG_WARNING, "load", "vulkan validation: %s", data->pMessage);
  return VK_FALSE;
}

}  // namespace

Instance::~Instance() { close(); }

void Instance::close() {
  devices_.clear();
  if (messenger_ != VK_NULL_HANDLE) api_.vkDestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
  messenger_ = VK_NULL_HANDLE;
  if (instance_ != nullptr && api_.vkDestroyInstance != nullptr) api_.vkDestroyInstance(instance_, nullptr);
  instance_ = nullptr;
}

ep_status Instance::open(const ep_host* host, const Options& options, ep_error** error) {
  close();  // frees the rest of a failed attempt
  if (const std::string reason = api_.open(options.library); !reason.empty()) {
    return fail_with_remedy(host, error, EP_STATUS_NOT_FOUND, install_remedy, "The Vulkan loader cannot be opened: %s.",
                            reason.c_str());
  }
  if (const ep_status status = create(host, options, error); status != EP_STATUS_OK) return status;
  uint32_t count = 0;
  VkResult result = api_.vkEnumeratePhysicalDevices(instance_, &count, nullptr);
  std::vector<VkPhysicalDevice> handles(count);
  if (result == VK_SUCCESS && count != 0) {
    result = api_.vkEnumeratePhysicalDevices(instance_, &count, handles.data());
  }
  // These results mean that every driver failed. "No device" is a valid answer.
  if (result == VK_ERROR_INITIALIZATION_FAILED || result == VK_ERROR_INCOMPATIBLE_DRIVER) return EP_STATUS_OK;
  if (result < VK_SUCCESS) return failed(host, error, "vkEnumeratePhysicalDevices", result);
  for (uint32_t i = 0; i < count; ++i) devices_.push_back(describe(api_, handles[i], options));
  return EP_STATUS_OK;
}

ep_status Instance::create(const ep_host* host, const Options& options, ep_error** error) {
  const std::set<std::string> libraries = loaded_libraries();  // queries before vkCreateInstance load drivers too
  uint32_t version = VK_API_VERSION_1_0;
  if (api_.vkEnumerateInstanceVersion != nullptr) api_.vkEnumerateInstanceVersion(&version);
  if (version < VK_API_VERSION_1_2) {
    return fail_with_remedy(host, error, EP_STATUS_NOT_FOUND, "Install a newer Vulkan loader.",
                            "The Vulkan loader %s speaks Vulkan %u.%u; 1.2 is needed.", options.library.c_str(),
                            VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
  }
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pEngineName = "Tenon";
  application.apiVersion = VK_API_VERSION_1_2;
  const VkValidationFeatureEnableEXT enabled = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT validation{};
  validation.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  validation.enabledValidationFeatureCount = 1;
  validation.pEnabledValidationFeatures = &enabled;
  std::vector<const char*> extensions;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  if (hides_layered_drivers(api_)) {
    info.flags = VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
    extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
  }
  if (options.validation) {
    info.pNext = &validation;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &validation_layer;
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  }
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  const VkResult result = api_.vkCreateInstance(&info, nullptr, &instance_);
  keep_libraries_since(libraries);
  if (result == VK_ERROR_LAYER_NOT_PRESENT) {
    return fail_with_remedy(host, error, EP_STATUS_NOT_FOUND, "Install it (Debian: vulkan-validationlayers).",
                            "The setting validation of provider vulkan is 'on', and there is no layer %s.",
                            validation_layer);
  }
  // A Vulkan loader that cannot read a driver's manifest may return VK_ERROR_OUT_OF_HOST_MEMORY here.
  if (result != VK_SUCCESS) {
    return fail_with_remedy(host, error, EP_STATUS_NOT_FOUND, install_remedy,
                            "The Vulkan loader %s found no driver that works (vkCreateInstance answered %s).",
                            options.library.c_str(), result_name(result));
  }
  if (const char* missing = api_.load_instance(instance_); missing != nullptr) {
    return fail(host, error, EP_STATUS_NOT_FOUND, "The Vulkan loader %s has no function %s.", options.library.c_str(),
                missing);
  }
  return options.validation ? listen(host, error) : EP_STATUS_OK;
}

ep_status Instance::listen(const ep_host* host, ep_error** error) {
  VkDebugUtilsMessengerCreateInfoEXT info{};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  info.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = on_message;
  info.pUserData = const_cast<ep_host*>(host);
  const VkResult result = api_.vkCreateDebugUtilsMessengerEXT(instance_, &info, nullptr, &messenger_);
  return result == VK_SUCCESS ? EP_STATUS_OK : failed(host, error, "vkCreateDebugUtilsMessengerEXT", result);
}

}  // namespace tenon::provider::vulkan
