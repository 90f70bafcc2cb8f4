// Context: the functions, queues and state that all objects of one open device share.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "providers/vulkan/driver/instance.h"
#include "providers/vulkan/driver/result.h"

namespace tenon::provider::vulkan {

// One queue of the device. Streams share it; its mutex lets one submission run at a time.
struct Queue {
  VkQueue handle = nullptr;
  std::mutex mutex;
};

struct Context {
  const ep_host* host = nullptr;
  ep_device* owner = nullptr;  // the device to name in memory reports
  const PhysicalDevice* physical = nullptr;
  MemoryPlan memory;  // the memory types of our buffers
  DeviceApi api;
  VkDevice device = nullptr;
  std::array<Queue, 4> queues;
  uint32_t queue_count = 0;
  uint32_t queue_family = 0;
  bool adopted = false;           // the VkDevice and its only queue belong to the application
  void (*lock)(void*) = nullptr;  // called around each use of an adopted queue
  void (*unlock)(void*) = nullptr;
  void* lock_context = nullptr;
  std::atomic<uint32_t> next_queue{0};
  std::atomic<bool> lost{false};
  bool barriers = true;
  uint32_t batch = 256;
  // Limit of work (Dispatch::work) per submission and per dispatch: about one or two seconds on a slow device. Kernel
  // drivers reset a device whose submission runs longer (i915 after some seconds, amdgpu after ten).
  uint64_t most_work = UINT64_C(1) << 36;
  bool packs = true;  // kernels may access 16 bytes at once
  std::atomic<uint64_t> submissions{0};

  Context() = default;
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const VkPhysicalDeviceLimits& limits() const { return physical->facts.properties.limits; }
  // Limit of invocations in a workgroup along the first axis.
  uint32_t most_threads() const {
    return std::min(limits().maxComputeWorkGroupInvocations, limits().maxComputeWorkGroupSize[0]);
  }
  // The error of the failed call `call`. Marks the device as lost if it is.
  ep_status failed(ep_error** error, const char* call, VkResult result);
  // Errors: EP_STATUS_DEVICE_LOST if the device is lost.
  ep_status check(ep_error** error) const;
};

}  // namespace tenon::provider::vulkan
