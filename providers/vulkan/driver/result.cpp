#include "providers/vulkan/driver/result.h"

namespace tenon::provider::vulkan {

const char* result_name(VkResult result) {
  switch (result) {
#define TENON_VULKAN_RESULT(name) \
  case name:                      \
    return #name;
    TENON_VULKAN_RESULT(VK_SUCCESS)
    TENON_VULKAN_RESULT(VK_NOT_READY)
    TENON_VULKAN_RESULT(VK_TIMEOUT)
    TENON_VULKAN_RESULT(VK_INCOMPLETE)
    TENON_VULKAN_RESULT(VK_ERROR_OUT_OF_HOST_MEMORY)
    TENON_VULKAN_RESULT(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    TENON_VULKAN_RESULT(VK_ERROR_INITIALIZATION_FAILED)
    TENON_VULKAN_RESULT(VK_ERROR_DEVICE_LOST)
    TENON_VULKAN_RESULT(VK_ERROR_MEMORY_MAP_FAILED)
    TENON_VULKAN_RESULT(VK_ERROR_LAYER_NOT_PRESENT)
    TENON_VULKAN_RESULT(VK_ERROR_EXTENSION_NOT_PRESENT)
    TENON_VULKAN_RESULT(VK_ERROR_FEATURE_NOT_PRESENT)
    TENON_VULKAN_RESULT(VK_ERROR_INCOMPATIBLE_DRIVER)
    TENON_VULKAN_RESULT(VK_ERROR_TOO_MANY_OBJECTS)
    TENON_VULKAN_RESULT(VK_ERROR_FRAGMENTED_POOL)
    TENON_VULKAN_RESULT(VK_ERROR_UNKNOWN)
    TENON_VULKAN_RESULT(VK_ERROR_OUT_OF_POOL_MEMORY)
    TENON_VULKAN_RESULT(VK_ERROR_INVALID_EXTERNAL_HANDLE)
    TENON_VULKAN_RESULT(VK_ERROR_FRAGMENTATION)
    TENON_VULKAN_RESULT(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS)
#undef TENON_VULKAN_RESULT
    default: return "an unknown VkResult";
  }
}

ep_status status_of(VkResult result) {
  switch (result) {
    case VK_SUCCESS: return EP_STATUS_OK;
    case VK_TIMEOUT: return EP_STATUS_TIMEOUT;
    case VK_ERROR_OUT_OF_HOST_MEMORY: return EP_STATUS_OUT_OF_HOST_MEMORY;
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTATION:
    case VK_ERROR_FRAGMENTED_POOL: return EP_STATUS_OUT_OF_DEVICE_MEMORY;
    case VK_ERROR_DEVICE_LOST: return EP_STATUS_DEVICE_LOST;
    default: return EP_STATUS_INTERNAL;
  }
}

ep_status failed(const ep_host* host, ep_error** error, const char* call, VkResult result) {
  return fail(host, error, status_of(result), "%s answered %s (%d).", call, result_name(result),
              static_cast<int>(result));
}

}  // namespace tenon::provider::vulkan
