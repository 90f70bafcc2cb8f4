// Instance: the Vulkan instance of a plug-in, and its devices.
#pragma once

#include <string>
#include <vector>

#include "providers/vulkan/driver/describe.h"

namespace tenon::provider::vulkan {

class Instance {
 public:
  Instance() = default;
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  // Opens the Vulkan loader, makes the instance and describes the devices. Finding no device is not an error.
  ep_status open(const ep_host* host, const Options& options, ep_error** error);

  const Api& api() const { return api_; }
  const std::vector<PhysicalDevice>& devices() const { return devices_; }
  bool validates() const { return messenger_ != VK_NULL_HANDLE; }

 private:
  void close();
  ep_status create(const ep_host* host, const Options& options, ep_error** error);
  ep_status listen(const ep_host* host, ep_error** error);

  Api api_;
  VkInstance instance_ = nullptr;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::vector<PhysicalDevice> devices_;
};

}  // namespace tenon::provider::vulkan
