#include "loader/layers/validate/services.h"

#include <bit>
#include <mutex>
#include <unordered_map>

#include "loader/blobs/blobs.h"
#include "loader/host/error.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

struct Services {
  const ep_host* inner;
  std::string provider;
  ep_host table;
  std::mutex mutex;
  std::unordered_map<const void*, uint64_t> blocks;
  std::unordered_map<const ep_device*, int64_t> reported;
  bool ended = false;
};

Services& of(const ep_host* host) { return *static_cast<Services*>(host->context); }

void blame(const ep_host* host, const char* rule, const std::string& function, const std::string& what) {
  log(LogTopic::validate, LogLevel::error,
      fmt::format("{}, broken by the provider: ep_host.{} for '{}': {}.", rule, function, of(host).provider, what));
}

// Returns false and logs an error if the provider's shutdown has returned: it may not use the host any more.
bool still_there(const ep_host* host, const char* function) {
  bool ended;
  {
    std::lock_guard lock(of(host).mutex);
    ended = of(host).ended;
  }
  if (ended) blame(host, "H02", function, "called after shutdown has returned");
  return !ended;
}

bool is_text(ep_string text) { return text.data != nullptr || text.size == 0; }

ep_error* error_make(const ep_host* host, ep_status status, ep_string sentence, ep_string remedy) {
  const bool known = status > EP_STATUS_OK && status <= EP_STATUS_INTERNAL;
  if (!known) blame(host, "H02", "error_make", fmt::format("status {} is not a failure", status));
  if (!is_text(sentence) || sentence.size == 0 || !is_text(remedy)) {
    blame(host, "H02", "error_make", "an error needs a message");
  }
  const ep_status told = known ? status : EP_STATUS_INTERNAL;
  if (!still_there(host, "error_make")) return make_error(told, view_of(sentence), view_of(remedy));
  return of(host).inner->error_make(of(host).inner, told, sentence, remedy);
}

int32_t log_enabled_for_plugin(const ep_host* host, int32_t level, ep_string topic) {
  if (level < EP_LOG_ERROR || level > EP_LOG_DEBUG) {
    blame(host, "H02", "log_enabled", fmt::format("{} is not a level", level));
  }
  return still_there(host, "log_enabled") ? of(host).inner->log_enabled(of(host).inner, level, topic) : 0;
}

void log_for_plugin(const ep_host* host, int32_t level, ep_string topic, ep_string message) {
  if (level < EP_LOG_ERROR || level > EP_LOG_DEBUG) blame(host, "H02", "log", fmt::format("{} is not a level", level));
  if (still_there(host, "log")) of(host).inner->log(of(host).inner, level, topic, message);
}

void* allocate(const ep_host* host, uint64_t size, uint64_t alignment) {
  if (!std::has_single_bit(alignment)) {
    blame(host, "H02", "allocate", fmt::format("the alignment {} is not a power of two", alignment));
  }
  if (!still_there(host, "allocate")) return nullptr;
  void* pointer = of(host).inner->allocate(of(host).inner, size, alignment);
  if (pointer == nullptr) return nullptr;
  std::lock_guard lock(of(host).mutex);
  of(host).blocks[pointer] = size;
  return pointer;
}

void release(const ep_host* host, void* pointer, uint64_t size) {
  if (pointer == nullptr || !still_there(host, "release")) return;
  uint64_t given = 0;
  bool known = false;
  {
    std::lock_guard lock(of(host).mutex);
    const auto found = of(host).blocks.find(pointer);
    known = found != of(host).blocks.end();
    if (known) {
      given = found->second;
      of(host).blocks.erase(found);
    }
  }
  if (!known) return blame(host, "H01", "release", "the block was not allocated, or was released before");
  if (given != size) {
    blame(host, "H01", "release", fmt::format("a block of {} bytes is given back as one of {}", given, size));
  }
  of(host).inner->release(of(host).inner, pointer, given);
}

ep_status config_get(const ep_host* host, ep_string key, ep_string* out_value) {
  if (!still_there(host, "config_get")) return EP_STATUS_NOT_FOUND;
  return of(host).inner->config_get(of(host).inner, key, out_value);
}

int32_t thread_limit_for_plugin(const ep_host* host) {
  return still_there(host, "thread_limit") ? of(host).inner->thread_limit(of(host).inner) : 1;
}

ep_string plugin_path(const ep_host* host) {
  return still_there(host, "plugin_path") ? of(host).inner->plugin_path(of(host).inner) : ep_string{nullptr, 0};
}

void device_memory_report(const ep_host* host, ep_device* device, int64_t delta) {
  if (!still_there(host, "device_memory_report")) return;
  int64_t total = 0;
  {
    std::lock_guard lock(of(host).mutex);
    total = of(host).reported[device] += delta;
  }
  if (total < 0) {
    blame(host, "H01", "device_memory_report", fmt::format("the device's own memory would be {} bytes", total));
  }
  of(host).inner->device_memory_report(of(host).inner, device, delta);
}

// Returns false and logs an error if `key` is not a valid key.
bool is_key(const ep_host* host, const char* function, ep_string key) {
  const bool good = key.data != nullptr && key.size > 0 && key.size <= longest_blob_key;
  if (!good) {
    blame(host, "H02", function, fmt::format("a key has {} bytes; 1 to {} are possible", key.size, longest_blob_key));
  }
  return good;
}

ep_status blob_get(const ep_host* host, ep_string key, void (*take)(void* context, const void* data, uint64_t size),
                   void* context) {
  if (take == nullptr) blame(host, "H02", "blob_get", "there is no function to take the blob");
  const bool asked = still_there(host, "blob_get") && is_key(host, "blob_get", key) && take != nullptr;
  return asked ? of(host).inner->blob_get(of(host).inner, key, take, context) : EP_STATUS_NOT_FOUND;
}

void blob_put(const ep_host* host, ep_string key, const void* data, uint64_t size) {
  if (data == nullptr || size == 0) return blame(host, "H02", "blob_put", "the blob is empty");
  if (!still_there(host, "blob_put") || !is_key(host, "blob_put", key)) return;
  of(host).inner->blob_put(of(host).inner, key, data, size);
}

thread_local bool said_cancel = false;

int32_t cancel_requested(const ep_host* host) {
  if (!still_there(host, "cancel_requested")) return 0;
  const int32_t answer = of(host).inner->cancel_requested(of(host).inner);
  said_cancel = said_cancel || answer != 0;
  return answer;
}

}  // namespace

const ep_host* validate_services(const HostServices& host) {
  track_errors();
  static auto* all = new std::vector<std::unique_ptr<Services>>;
  static auto* mutex = new std::mutex;
  auto services = std::make_unique<Services>();
  services->inner = host.table();
  services->provider = host.provider();
  services->table = *host.table();
  services->table.context = services.get();
  services->table.error_make = error_make;
  services->table.log_enabled = log_enabled_for_plugin;
  services->table.log = log_for_plugin;
  services->table.allocate = allocate;
  services->table.release = release;
  services->table.config_get = config_get;
  services->table.thread_limit = thread_limit_for_plugin;
  services->table.plugin_path = plugin_path;
  services->table.device_memory_report = device_memory_report;
  services->table.blob_get = blob_get;
  services->table.blob_put = blob_put;
  services->table.cancel_requested = cancel_requested;
  std::lock_guard lock(*mutex);
  all->push_back(std::move(services));
  return &all->back()->table;
}

void begin_stoppable_call() { said_cancel = false; }
bool cancel_was_requested() { return said_cancel; }

void end_validated_services(const ep_host* table) {
  if (table == nullptr) return;
  uint64_t left = 0;
  {
    std::lock_guard lock(of(table).mutex);
    of(table).ended = true;
    left = of(table).blocks.size();
  }
  if (left != 0)
    blame(table, "H01", "release", fmt::format("{} blocks were not given back before shutdown returned", left));
}

}  // namespace tenon::loader
