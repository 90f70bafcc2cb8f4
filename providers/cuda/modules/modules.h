// The handles of kernel modules.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "providers/cuda/device.h"

// An entry of a module. Threads: several may launch it at the same time.
struct ep_kernel {
  const ep_host* host = nullptr;
  CUfunction function = nullptr;
  std::string name;
  uint64_t flags = 0;
  uint32_t buffer_count = 0;
  uint32_t group[3] = {1, 1, 1};
  ep_kernel_info info{};
};

struct ep_module {
  const ep_host* host = nullptr;
  ep_device* device = nullptr;
  CUmodule handle = nullptr;
  std::vector<std::unique_ptr<ep_kernel>> kernels;

  ep_module() = default;
  ~ep_module();
  ep_module(const ep_module&) = delete;
  ep_module& operator=(const ep_module&) = delete;
};

namespace tenon::provider::cuda {

ep_status kernel_launch(ep_kernel* kernel, ep_stream* stream, const ep_kernel_launch* launch, ep_fault* out_fault,
                        ep_error** error);

}  // namespace tenon::provider::cuda
