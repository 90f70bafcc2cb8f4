// The handles of kernel modules.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "providers/vulkan/device.h"
#include "providers/vulkan/modules/source.h"

// An entry of a module; a module has one. Threads: several may launch it at the same time.
struct ep_kernel {
  std::shared_ptr<tenon::provider::vulkan::Pipeline> pipeline;
  std::string name;
  uint64_t flags = 0;
  uint32_t buffer_count = 0;
  uint32_t words = 0;  // bytes of the buffers' addresses
  tenon::provider::vulkan::Placement placement{};
  const ep_host* host = nullptr;
  ep_kernel_info info{};  // unknown: Vulkan 1.2 does not report these
};

struct ep_module {
  const ep_host* host = nullptr;
  std::vector<std::unique_ptr<ep_kernel>> kernels;
};

namespace tenon::provider::vulkan {

ep_status kernel_launch(ep_kernel* kernel, ep_stream* stream, const ep_kernel_launch* launch, ep_fault* out_fault,
                        ep_error** error);

}  // namespace tenon::provider::vulkan
