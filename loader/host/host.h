// Host: the services of one plug-in, that is, its ep_host table and the state behind the table.
//
// One object per plug-in, so that memory, configuration and log lines have a name. The object may not move
// while the plug-in may call it. Threads: the services are thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "ep_api/ep_api.h"
#include "loader/loader.h"

namespace tenon::loader {

class HostServices {
 public:
  HostServices(std::string provider, std::string path, std::map<std::string, std::string> values);
  HostServices(const HostServices&) = delete;
  HostServices& operator=(const HostServices&) = delete;

  // The table that the plug-in gets: the table of the services, or the table that a layer put in front of it.
  const ep_host* table() const { return front_ != nullptr ? front_ : &table_; }
  // Call this before the plug-in has seen a table.
  void put_in_front(const ep_host* table) { front_ = table; }
  const std::string& provider() const { return provider_; }
  HostMemory memory() const;
  // Call this when the plug-in has shut down. Logs the resources that it still holds.
  void report_leaks() const;
  int64_t device_memory(const ep_device* device) const;

 private:
  static HostServices& of(const ep_host* host);
  static void* allocate(const ep_host* host, uint64_t size, uint64_t alignment);
  static void release(const ep_host* host, void* pointer, uint64_t size);
  static ep_status config_get(const ep_host* host, ep_string key, ep_string* out_value);
  static ep_string plugin_path(const ep_host* host);
  static void device_memory_report(const ep_host* host, ep_device* device, int64_t delta);
  static ep_status blob_get(const ep_host* host, ep_string key,
                            void (*take)(void* context, const void* data, uint64_t size), void* context);
  static void blob_put(const ep_host* host, ep_string key, const void* data, uint64_t size);
  static void log(const ep_host* host, int32_t level, ep_string topic, ep_string message);

  const std::string provider_, path_;
  const std::map<std::string, std::string> values_;
  std::atomic<uint64_t> blocks_{0}, bytes_{0};
  mutable std::mutex mutex_;
  std::map<const ep_device*, int64_t> device_memory_;
  ep_host table_{};
  const ep_host* front_ = nullptr;
};

// The section [provider.<name>] of the config files.
const std::map<std::string, std::string>& configured_values(const std::string& provider);

// Borrows `text` as a string_view of at most 64 KiB. {NULL, n} is empty.
std::string_view view_of(ep_string text);

// Calls `function` of a plug-in. Turns its failure into a Status, and also an exception, which the contract forbids.
Status call_plugin(const std::string& provider, const char* function, const std::function<ep_status(ep_error**)>& call);
// The error for a `function` that threw the exception `thrown`.
Status thrown_out_of(const std::string& provider, const char* function, std::string_view thrown);

}  // namespace tenon::loader
