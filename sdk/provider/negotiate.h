// What happens once between host and plug-in: the version check, and the filling of tables that may differ in length.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "sdk/provider/error.h"

namespace tenon::provider {

// EP_STATUS_VERSION unless the host speaks the version this provider was compiled for.
inline ep_status negotiate(const ep_host* host, const ep_plugin_ops* out_ops, ep_error** error) {
  if (host->abi_major != EP_ABI_MAJOR || host->abi_minor != EP_ABI_MINOR) {
    return fail(host, error, EP_STATUS_VERSION, "The provider speaks ABI %d.%d, the host %u.%u.", EP_ABI_MAJOR,
                EP_ABI_MINOR, host->abi_major, host->abi_minor);
  }
  if (host->struct_type != EP_STRUCT_HOST || host->struct_size < sizeof(ep_host)) {
    return fail(host, error, EP_STATUS_VERSION,
                "The host's table has type %u and %u bytes; type %d of %zu was expected.", host->struct_type,
                host->struct_size, EP_STRUCT_HOST, sizeof(ep_host));
  }
  if (out_ops == nullptr || out_ops->struct_type != EP_STRUCT_PLUGIN_OPS) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "The table to fill is not of type %d.", EP_STRUCT_PLUGIN_OPS);
  }
  return EP_STATUS_OK;
}

// Writes `full` into `*out`, a struct that begins with struct_size and struct_type, at most out->struct_size bytes of
// it.
template <class T>
void fill(T* out, T full) {
  const uint32_t size = std::min<uint32_t>(out->struct_size, sizeof(T));
  full.struct_size = size;
  full.struct_type = out->struct_type;
  full.next = nullptr;
  std::memcpy(static_cast<void*>(out), &full, size);
}

}  // namespace tenon::provider
