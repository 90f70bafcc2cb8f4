#define VK_NO_PROTOTYPES
#include "tests/unit/providers/vulkan/shim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan_core.h>

#define SHIM_EXPORT __attribute__((visibility("default")))

static struct ShimControl control = {.submissions_until_lost = -1, .allocations_until_full = -1};
static int lost = 0;

static PFN_vkGetInstanceProcAddr real_instance_proc;
static PFN_vkGetDeviceProcAddr real_device_proc;
static PFN_vkCreateInstance real_create_instance;
static PFN_vkEnumeratePhysicalDevices real_enumerate;
static PFN_vkGetPhysicalDeviceProperties real_properties;
static PFN_vkGetPhysicalDeviceFeatures2 real_features2;
static PFN_vkQueueSubmit real_submit;
static PFN_vkAllocateMemory real_allocate;
static PFN_vkFreeMemory real_free;
static PFN_vkCreateComputePipelines real_pipelines;
static PFN_vkCreatePipelineCache real_create_cache;
static PFN_vkGetPipelineCacheData real_cache_data;
static PFN_vkGetPhysicalDeviceMemoryProperties real_memory;
static PFN_vkGetBufferMemoryRequirements real_requirements;
static PFN_vkGetSemaphoreCounterValue real_counter;
static PFN_vkGetPhysicalDeviceQueueFamilyProperties real_families;
static PFN_vkCreateDevice real_create_device;
static PFN_vkGetDeviceQueue real_queue;
static pthread_mutex_t one_queue = PTHREAD_MUTEX_INITIALIZER;

static int is_discrete(void) { return control.discrete || getenv("VULKAN_SHIM_DISCRETE") != NULL; }

SHIM_EXPORT struct ShimControl* shim_control(void) {
  lost = 0;
  return &control;
}

static VkResult create_instance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* callbacks,
                                VkInstance* instance) {
  control.instance_flags = info->flags;
  if (control.create_instance_result != 0) return (VkResult)control.create_instance_result;
  return real_create_instance(info, callbacks, instance);
}

static VkResult enumerate(VkInstance instance, uint32_t* count, VkPhysicalDevice* devices) {
  if (!control.no_devices) return real_enumerate(instance, count, devices);
  *count = 0;
  return VK_SUCCESS;
}

static void properties(VkPhysicalDevice device, VkPhysicalDeviceProperties* out) {
  real_properties(device, out);
  if (control.old_driver) out->apiVersion = VK_API_VERSION_1_1;
  if (is_discrete()) out->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

static void memory(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties* out) {
  real_memory(device, out);
  if (!is_discrete()) return;
  const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkDeviceSize size = out->memoryHeaps[0].size;
  out->memoryHeapCount = 3;
  out->memoryHeaps[0] = (VkMemoryHeap){size, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  out->memoryHeaps[1] = (VkMemoryHeap){size, 0};
  out->memoryHeaps[2] = (VkMemoryHeap){246U << 20, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
  out->memoryTypeCount = 5;
  out->memoryTypes[SHIM_MEMORY_IMAGES] = (VkMemoryType){0, 1};
  out->memoryTypes[SHIM_MEMORY_CARD] = (VkMemoryType){local, 0};
  out->memoryTypes[SHIM_MEMORY_HOST] = (VkMemoryType){host, 1};
  out->memoryTypes[SHIM_MEMORY_HOST_CACHED] = (VkMemoryType){host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, 1};
  out->memoryTypes[SHIM_MEMORY_WINDOW] = (VkMemoryType){local | host, 2};
}

static void families(VkPhysicalDevice device, uint32_t* count, VkQueueFamilyProperties* out) {
  real_families(device, count, out);
  if (is_discrete() && out != NULL && *count != 0) out[0].queueCount = 4;
}

static VkResult create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                              const VkAllocationCallbacks* callbacks, VkDevice* device) {
  VkDeviceCreateInfo told = *info;
  VkDeviceQueueCreateInfo queue = *info->pQueueCreateInfos;
  if (is_discrete()) queue.queueCount = 1;
  told.pQueueCreateInfos = &queue;
  return real_create_device(physical, &told, callbacks, device);
}

static void device_queue(VkDevice device, uint32_t family, uint32_t index, VkQueue* queue) {
  real_queue(device, family, is_discrete() ? 0 : index, queue);
}

static void requirements(VkDevice device, VkBuffer buffer, VkMemoryRequirements* out) {
  real_requirements(device, buffer, out);
  if (is_discrete()) out->memoryTypeBits = 0x1eU;
}

static void features2(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* out) {
  real_features2(device, out);
  for (VkBaseOutStructure* next = (VkBaseOutStructure*)out->pNext; next != NULL; next = next->pNext) {
    if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES && control.no_addresses) {
      ((VkPhysicalDeviceVulkan12Features*)next)->bufferDeviceAddress = VK_FALSE;
    }
  }
}

static VkResult submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  if (control.submissions_until_lost == 0) lost = 1;
  if (lost) return VK_ERROR_DEVICE_LOST;
  if (control.submissions_until_lost > 0) --control.submissions_until_lost;
  pthread_mutex_lock(&one_queue);
  ++control.submissions;
  const VkResult result = real_submit(queue, count, infos, fence);
  pthread_mutex_unlock(&one_queue);
  return result;
}

static VkResult allocate(VkDevice device, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks* callbacks,
                         VkDeviceMemory* memory) {
  if (control.allocations_until_full == 0) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  if (is_discrete() && control.window_full && info->memoryTypeIndex == SHIM_MEMORY_WINDOW) {
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  if (control.allocations_until_full > 0) --control.allocations_until_full;
  VkMemoryAllocateInfo told = *info;
  if (is_discrete()) told.memoryTypeIndex = 0;
  const VkResult result = real_allocate(device, &told, callbacks, memory);
  if (result == VK_SUCCESS) ++control.live_memory;
  return result;
}

static void free_memory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* callbacks) {
  if (memory != VK_NULL_HANDLE) --control.live_memory;
  real_free(device, memory, callbacks);
}

static VkResult pipelines(VkDevice device, VkPipelineCache cache, uint32_t count,
                          const VkComputePipelineCreateInfo* infos, const VkAllocationCallbacks* callbacks,
                          VkPipeline* out) {
  __atomic_fetch_add(&control.pipelines, 1, __ATOMIC_RELAXED);
  if (control.pipelines_result != 0) return (VkResult)control.pipelines_result;
  return real_pipelines(device, cache, count, infos, callbacks, out);
}

// The data of such a cache: a header and the value.
static VkResult cache_data(VkDevice device, VkPipelineCache cache, size_t* size, void* data) {
  if (control.cache_value == 0) return real_cache_data(device, cache, size, data);
  const size_t whole = sizeof(VkPipelineCacheHeaderVersionOne) + sizeof control.cache_value;
  if (data != NULL) {
    memset(data, 7, whole);
    memcpy((char*)data + whole - sizeof control.cache_value, &control.cache_value, sizeof control.cache_value);
  }
  *size = whole;
  return VK_SUCCESS;
}

static VkResult create_cache(VkDevice device, const VkPipelineCacheCreateInfo* info,
                             const VkAllocationCallbacks* callbacks, VkPipelineCache* cache) {
  const size_t whole = sizeof(VkPipelineCacheHeaderVersionOne) + sizeof control.cache_found;
  VkPipelineCacheCreateInfo told = *info;
  control.cache_found = 0;
  if (info->initialDataSize == whole) {
    memcpy(&control.cache_found, (const char*)info->pInitialData + whole - sizeof control.cache_found,
           sizeof control.cache_found);
    told.initialDataSize = 0;
    told.pInitialData = NULL;
  }
  return real_create_cache(device, &told, callbacks, cache);
}

static VkResult counter(VkDevice device, VkSemaphore semaphore, uint64_t* value) {
  const VkResult result = real_counter(device, semaphore, value);
  if (control.counters_run_away) *value = UINT64_MAX;
  return result;
}

#define SHIM(function, real, ours)     \
  if (strcmp(name, #function) == 0) {  \
    real = (PFN_##function)found;      \
    return (PFN_vkVoidFunction)(ours); \
  }

static PFN_vkVoidFunction device_proc(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = real_device_proc(device, name);
  SHIM(vkQueueSubmit, real_submit, submit)
  SHIM(vkAllocateMemory, real_allocate, allocate)
  SHIM(vkFreeMemory, real_free, free_memory)
  SHIM(vkCreateComputePipelines, real_pipelines, pipelines)
  SHIM(vkCreatePipelineCache, real_create_cache, create_cache)
  SHIM(vkGetPipelineCacheData, real_cache_data, cache_data)
  SHIM(vkGetDeviceQueue, real_queue, device_queue)
  SHIM(vkGetBufferMemoryRequirements, real_requirements, requirements)
  SHIM(vkGetSemaphoreCounterValue, real_counter, counter)
  return found;
}

SHIM_EXPORT PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  if (real_instance_proc == NULL) {
    void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return NULL;
    *(void**)&real_instance_proc = dlsym(library, "vkGetInstanceProcAddr");
  }
  const PFN_vkVoidFunction found = real_instance_proc(instance, name);
  SHIM(vkCreateInstance, real_create_instance, create_instance)
  SHIM(vkEnumeratePhysicalDevices, real_enumerate, enumerate)
  SHIM(vkGetPhysicalDeviceProperties, real_properties, properties)
  SHIM(vkGetPhysicalDeviceFeatures2, real_features2, features2)
  SHIM(vkGetPhysicalDeviceQueueFamilyProperties, real_families, families)
  SHIM(vkCreateDevice, real_create_device, create_device)
  SHIM(vkGetPhysicalDeviceMemoryProperties, real_memory, memory)
  SHIM(vkGetDeviceProcAddr, real_device_proc, device_proc)
  return found;
}
