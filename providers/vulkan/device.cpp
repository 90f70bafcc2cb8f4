#include "providers/vulkan/device.h"

namespace tenon::provider::vulkan {
namespace {

VkResult create_logical_device(const Api& api, const PhysicalDevice& physical, uint32_t queues, VkDevice* out_device) {
  const float priorities[4] = {1, 1, 1, 1};
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = *physical.facts.queue_family;
  queue.queueCount = queues;
  queue.pQueuePriorities = priorities;
  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features12.bufferDeviceAddress = VK_TRUE;
  features12.timelineSemaphore = VK_TRUE;
  features12.scalarBlockLayout = VK_TRUE;
  features12.storageBuffer8BitAccess = physical.features.narrow;
  VkPhysicalDeviceVulkan11Features features11{};
  features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  features11.pNext = &features12;
  features11.storageBuffer16BitAccess = physical.features.narrow;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &features11;
  features.features.shaderInt64 = physical.features.int64;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  const char* const layered = "VK_KHR_portability_subset";
  info.enabledExtensionCount = physical.facts.layered ? 1 : 0;
  info.ppEnabledExtensionNames = &layered;
  return api.vkCreateDevice(physical.handle, &info, nullptr, out_device);
}

// Plans memory over the types that really serve buffers. Only the open device knows them.
ep_status plan_buffers(Context& context, ep_error** error) {
  uint32_t types = 0;
  const VkResult result = buffer_memory_types(context, &types);
  if (result != VK_SUCCESS) return context.failed(error, "vkCreateBuffer", result);
  const PhysicalFacts& facts = context.physical->facts;
  const std::optional<MemoryPlan> plan = plan_memory(facts.memory, types, facts.properties.deviceType);
  if (!plan) {
    return fail(context.host, error, EP_STATUS_NOT_FOUND, "No memory of %s serves buffers (memory types 0x%x).",
                context.physical->name.c_str(), types);
  }
  context.memory = *plan;
  return EP_STATUS_OK;
}

// The host has destroyed all streams. The members free everything that streams kept alive.
void device_close(ep_device* device) noexcept { destroy(device); }

void device_trim(ep_device* device) noexcept {
  device->staging->trim();
  device->pipelines->trim();
}

}  // namespace

ep_status open_device(ep_plugin* plugin, const PhysicalDevice& physical, ep_device* device, ep_error** error) {
  const Api& api = plugin->instance.api();
  const ep_host* host = plugin->host;
  auto context = std::make_shared<Context>();
  context->host = host;
  context->owner = device;
  context->physical = &physical;
  context->barriers = plugin->options.barriers;
  context->batch = plugin->options.batch;
  context->most_work = static_cast<uint64_t>(plugin->options.work) << 20;
  const bool software = class_of(physical.facts.properties.deviceType) == EP_DEVICE_CLASS_SOFTWARE;
  context->packs = plugin->options.packs.value_or(!software);
  context->queue_count = std::min<uint32_t>(physical.facts.queue_count, context->queues.size());
  const VkResult result = create_logical_device(api, physical, context->queue_count, &context->device);
  if (result != VK_SUCCESS) return failed(host, error, "vkCreateDevice", result);
  if (const char* missing = context->api.load(api, context->device); missing != nullptr) {
    context->api.vkDestroyDevice =
        reinterpret_cast<PFN_vkDestroyDevice>(api.vkGetDeviceProcAddr(context->device, "vkDestroyDevice"));
    return fail(host, error, EP_STATUS_NOT_FOUND, "The driver of %s has no function %s.", physical.name.c_str(),
                missing);
  }
  for (uint32_t i = 0; i < context->queue_count; ++i) {
    context->api.vkGetDeviceQueue(context->device, *physical.facts.queue_family, i, &context->queues[i].handle);
  }
  if (const ep_status status = plan_buffers(*context, error); status != EP_STATUS_OK) return status;
  device->pipelines = std::make_unique<Pipelines>(context);
  if (const ep_status status = device->pipelines->create(error); status != EP_STATUS_OK) return status;
  device->staging = std::make_shared<Staging>(*context);
  device->streams = std::make_shared<StreamSet>();
  device->context = std::move(context);
  return EP_STATUS_OK;
}

ep_device_ops device_ops() {
  ep_device_ops ops{};
  ops.device_close = device_close;
  ops.device_trim = device_trim;
  fill_memory(&ops);
  fill_stream(&ops);
  fill_event(&ops);
  fill_primitive(&ops);
  return ops;
}

}  // namespace tenon::provider::vulkan
