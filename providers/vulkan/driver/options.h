// The settings of this provider: `[provider.vulkan]` in the config file.
#pragma once

#include <optional>
#include <string>

#include "ep_api/ep_api.h"

namespace tenon::provider::vulkan {

struct Options {
  std::string library = "libvulkan.so.1";  // library: the Vulkan loader
  bool validation = false;    // validation = "on": the Khronos layer, synchronisation included, logs errors
  bool barriers = true;       // barriers = "off": leaves out what orders work, for validation to find
  bool baseline = false;      // features = "baseline": as if the device had no optional feature
  uint32_t batch = 256;       // batch: operations per submission at most
  uint32_t work = 65536;      // work: 2^20 multiplications per submission at most, where a launch can be cut
  std::optional<bool> packs;  // packs = "on" or "off": 16 bytes an access (kernels/packs), else as suits the device
};

// EP_STATUS_INVALID_ARGUMENT with the value and what is allowed, if a setting is not one of those above.
ep_status read_options(const ep_host* host, Options* out_options, ep_error** error);

}  // namespace tenon::provider::vulkan
