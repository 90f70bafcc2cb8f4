// The structs behind the handles of the cpu provider, and the functions that its files offer each other.
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
  std::once_flag described;  // protects name and fingerprint
  std::string name;          // name of the processor
  std::string fingerprint;   // text made of processor and library versions
};

// The only stream of a device. It has no state, and the device owns it.
struct ep_stream {
  const ep_host* host;
  int32_t threads;  // threads of the device
};

struct ep_device {
  const ep_host* host;
  tenon::provider::cpu::SimdLevel simd;
  int32_t threads;  // most threads of a parallel region
  ep_stream stream;
};

struct ep_memory {
  const ep_host* host;
  char* address;
  uint64_t mapped;  // bytes to unmap; 0 if the memory is from aligned_alloc or imported
  bool imported;
};

namespace tenon::provider::cpu {

inline char* address_of(ep_buffer buffer) { return buffer.memory->address + buffer.offset; }

// Each function fills its slots of a device's function table.
void fill_memory(ep_device_ops* ops);
void fill_stream(ep_device_ops* ops);
void fill_primitive(ep_device_ops* ops);

// The function table of a device, filled by the functions above.
ep_device_ops device_ops();

}  // namespace tenon::provider::cpu
