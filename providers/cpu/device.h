// The structs behind the handles of this provider, and what its files offer each other.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "providers/cpu/simd/level.h"
#include "sdk/provider/entry.h"
#include "sdk/provider/handle.h"
#include "sdk/provider/negotiate.h"

struct ep_plugin {
  const ep_host* host = nullptr;
  std::once_flag described;  // the two below
  std::string name;          // of the processor
  std::string fingerprint;   // processor and library versions
};

// One stateless stream, so the device is its own stream handle too.
struct ep_stream {
  const ep_host* host;
};

struct ep_device {
  const ep_host* host;
  tenon::provider::cpu::SimdLevel simd;
  int32_t threads;  // the most a parallel region may have
  ep_stream stream;
};

struct ep_memory {
  const ep_host* host;
  char* address;
  uint64_t mapped;  // bytes to unmap; 0: from aligned_alloc, or imported
  bool imported;
};

namespace tenon::provider::cpu {

inline char* address_of(ep_buffer buffer) { return buffer.memory->address + buffer.offset; }

// Each fills its slots of a device's table.
void fill_memory(ep_device_ops* ops);
void fill_stream(ep_device_ops* ops);
void fill_primitive(ep_device_ops* ops);

// The table of a device, all of the above.
ep_device_ops device_ops();

}  // namespace tenon::provider::cpu
