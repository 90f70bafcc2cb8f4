// The structs behind the handles of the null provider, and the functions that its files offer each other.
#pragma once

#include <atomic>
#include <cstdint>

#include "sdk/provider/entry.h"
#include "sdk/provider/handle.h"
#include "sdk/provider/negotiate.h"

struct ep_plugin {
  const ep_host* host;
};

struct ep_device {
  const ep_host* host;
};

struct ep_memory {
  const ep_host* host;
  char* address;
};

struct ep_stream {
  const ep_host* host;
};

struct ep_event {
  const ep_host* host;
  std::atomic<bool> recorded;
};

namespace tenon::provider::null {

constexpr uint64_t alignment = 64;  // alignment of every block, in bytes

// Each function fills its slots of a device's function table.
void fill_memory(ep_device_ops* ops);
void fill_stream(ep_device_ops* ops);
void fill_event(ep_device_ops* ops);
void fill_primitive(ep_device_ops* ops);

// The function table of a device, filled by the functions above.
ep_device_ops device_ops();

}  // namespace tenon::provider::null
