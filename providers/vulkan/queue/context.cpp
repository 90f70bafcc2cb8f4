#include "providers/vulkan/queue/context.h"

namespace tenon::provider::vulkan {

Context::~Context() {
  if (device != nullptr && !adopted) api.vkDestroyDevice(device, nullptr);
}

ep_status Context::failed(ep_error** error, const char* call, VkResult result) {
  if (result == VK_ERROR_DEVICE_LOST) lost.store(true);
  return vulkan::failed(host, error, call, result);
}

ep_status Context::check(ep_error** error) const {
  if (!lost.load(std::memory_order_relaxed)) [[likely]]
    return EP_STATUS_OK;
  return fail(host, error, EP_STATUS_DEVICE_LOST, "The device %s is lost (VK_ERROR_DEVICE_LOST).",
              physical->name.c_str());
}

}  // namespace tenon::provider::vulkan
