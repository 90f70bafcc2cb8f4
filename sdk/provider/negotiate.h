// The first steps between host and plug-in: checking versions, and filling tables of different lengths.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "sdk/provider/error.h"

namespace tenon::provider {

// The smallest ep_host that this provider works with. The table of an older host is shorter: check host->struct_size
// before you call a function that was added later.
constexpr uint32_t least_host_size() {
  uint32_t least = sizeof(ep_host);
#define EP_FROZEN_SIZE(type, minor, bytes)                                              \
  if (std::string_view(#type) == "ep_host" && EP_ABI_MINORS_AGREE(EP_ABI_MINOR, minor)) \
    least = std::min<uint32_t>(least, bytes);
#include "ep_api/frozen_sizes.def"
#undef EP_FROZEN_SIZE
  return least;
}

// `type` is the EP_STRUCT_* of the table that the plug-in fills.
// Errors: EP_STATUS_VERSION if the host's version does not agree with the version of our ep_api.h. The error has no
// text if `host` is too short to make one.
template <class Ops>
ep_status negotiate(const ep_host* host, const Ops* out_ops, ep_error** error, uint32_t type = EP_STRUCT_PLUGIN_OPS) {
  if (host->struct_type != EP_STRUCT_HOST || host->struct_size < offsetof(ep_host, log_enabled))
    return EP_STATUS_VERSION;
  if (host->abi_major != EP_ABI_MAJOR || !EP_ABI_MINORS_AGREE(host->abi_minor, EP_ABI_MINOR)) {
    return fail(host, error, EP_STATUS_VERSION, "The provider speaks ABI %d.%d, the host %u.%u.", EP_ABI_MAJOR,
                EP_ABI_MINOR, host->abi_major, host->abi_minor);
  }
  if (host->struct_size < least_host_size()) {
    return fail(host, error, EP_STATUS_VERSION, "The host's table has %u bytes; at least %u were expected.",
                host->struct_size, least_host_size());
  }
  if (out_ops == nullptr || out_ops->struct_type != type) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "The table to fill is not of type %u.", type);
  }
  return EP_STATUS_OK;
}

// Copies `full` into `*out`, but at most out->struct_size bytes. The struct begins with struct_size and struct_type.
template <class T>
void fill(T* out, T full) {
  const uint32_t size = std::min<uint32_t>(out->struct_size, sizeof(T));
  full.struct_size = size;
  full.struct_type = out->struct_type;
  full.next = nullptr;
  std::memcpy(static_cast<void*>(out), &full, size);
}

}  // namespace tenon::provider
