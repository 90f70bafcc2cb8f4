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
  features12.shaderFloat16 = physical.features.float16;
  features12.shaderInt8 = physical.features.int8;
  VkPhysicalDeviceVulkan11Features features11{};
  features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  features11.pNext = &features12;
  features11.storageBuffer16BitAccess = physical.features.narrow;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &features11;
  features.features.shaderInt64 = physical.features.int64;
  features.features.shaderInt16 = physical.features.int16;
  features.features.shaderFloat64 = physical.features.float64;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  const std::vector<const char*> extensions = extensions_to_enable(physical.facts);
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  return api.vkCreateDevice(physical.handle, &info, nullptr, out_device);
}

// Plans memory over the types that buffers can use. Only the open device can report them.
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

// Uses the application's VkDevice and queue in `context`.
ep_status adopt_device(const Api& api, const ep_adopt_desc& adopt, Context* context, ep_error** error) {
  const PhysicalDevice& physical = *context->physical;
  const ImportTerms terms{physical.name.c_str(), "context", handle_bit(EP_HANDLE_VK_DEVICE), physical.facts.uuid};
  const ep_status known = check_handle_type(context->host, adopt.handle_type, terms, error);
  if (known != EP_STATUS_OK) return known;
  if (adopt.handle_count != 4 || adopt.handles[0] == 0 || adopt.handles[1] == 0 || adopt.handles[2] == 0) {
    return fail_text(context->host, error, EP_STATUS_INVALID_ARGUMENT,
                     "A VkDevice is adopted with its VkPhysicalDevice, a VkQueue and the queue's family; one is "
                     "missing.");
  }
  const PhysicalFacts theirs = read_facts(api, object_of<VkPhysicalDevice_T>(adopt.handles[1]));
  if (!std::equal(theirs.uuid, theirs.uuid + 16, physical.facts.uuid)) {
    return fail(context->host, error, EP_STATUS_INVALID_ARGUMENT, "The VkDevice is of %s (UUID %s), not of %s (%s).",
                theirs.properties.deviceName, uuid_text(theirs.uuid).c_str(), physical.name.c_str(),
                uuid_text(physical.facts.uuid).c_str());
  }
  context->adopted = true;
  context->device = object_of<VkDevice_T>(adopt.handles[0]);
  context->queues[0].handle = object_of<VkQueue_T>(adopt.handles[2]);
  context->queue_family = static_cast<uint32_t>(adopt.handles[3]);
  context->queue_count = 1;
  context->lock = adopt.lock;
  context->unlock = adopt.unlock;
  context->lock_context = adopt.lock_context;
  return EP_STATUS_OK;
}

// The host has destroyed all streams. The members free what the streams kept alive.
void device_close(ep_device* device) noexcept { destroy(device); }

void device_trim(ep_device* device) noexcept {
  device->staging->trim();
  device->pipelines->trim();
}

}  // namespace

ep_status open_device(ep_plugin* plugin, const PhysicalDevice& physical, const ep_adopt_desc* adopt, ep_device* device,
                      ep_error** error) {
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
  if (adopt != nullptr) {
    if (const ep_status status = adopt_device(api, *adopt, context.get(), error); status != EP_STATUS_OK) return status;
  } else {
    context->queue_family = *physical.facts.queue_family;
    context->queue_count = std::min<uint32_t>(physical.facts.queue_count, context->queues.size());
    const VkResult result = create_logical_device(api, physical, context->queue_count, &context->device);
    if (result != VK_SUCCESS) return failed(host, error, "vkCreateDevice", result);
  }
  if (const char* missing = context->api.load(api, context->device); missing != nullptr) {
    context->api.vkDestroyDevice =
        reinterpret_cast<PFN_vkDestroyDevice>(api.vkGetDeviceProcAddr(context->device, "vkDestroyDevice"));
    return fail(host, error, EP_STATUS_NOT_FOUND, "The driver of %s has no function %s.", physical.name.c_str(),
                missing);
  }
  for (uint32_t i = 0; i < context->queue_count && adopt == nullptr; ++i) {
    context->api.vkGetDeviceQueue(context->device, context->queue_family, i, &context->queues[i].handle);
  }
  if (const ep_status status = plan_buffers(*context, error); status != EP_STATUS_OK) return status;
  device->pipelines = std::make_unique<Pipelines>(context);
  if (const ep_status status = device->pipelines->create(error); status != EP_STATUS_OK) return status;
  device->staging = std::make_shared<Staging>(*context);
  device->streams = std::make_shared<StreamSet>();
  device->compiler = std::make_unique<GlslCompiler>(host);
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
  fill_interop(&ops);
  fill_command_list(&ops);
  fill_modules(&ops);
  return ops;
}

}  // namespace tenon::provider::vulkan
