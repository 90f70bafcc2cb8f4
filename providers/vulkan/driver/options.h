// The settings of the vulkan provider: `[provider.vulkan]` in the config file.
#pragma once

#include <optional>
#include <string>

#include "ep_api/ep_api.h"

namespace tenon::provider::vulkan {

struct Options {
  std::string library = "libvulkan.so.1";  // library: the Vulkan loader
  bool validation = false;                 // validation = "on": the Khronos layer logs errors, including
                                           // synchronisation errors
  bool barriers = true;                    // barriers = "off": omit barriers between operations, to test validation
  bool baseline = false;                   // features = "baseline": ignore the optional features of devices
  uint32_t batch = 256;                    // batch: limit of operations per submission
  uint32_t work = 65536;      // work: limit of work per submission, in 2^20 multiplications; larger launches are cut
  std::optional<bool> packs;  // packs = "on" or "off": 16 bytes per access (kernels/packs); unset: depends on the
                              // device
};

// Errors: EP_STATUS_INVALID_ARGUMENT with the value and the allowed values, if a setting has another value.
ep_status read_options(const ep_host* host, Options* out_options, ep_error** error);

}  // namespace tenon::provider::vulkan
