// The Vulkan provider through the raw ABI, by a host of the test's own that keeps what it is told, with the shim as its
// Vulkan loader.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "ep_api/ep_api.h"
#include "tests/unit/providers/vulkan/shim.h"

namespace tenon::testing {

using Settings = std::map<std::string, std::string>;

// The control of the shim library, back at its defaults.
ShimControl& fresh_shim();

class Host {
 public:
  explicit Host(Settings settings);
  const ep_host* table() const { return &table_; }
  int64_t held() const { return held_; }
  int64_t reported_device_memory() const { return reported_; }
  std::string sentence() const { return sentence_; }  // of the last error
  std::string remedy() const { return remedy_; }
  std::vector<std::string> errors_logged();

 private:
  static Host& self(const ep_host* host) { return *static_cast<Host*>(host->context); }
  static ep_error* error_make(const ep_host* host, ep_status status, ep_string sentence, ep_string remedy);
  static void log(const ep_host* host, int32_t level, ep_string topic, ep_string message);
  static void* allocate(const ep_host* host, uint64_t size, uint64_t alignment);
  static void release(const ep_host* host, void* pointer, uint64_t size);
  static ep_status config_get(const ep_host* host, ep_string key, ep_string* out_value);

  ep_host table_{};
  Settings settings_;
  std::mutex mutex_;
  int64_t held_ = 0;
  int64_t reported_ = 0;
  std::string sentence_, remedy_;
  std::vector<std::string> errors_;
};

// The plug-in, asked but not opened. Settings: the library defaults to the shim.
class Plugin {
 public:
  explicit Plugin(Settings settings = {});
  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  Host host;
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
  // The words at `src`, after waiting.
  std::vector<int32_t> download(ep_buffer src, size_t words);
  // dst = x op y over `words` i32; y a scalar where its memory is NULL.
  ep_primitive* binary(int32_t op, int64_t words, bool scalar);
  ep_status run(ep_primitive* primitive, ep_buffer dst, ep_buffer x, ep_buffer y, int32_t scalar, uint64_t tag = 1,
                ep_stream* on = nullptr);

  Plugin plugin;
  ep_device_ops ops{};
  ep_device* handle = nullptr;
  ep_stream* stream = nullptr;

 private:
  std::vector<ep_memory*> blocks_;
  std::vector<ep_primitive*> primitives_;
};

}  // namespace tenon::testing
