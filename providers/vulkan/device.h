// The structs behind the handles of the vulkan provider, and the functions that its files offer each other.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "providers/vulkan/kernels/pipeline.h"
#include "providers/vulkan/modules/glsl_compiler.h"
#include "providers/vulkan/queue/command_stream.h"
#include "sdk/provider/entry.h"
#include "sdk/provider/handle.h"
#include "sdk/provider/import.h"
#include "sdk/provider/negotiate.h"

struct ep_plugin {
  const ep_host* host = nullptr;
  std::mutex mutex;  // guards the three members below
  bool discovered = false;
  tenon::provider::vulkan::Options options;
  tenon::provider::vulkan::Instance instance;
};

struct ep_device {
  const ep_host* host = nullptr;
  std::shared_ptr<tenon::provider::vulkan::Context> context;
  std::shared_ptr<tenon::provider::vulkan::Staging> staging;
  std::shared_ptr<tenon::provider::vulkan::StreamSet> streams;
  std::unique_ptr<tenon::provider::vulkan::Pipelines> pipelines;
  std::unique_ptr<tenon::provider::vulkan::GlslCompiler> compiler;
};

struct ep_memory {
  const ep_host* host;
  tenon::provider::vulkan::Block block;
};

struct ep_stream {
  const ep_host* host;
  std::shared_ptr<tenon::provider::vulkan::CommandStream> commands;
};

// A semaphore of another API or of the application.
struct ep_semaphore {
  const ep_host* host;
  VkSemaphore handle = VK_NULL_HANDLE;
  bool owned = false;  // the provider made `handle` for an imported payload
};

// A point of a stream. An event outlives the handle of its stream.
struct ep_event {
  const ep_host* host;
  std::mutex mutex;
  std::shared_ptr<tenon::provider::vulkan::CommandStream> commands;
  uint64_t value = 0;
  std::shared_ptr<tenon::provider::vulkan::Timestamps::Place> time;  // NULL: the stream is not timed
};

namespace tenon::provider::vulkan {

inline uint64_t address_of(ep_buffer buffer) {
  return buffer.memory == nullptr ? 0 : buffer.memory->block.address + buffer.offset;
}

// Makes the logical device for `physical`, or uses the application's device if `adopt` is not NULL; then creates
// pipelines and staging.
ep_status open_device(ep_plugin* plugin, const PhysicalDevice& physical, const ep_adopt_desc* adopt, ep_device* device,
                      ep_error** error);

// Handle types that the open device imports: bits 1 << EP_HANDLE_*.
uint64_t memory_handles(const Context& context);
uint64_t semaphore_handles(const Context& context);

// Each function fills its part of a device's table.
void fill_memory(ep_device_ops* ops);
void fill_stream(ep_device_ops* ops);
void fill_event(ep_device_ops* ops);
void fill_primitive(ep_device_ops* ops);
void fill_interop(ep_device_ops* ops);
void fill_command_list(ep_device_ops* ops);
void fill_modules(ep_device_ops* ops);

// The table of a device, filled by the functions above.
ep_device_ops device_ops();

}  // namespace tenon::provider::vulkan
