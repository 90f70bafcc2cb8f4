#include "sdk/conformance/host.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <thread>

#include "loader/host/error.h"
#include "primitives/text/format.h"
#include "sdk/conformance/running.h"
#include "sdk/conformance/verdict.h"

namespace tenon::conformance {
namespace {

constexpr unsigned char fresh_pattern = 0xcd;
constexpr auto pause_length = std::chrono::microseconds(50);

std::string_view view(ep_string text) { return text.data == nullptr ? "" : std::string_view(text.data, text.size); }

}  // namespace

// The functions of ep_host.
struct HostEntries {
  static Host& self(const ep_host* host) { return *static_cast<Host*>(host->context); }
  static void pause(const ep_host* host) {
    if (self(host).lingers_.load(std::memory_order_relaxed)) std::this_thread::sleep_for(pause_length);
  }

  static ep_error* error_make(const ep_host* host, ep_status status, ep_string text, ep_string remedy) {
    pause(host);
    ep_error* error = loader::make_error(status, view(text), view(remedy));
    const std::lock_guard lock(self(host).mutex_);
    self(host).errors_.insert(error);
    return error;
  }
  static int32_t log_enabled(const ep_host* host, int32_t level, ep_string) {
    pause(host);
    return level <= EP_LOG_ERROR;
  }
  static void log(const ep_host* host, int32_t, ep_string, ep_string) { pause(host); }
  static void* allocate(const ep_host* host, uint64_t size, uint64_t alignment);
  static void release(const ep_host* host, void* pointer, uint64_t size);
  static ep_status config_get(const ep_host* host, ep_string key, ep_string* out_value) {
    pause(host);
    for (const auto& [name, value] : self(host).settings_) {
      if (name != view(key)) continue;
      *out_value = {value.data(), value.size()};
      return EP_STATUS_OK;
    }
    return EP_STATUS_NOT_FOUND;
  }
  static int32_t thread_limit(const ep_host* host) {
    pause(host);
    return 2;
  }
  static ep_string plugin_path(const ep_host* host) {
    const std::string& path = self(host).plugin_path_;
    return {path.data(), path.size()};
  }
  static void device_memory_report(const ep_host* host, ep_device*, int64_t delta) {
    pause(host);
    const std::lock_guard lock(self(host).mutex_);
    self(host).device_bytes_ += delta;
  }
  static ep_status blob_get(const ep_host* host, ep_string key, void (*take)(void*, const void*, uint64_t),
                            void* context);
  static void blob_put(const ep_host* host, ep_string key, const void* data, uint64_t size);
  static int32_t cancel_requested(const ep_host* host) {
    pause(host);
    return self(host).asks_to_cancel() ? 1 : 0;
  }
  // Records a violation if `key` is not a valid key.
  static bool is_key(const ep_host* host, const char* function, ep_string key);
};

bool HostEntries::is_key(const ep_host* host, const char* function, ep_string key) {
  constexpr uint64_t longest = 4096;
  if (key.data != nullptr && key.size > 0 && key.size <= longest) return true;
  self(host).violate(
      broken("H02", "host->{} was given a key of {} bytes; 1 to {} are possible", function, key.size, longest));
  return false;
}

ep_status HostEntries::blob_get(const ep_host* host, ep_string key, void (*take)(void*, const void*, uint64_t),
                                void* context) {
  pause(host);
  if (!is_key(host, "blob_get", key)) return EP_STATUS_NOT_FOUND;
  Host& me = self(host);
  std::string blob;
  {
    const std::lock_guard lock(me.mutex_);
    const auto found = me.blobs_.find(std::string(view(key)));
    if (me.keeping_ == Host::Blobs::none || found == me.blobs_.end()) return EP_STATUS_NOT_FOUND;
    blob = found->second;
    ++me.blobs_given_;
  }
  take(context, blob.data(), blob.size());
  std::fill(blob.begin(), blob.end(), '\xee');  // borrowed for the call
  return EP_STATUS_OK;
}

void HostEntries::blob_put(const ep_host* host, ep_string key, const void* data, uint64_t size) {
  pause(host);
  Host& me = self(host);
  if (!is_key(host, "blob_put", key)) return;
  if (data == nullptr || size == 0) return me.violate(broken("H02", "host->blob_put was given an empty blob"));
  const std::lock_guard lock(me.mutex_);
  if (me.keeping_ == Host::Blobs::kept) me.blobs_[std::string(view(key))].assign(static_cast<const char*>(data), size);
}

void* HostEntries::allocate(const ep_host* host, uint64_t size, uint64_t alignment) {
  pause(host);
  Host& me = self(host);
  if (!std::has_single_bit(alignment)) {
    me.violate(broken("H02", "host->allocate was asked for the alignment {}, which is not a power of two", alignment));
    return nullptr;
  }
  const std::lock_guard lock(me.mutex_);
  ++me.allocations_;
  if (me.fail_after_ >= 0 && me.fail_after_-- == 0) {
    me.failed_ = true;
    return nullptr;
  }
  const uint64_t unit = std::max<uint64_t>(alignment, sizeof(void*));
  if (size > uint64_t{1} << 40) return nullptr;
  void* pointer = std::aligned_alloc(unit, (std::max<uint64_t>(size, 1) + unit - 1) / unit * unit);
  if (pointer == nullptr) return nullptr;
  std::memset(pointer, fresh_pattern, size);
  me.blocks_[pointer] = {size};
  me.bytes_ += static_cast<int64_t>(size);
  return pointer;
}

void HostEntries::release(const ep_host* host, void* pointer, uint64_t size) {
  pause(host);
  if (pointer == nullptr) return;
  Host& me = self(host);
  Status wrong;
  {
    const std::lock_guard lock(me.mutex_);
    const auto block = me.blocks_.find(pointer);
    if (block == me.blocks_.end()) {
      wrong = broken("H01", "host->release was given a pointer that host->allocate did not give, or gave back before");
    } else {
      if (block->second.size != size) {
        wrong = broken("H01", "host->release was told {} bytes of a block of {}", size, block->second.size);
      }
      me.bytes_ -= static_cast<int64_t>(block->second.size);
      me.blocks_.erase(block);
      std::free(pointer);
    }
  }
  if (!wrong.ok()) me.violate(wrong);
}

Host::Host(Settings settings, const std::string& plugin_path)
    : settings_(std::move(settings)),
      plugin_path_(plugin_path.empty() ? plugin_path : std::filesystem::absolute(plugin_path).string()) {
  table_.struct_size = sizeof(table_);
  table_.struct_type = EP_STRUCT_HOST;
  table_.abi_major = EP_ABI_MAJOR;
  table_.abi_minor = EP_ABI_MINOR;
  table_.context = this;
  table_.error_make = HostEntries::error_make;
  table_.log_enabled = HostEntries::log_enabled;
  table_.log = HostEntries::log;
  table_.allocate = HostEntries::allocate;
  table_.release = HostEntries::release;
  table_.config_get = HostEntries::config_get;
  table_.thread_limit = HostEntries::thread_limit;
  table_.plugin_path = HostEntries::plugin_path;
  table_.device_memory_report = HostEntries::device_memory_report;
  table_.blob_get = HostEntries::blob_get;
  table_.blob_put = HostEntries::blob_put;
  table_.cancel_requested = HostEntries::cancel_requested;
}

uint64_t Host::keep_blobs(Blobs blobs) {
  const std::lock_guard lock(mutex_);
  keeping_ = blobs;
  return std::exchange(blobs_given_, 0);
}

int64_t Host::bytes_held() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

int64_t Host::device_bytes() const {
  const std::lock_guard lock(mutex_);
  return device_bytes_;
}

int64_t Host::errors_alive() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(errors_.size());
}

int64_t Host::allocations() const {
  const std::lock_guard lock(mutex_);
  return allocations_;
}

void Host::fail_allocation_after(int64_t count) {
  const std::lock_guard lock(mutex_);
  fail_after_ = count;
  failed_ = false;
}

bool Host::allocation_failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

void Host::cancel_after(int64_t questions) {
  const std::lock_guard lock(mutex_);
  cancel_after_ = questions;
  cancelled_thread_ = std::this_thread::get_id();
  cancel_questions_ = 0;
}

int64_t Host::cancel_questions() const {
  const std::lock_guard lock(mutex_);
  return cancel_questions_;
}

bool Host::asks_to_cancel() {
  const std::lock_guard lock(mutex_);
  if (std::this_thread::get_id() != cancelled_thread_) return false;
  const int64_t question = cancel_questions_++;
  return cancel_after_ >= 0 && question >= cancel_after_;
}

void Host::violate(Status violation) {
  const std::lock_guard lock(mutex_);
  if (violation_.ok()) violation_ = std::move(violation);
}

Status Host::take_violation() {
  const std::lock_guard lock(mutex_);
  return std::exchange(violation_, Status());
}

Status Host::take(const char* function, ep_status status, ep_error* error) {
  bool ours = false;
  if (error != nullptr) {
    const std::lock_guard lock(mutex_);
    ours = errors_.erase(error) == 1;
  }
  std::string text, remedy;
  if (ours) {
    if (status != EP_STATUS_OK && error->status != status) {
      violate(broken("E02", "{} answered {} and its error says {}{}", function, status_text(status),
                     status_text(error->status), descriptor_text_for(function)));
    }
    text = error->sentence;
    remedy = error->remedy;
    loader::release_error(error);
  }
  if (error != nullptr && !ours) {
    violate(broken("E02", "{} gave an error that host->error_make did not make{}", function,
                   descriptor_text_for(function)));
  }
  if (status == EP_STATUS_OK) {
    if (error != nullptr)
      violate(broken("E02", "{} answered 'ok' and set an error{}", function, descriptor_text_for(function)));
    return {};
  }
  if (status < EP_STATUS_OK || status > EP_STATUS_INTERNAL) {
    violate(broken("R01", "{} answered {}, which is not a status of ep_api.h{}", function, status,
                   descriptor_text_for(function)));
    return Status(Code::internal, fmt::format("{} answered {}.", function, status));
  }
  const bool is_answer = status == EP_STATUS_BUSY || status == EP_STATUS_TIMEOUT || status == EP_STATUS_NOT_FOUND ||
                         status == EP_STATUS_FAULT;  // the fault is in an ep_fault
  if (text.empty() && !is_answer) {
    violate(broken("E02", "{} answered '{}' without a sentence{}", function, code_name(static_cast<Code>(status)),
                   descriptor_text_for(function)));
  }
  if (text.empty()) text = "no sentence";
  const std::string answer = fmt::format("  answered by {}: {}", function, code_name(static_cast<Code>(status)));
  const Code code = static_cast<Code>(status) == skip_code ? Code::internal : static_cast<Code>(status);
  return Status(code, std::move(text), std::move(remedy)).with_context(answer);
}

}  // namespace tenon::conformance
