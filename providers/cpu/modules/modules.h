// The handles of kernel modules, and their slots.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "providers/cpu/device.h"
#include "providers/cpu/modules/c_compiler.h"
#include "providers/cpu/modules/library.h"

// One entry of a module, with memory shared by its launches. Threads: several may launch it at once.
struct ep_kernel {
  const ep_host* host = nullptr;
  int32_t threads = 1;
  std::string name;
  uint64_t flags = 0;
  uint32_t buffer_count = 0;
  uint32_t parameter_bytes = 0;
  ep_kernel_info info{};                 // if unknown: one item per call
  uint64_t local_stride = 0;             // bytes of local memory per thread, a multiple of 64; 0: none
  void* function = nullptr;              // an Entry or a FaultEntry (launch.cpp)
  std::atomic<uint64_t> short_shape{0};  // a launch shape that was too short to divide among threads; 0: none
  std::atomic<uint64_t> long_shape{0};   // the last launch shape that was divided among threads; 0: none
  std::atomic<int64_t> long_time{0};     // the least time of such a launch, summed over threads, in nanoseconds
  std::atomic<char*> local{nullptr};     // local memory for all threads of a launch; held here while no launch uses it

  ep_kernel() = default;
  ~ep_kernel();
  ep_kernel(const ep_kernel&) = delete;
  ep_kernel& operator=(const ep_kernel&) = delete;
};

struct ep_module {
  const ep_host* host = nullptr;
  std::unique_ptr<tenon::provider::cpu::Library> library;
  std::vector<std::unique_ptr<ep_kernel>> kernels;  // destroyed before the library
};

namespace tenon::provider::cpu {

// The object behind an ep_device. Only this folder, and the files that open and close a device, use more than
// ep_device.
struct OpenDevice : ep_device {
  OpenDevice(const ep_host* from, SimdLevel level, int32_t most_threads);

  CCompiler compiler;
};

// Fills the slots of kernel modules.
void fill_modules(ep_device_ops* ops);

ep_status kernel_launch(ep_kernel* kernel, ep_stream* stream, const ep_kernel_launch* launch, ep_fault* out_fault,
                        ep_error** error);

}  // namespace tenon::provider::cpu
