// VkResult as text and as a status of the ABI.
#pragma once

#include "providers/vulkan/driver/api.h"
#include "sdk/provider/error.h"

namespace tenon::provider::vulkan {

// "VK_ERROR_DEVICE_LOST"; "an unknown VkResult" for a code this was not compiled with.
const char* result_name(VkResult result);
ep_status status_of(VkResult result);
// Fills `error` with "vkAllocateMemory: VK_ERROR_OUT_OF_DEVICE_MEMORY." and returns the status.
ep_status failed(const ep_host* host, ep_error** error, const char* call, VkResult result);

}  // namespace tenon::provider::vulkan
