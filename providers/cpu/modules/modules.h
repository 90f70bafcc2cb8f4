// The handles of kernel modules, and their slots.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "providers/cpu/device.h"
#include "providers/cpu/modules/c_compiler.h"
#include "providers/cpu/modules/library.h"

// An entry of a module, with the memory that its launches share. Threads: several may launch it at once.
struct ep_kernel {
  const ep_host* host = nullptr;
  int32_t threads = 1;
  std::string name;
  uint64_t flags = 0;
  uint32_t buffer_count = 0;
  uint32_t parameter_bytes = 0;
  ep_kernel_info info{};                 // unknown: an item is a call
  uint64_t local_stride = 0;             // bytes of local memory of a thread, a multiple of 64; 0: none
  void* function = nullptr;              // of type Entry or FaultEntry (launch.cpp)
  std::atomic<uint64_t> short_shape{0};  // of a launch that was too short to be shared among threads; 0: none
  std::atomic<uint64_t> long_shape{0};   // of the last launch that was shared; 0: none
  std::atomic<int64_t> long_time{0};     // what it took at least, on all threads together, in nanoseconds
  std::atomic<char*> local{nullptr};     // for all threads of a launch, while no launch uses it

  ep_kernel() = default;
  ~ep_kernel();
  ep_kernel(const ep_kernel&) = delete;
  ep_kernel& operator=(const ep_kernel&) = delete;
};

struct ep_module {
  const ep_host* host = nullptr;
  std::unique_ptr<tenon::provider::cpu::Library> library;
  std::vector<std::unique_ptr<ep_kernel>> kernels;  // before the library goes, they go
};

namespace tenon::provider::cpu {

// What device_open makes. Only this folder and the files that open and close a device see more than an ep_device.
struct OpenDevice : ep_device {
  OpenDevice(const ep_host* from, SimdLevel level, int32_t most_threads);

  CCompiler compiler;
};

// Fills the slots of kernel modules.
void fill_modules(ep_device_ops* ops);

ep_status kernel_launch(ep_kernel* kernel, ep_stream* stream, const ep_kernel_launch* launch, ep_fault* out_fault,
                        ep_error** error);

}  // namespace tenon::provider::cpu
