// The vulkan provider through the raw ABI, with the shim as its Vulkan loader.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ep_api/ep_api.h"
#include "tests/unit/providers/provider_fixture.h"
#include "tests/unit/providers/vulkan/shim.h"

namespace tenon::testing {

using provider::kComputeStream;
using provider::Settings;

// The control of the shim library, reset to its defaults.
ShimControl& fresh_shim();

// The plug-in after the query, without an open device. The setting `library` defaults to the shim.
class Plugin {
 public:
  explicit Plugin(Settings settings = {});
  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  provider::TestHost host;
  ep_plugin_ops ops{};
};

// Device 0, open, with a stream.
class Device {
 public:
  explicit Device(Settings settings = {});
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  ep_memory* allocate(uint64_t bytes);
  ep_status upload(ep_buffer dst, const std::vector<int32_t>& words, ep_stream* on = nullptr);
  // Waits, and returns the words at `src`.
  std::vector<int32_t> download(ep_buffer src, size_t words);
  // dst = x op y over `words` i32. y is a scalar if its memory is NULL.
  ep_primitive* binary(int32_t op, int64_t words, bool scalar);
  ep_status run(ep_primitive* primitive, ep_buffer dst, ep_buffer x, ep_buffer y, int32_t scalar, uint64_t tag = 1,
                ep_stream* on = nullptr);
  // Creates and launches any primitive. Throws std::runtime_error if the provider refuses it.
  ep_primitive* create(const ep_primitive_desc& desc);
  ep_status launch(ep_primitive* primitive, const std::vector<ep_buffer>& operands,
                   const std::vector<ep_scalar>& scalars = {}, uint64_t tag = 1, ep_stream* on = nullptr);

  Plugin plugin;
  ep_device_ops ops{};
  ep_device* handle = nullptr;
  ep_stream* stream = nullptr;

 private:
  std::vector<ep_memory*> blocks_;
  std::vector<ep_primitive*> primitives_;
};

// An event of a device, and a second stream.
class Event {
 public:
  explicit Event(Device& device) : device_(device) { device.ops.event_create(device.handle, &handle, nullptr); }
  ~Event() { device_.ops.event_destroy(device_.handle, handle); }
  ep_event* handle = nullptr;

 private:
  Device& device_;
};

class SecondStream {
 public:
  explicit SecondStream(Device& device) : device_(device) {
    device.ops.stream_create(device.handle, &kComputeStream, &handle, nullptr);
  }
  ~SecondStream() { device_.ops.stream_destroy(device_.handle, handle); }
  ep_stream* handle = nullptr;

 private:
  Device& device_;
};

}  // namespace tenon::testing
