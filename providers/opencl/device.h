// The structs behind the handles of the opencl provider, and the functions that its files offer each other.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "providers/opencl/driver/options.h"
#include "providers/opencl/modules/opencl_compiler.h"
#include "providers/opencl/queue/command_queue.h"
#include "sdk/provider/entry.h"
#include "sdk/provider/handle.h"
#include "sdk/provider/negotiate.h"

struct ep_plugin {
  const ep_host* host = nullptr;
  std::mutex mutex;  // guards all members below until `discovered`
  bool discovered = false;
  tenon::provider::opencl::Options options;
  tenon::provider::opencl::Api api;
  std::vector<tenon::provider::opencl::PhysicalDevice> devices;
};

struct ep_device {
  const ep_host* host = nullptr;
  std::shared_ptr<tenon::provider::opencl::Context> context;
  std::unique_ptr<tenon::provider::opencl::Programs> programs;
  std::unique_ptr<tenon::provider::opencl::OpenclCompiler> compiler;
};

struct ep_memory {
  const ep_host* host;
  cl_mem buffer = nullptr;
};

struct ep_stream {
  const ep_host* host;
  std::shared_ptr<tenon::provider::opencl::CommandQueue> queue;
};

// An event of the application.
struct ep_semaphore {
  const ep_host* host;
  cl_event event = nullptr;
};

// A point of a stream. An event outlives the handle of its stream.
struct ep_event {
  const ep_host* host;
  std::mutex mutex;
  std::shared_ptr<tenon::provider::opencl::Point> point;
};

namespace tenon::provider::opencl {

inline cl_mem buffer_of(ep_buffer buffer) { return buffer.memory == nullptr ? nullptr : buffer.memory->buffer; }

// Each function fills its part of a device's table.
void fill_memory(ep_device_ops* ops);
void fill_stream(ep_device_ops* ops);
void fill_event(ep_device_ops* ops);
void fill_primitive(ep_device_ops* ops);
void fill_interop(ep_device_ops* ops);
void fill_modules(ep_device_ops* ops);

// Makes a context for `physical`, or shares the application's context if `adopt` is not NULL.
ep_status open_device(ep_plugin* plugin, const PhysicalDevice& physical, const ep_adopt_desc* adopt, ep_device* device,
                      ep_error** error);
// The table of a device, filled by the functions above.
ep_device_ops device_ops();

}  // namespace tenon::provider::opencl
