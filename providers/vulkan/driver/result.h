// A VkResult as text and as an ep_status.
#pragma once

#include "providers/vulkan/driver/api.h"
#include "sdk/provider/error.h"

namespace tenon::provider::vulkan {

// "VK_ERROR_DEVICE_LOST"; "an unknown VkResult" for a code that our headers lack.
const char* result_name(VkResult result);
ep_status status_of(VkResult result);
// Fills `error` with "vkAllocateMemory: VK_ERROR_OUT_OF_DEVICE_MEMORY." and returns the ep_status.
ep_status failed(const ep_host* host, ep_error** error, const char* call, VkResult result);

}  // namespace tenon::provider::vulkan
