// The shim: a Vulkan loader library between the provider and the real Vulkan loader. It counts calls and returns wrong
// results on request. The provider's setting `library` names it; a test reaches it by dlopen and `shim_control`.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ShimControl {
  // Faults to simulate. A count is the number of calls that still succeed; -1: all of them.
  int64_t submissions_until_lost;
  int64_t allocations_until_full;
  int32_t create_instance_result;  // result of vkCreateInstance; 0: the real one
  int32_t pipelines_result;        // result of vkCreateComputePipelines; 0: the real one
  int32_t no_devices;              // vkEnumeratePhysicalDevices finds none
  int32_t old_driver;              // devices report Vulkan 1.1
  int32_t no_addresses;            // devices lack bufferDeviceAddress
  int32_t discrete;                // devices have the memory of a card (card memory, host memory and a window, below),
                                   // and four queues, which are one queue of the real device
  int32_t window_full;             // allocations in the window fail
  uint32_t cache_value;            // not 0: a pipeline cache holds this value, and nothing else
  int32_t counters_run_away;       // semaphores read as UINT64_MAX, as with some drivers after a device loss
  // Observations.
  uint64_t submissions;
  uint64_t pipelines;
  uint32_t cache_found;     // the value with which the last pipeline cache was created; 0: none
  uint64_t live_memory;     // vkAllocateMemory less vkFreeMemory
  uint32_t instance_flags;  // the flags of the last vkCreateInstance
};

// The memory types of a `discrete` device, by index, as on NVIDIA's cards. The environment variable
// VULKAN_SHIM_DISCRETE has the same effect as `discrete` in a process that cannot reach the control.
enum { SHIM_MEMORY_IMAGES, SHIM_MEMORY_CARD, SHIM_MEMORY_HOST, SHIM_MEMORY_HOST_CACHED, SHIM_MEMORY_WINDOW };

struct ShimControl* shim_control(void);

#ifdef __cplusplus
}
#endif
