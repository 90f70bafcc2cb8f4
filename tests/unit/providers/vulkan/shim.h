// The shim: a Vulkan loader library between the provider and the real one, which counts what it is asked and answers
// wrongly on request. The provider is pointed at it by its setting `library`; a test reaches it by dlopen and
// `shim_control`.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ShimControl {
  // How it misbehaves. Counts are of calls that still succeed; -1: all do.
  int64_t submissions_until_lost;
  int64_t allocations_until_full;
  int32_t create_instance_result;  // VkResult answered by vkCreateInstance, 0: the real one
  int32_t no_devices;              // vkEnumeratePhysicalDevices finds none
  int32_t old_driver;              // devices speak Vulkan 1.1
  int32_t no_addresses;            // devices have no bufferDeviceAddress
  // What it saw.
  uint64_t submissions;
  uint64_t pipelines;
  uint64_t live_memory;  // vkAllocateMemory less vkFreeMemory
};

struct ShimControl* shim_control(void);

#ifdef __cplusplus
}
#endif
