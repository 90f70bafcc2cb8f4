// The smallest host that can drive a provider, without Tenon's own.
#pragma once

#include <cstdlib>
#include <string>

#include "ep_api/ep_api.h"

namespace tenon::unit {

// A host that counts what the plug-in holds and keeps the text of the last error.
struct Host {
  ep_host table{};
  int64_t held = 0;
  ep_status status = EP_STATUS_OK;
  std::string sentence;

  Host() {
    table.struct_size = sizeof table;
    table.struct_type = EP_STRUCT_HOST;
    table.abi_major = EP_ABI_MAJOR;
    table.abi_minor = EP_ABI_MINOR;
    table.context = this;
    table.error_make = [](const ep_host* host, ep_status status, ep_string sentence, ep_string) {
      Host& self = *static_cast<Host*>(host->context);
      self.status = status;
      self.sentence.assign(sentence.data, sentence.size);
      return reinterpret_cast<ep_error*>(&self);
    };
    table.log_enabled = [](const ep_host*, int32_t, ep_string) -> int32_t { return 0; };
    table.log = [](const ep_host*, int32_t, ep_string, ep_string) {};
    table.allocate = [](const ep_host* host, uint64_t size, uint64_t alignment) {
      static_cast<Host*>(host->context)->held += static_cast<int64_t>(size);
      return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    };
    table.release = [](const ep_host* host, void* pointer, uint64_t size) {
      if (pointer != nullptr) static_cast<Host*>(host->context)->held -= static_cast<int64_t>(size);
      std::free(pointer);
    };
    table.config_get = [](const ep_host*, ep_string, ep_string*) -> ep_status { return EP_STATUS_NOT_FOUND; };
    table.thread_limit = [](const ep_host*) -> int32_t { return 1; };
    table.plugin_path = [](const ep_host*) { return ep_string{"", 0}; };
    table.device_memory_report = [](const ep_host*, ep_device*, int64_t) {};
    table.blob_get = [](const ep_host*, ep_string, void (*)(void*, const void*, uint64_t), void*) -> ep_status {
      return EP_STATUS_NOT_FOUND;
    };
    table.blob_put = [](const ep_host*, ep_string, const void*, uint64_t) {};
    table.cancel_requested = [](const ep_host*) -> int32_t { return 0; };
  }
};

}  // namespace tenon::unit
