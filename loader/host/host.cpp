#include "loader/host/host.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <limits>
#include <optional>

#include "loader/blobs/blobs.h"
#include "loader/host/cancellation.h"
#include "loader/host/error.h"
#include "loader/host/plugin_call.h"
#include "loader/library/floating_point.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

constexpr uint64_t longest_string = 64 * 1024;

int32_t log_enabled_for_plugin(const ep_host*, int32_t level, ep_string topic) {
  if (level < EP_LOG_ERROR || level > EP_LOG_DEBUG) return 0;
  return log_enabled(log_topic_from_name(view_of(topic)), static_cast<LogLevel>(level)) ? 1 : 0;
}

int32_t thread_limit_for_plugin(const ep_host*) { return thread_limit(); }

int32_t cancel_requested_by_plugin(const ep_host*) { return cancel_requested() ? 1 : 0; }

ep_error* error_make(const ep_host*, ep_status status, ep_string sentence, ep_string remedy) {
  return make_error(status, view_of(sentence), view_of(remedy));
}

}  // namespace

std::string_view view_of(ep_string text) {
  return text.data ? std::string_view(text.data, std::min(text.size, longest_string)) : std::string_view();
}

const std::map<std::string, std::string>& configured_values(const std::string& provider) {
  static const auto* none = new std::map<std::string, std::string>;
  const auto& all = settings().provider_values;
  const auto values = all.find(provider);
  return values == all.end() ? *none : values->second;
}

HostServices::HostServices(std::string provider, std::string path, std::map<std::string, std::string> values)
    : provider_(std::move(provider)), path_(std::move(path)), values_(std::move(values)) {
  table_ = {sizeof(ep_host),
            EP_STRUCT_HOST,
            nullptr,
            EP_ABI_MAJOR,
            EP_ABI_MINOR,
            this,
            &error_make,
            &log_enabled_for_plugin,
            &HostServices::log,
            &HostServices::allocate,
            &HostServices::release,
            &HostServices::config_get,
            &thread_limit_for_plugin,
            &HostServices::plugin_path,
            &HostServices::device_memory_report,
            &HostServices::blob_get,
            &HostServices::blob_put,
            &cancel_requested_by_plugin};
}

HostMemory HostServices::memory() const { return {blocks_.load(), bytes_.load()}; }

int64_t HostServices::device_memory(const ep_device* device) const {
  std::lock_guard lock(mutex_);
  const auto found = device_memory_.find(device);
  return found == device_memory_.end() ? 0 : found->second;
}

HostServices& HostServices::of(const ep_host* host) { return *static_cast<HostServices*>(host->context); }

void* HostServices::allocate(const ep_host* host, uint64_t size, uint64_t alignment) {
  if (!std::has_single_bit(alignment) || size > std::numeric_limits<int64_t>::max() - alignment) return nullptr;
  alignment = std::max<uint64_t>(alignment, alignof(std::max_align_t));
  const uint64_t rounded = (std::max<uint64_t>(size, 1) + alignment - 1) & ~(alignment - 1);
  void* pointer = std::aligned_alloc(alignment, rounded);
  if (!pointer) return nullptr;
  of(host).blocks_.fetch_add(1);
  of(host).bytes_.fetch_add(size);
  return pointer;
}

void HostServices::release(const ep_host* host, void* pointer, uint64_t size) {
  if (!pointer) return;
  of(host).blocks_.fetch_sub(1);
  of(host).bytes_.fetch_sub(size);
  std::free(pointer);
}

ep_status HostServices::config_get(const ep_host* host, ep_string key, ep_string* out_value) {
  const auto& values = of(host).values_;
  const auto found = values.find(std::string(view_of(key)));
  if (found == values.end()) return EP_STATUS_NOT_FOUND;
  *out_value = {found->second.data(), found->second.size()};
  return EP_STATUS_OK;
}

ep_string HostServices::plugin_path(const ep_host* host) {
  const std::string& path = of(host).path_;
  return {path.data(), path.size()};
}

void HostServices::report_leaks() const {
  const HostMemory held = memory();
  if (held.blocks == 0) return;
  loader::log(LogTopic::memory, LogLevel::warning,
              fmt::format("the provider '{}' has leaked {} bytes of host memory in {} blocks.", provider_, held.bytes,
                          held.blocks));
}

void HostServices::device_memory_report(const ep_host* host, ep_device* device, int64_t delta) {
  HostServices& self = of(host);
  std::lock_guard lock(self.mutex_);
  self.device_memory_[device] += delta;
}

ep_status HostServices::blob_get(const ep_host* host, ep_string key,
                                 void (*take)(void* context, const void* data, uint64_t size), void* context) {
  const std::optional<std::string> blob = kept_blob(of(host).provider_, view_of(key));
  if (!blob) return EP_STATUS_NOT_FOUND;
  take(context, blob->data(), blob->size());
  return EP_STATUS_OK;
}

void HostServices::blob_put(const ep_host* host, ep_string key, const void* data, uint64_t size) {
  if (data != nullptr) keep_blob(of(host).provider_, view_of(key), {static_cast<const char*>(data), size});
}

void HostServices::log(const ep_host* host, int32_t level, ep_string topic, ep_string message) {
  if (!log_enabled_for_plugin(host, level, topic)) return;
  const std::string text = fmt::format("{}: {}", of(host).provider_, view_of(message));
  loader::log(log_topic_from_name(view_of(topic)), static_cast<LogLevel>(level), text);
}

Status call_plugin(const std::string& provider, const char* function,
                   const std::function<ep_status(ep_error**)>& call) {
  const KeptFloatingPoint floating_point;
  const PluginCall scope(provider.c_str(), function);
  ep_error* error = nullptr;
  std::string thrown;
  try {
    const ep_status status = call(&error);
    if (status == EP_STATUS_OK) return take_error(status, error, {});
    return take_error(status, error, fmt::format("calling {} of the provider '{}'", function, provider));
  } catch (const std::exception& exception) {
    thrown = exception.what();
  } catch (...) {
    thrown = "of an unknown type";
  }
  release_error(error);
  return thrown_out_of(provider, function, thrown);
}

Status thrown_out_of(const std::string& provider, const char* function, std::string_view thrown) {
  return Status(Code::internal,
                fmt::format("the provider '{}' threw a C++ exception out of {}: {}", provider, function, thrown),
                "Report it to the provider's author: no exception may cross the border.")
      .with_rule("Q02");
}

}  // namespace tenon::loader
