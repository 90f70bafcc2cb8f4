// The handles of kernel modules.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "providers/opencl/device.h"

// An entry of a module. Threads: several may launch it at the same time.
struct ep_kernel {
  const ep_host* host = nullptr;
  std::shared_ptr<tenon::provider::opencl::Kernel> kernel;
  std::string name;
  uint64_t flags = 0;
  uint32_t buffer_count = 0;
  size_t group[3] = {1, 1, 1};
  uint64_t words = 0;         // bytes of struct ep_launch_words
  bool by_reference = false;  // the parameters come in a buffer
  ep_kernel_info info{};      // registers and concurrent groups are unknown: OpenCL does not report them
};

struct ep_module {
  const ep_host* host = nullptr;
  std::unique_ptr<tenon::provider::opencl::Program> program;
  std::vector<std::unique_ptr<ep_kernel>> kernels;
};

namespace tenon::provider::opencl {

ep_status kernel_launch(ep_kernel* kernel, ep_stream* stream, const ep_kernel_launch* launch, ep_fault* out_fault,
                        ep_error** error);

}  // namespace tenon::provider::opencl
