// The parts that every plugin.cpp needs: the answer to the query of a plug-in, and the description of its devices.
//
//   void fill_plugin(ep_plugin_ops* ops) {
//     ops->device_count = entry<device_count>;
//     ops->device_info = entry<device_info>;
//     ops->device_open = entry<device_open>;
//   }
//
//   ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
//     return tenon::provider::answer_query(host, out_ops, error, fill_plugin);
//   }
#pragma once

#include <cstddef>
#include <type_traits>

#include "ep_api/ep_collectives.h"
#include "sdk/provider/entry.h"
#include "sdk/provider/handle.h"
#include "sdk/provider/negotiate.h"

namespace tenon::provider {

// Every dtype, as the bits of ep_device_info.dtypes.
inline constexpr uint64_t every_dtype = 0
#define EP_DTYPE(name, id, bits, type_class) | (UINT64_C(1) << (id))
#include "ep_api/dtypes.def"
#undef EP_DTYPE
    ;

// Errors: EP_STATUS_NOT_FOUND if the provider, which has `count` devices, has no device `index`.
inline ep_status check_index(const ep_host* host, const char* provider, size_t count, uint32_t index,
                             ep_error** error) {
  if (index < count) return EP_STATUS_OK;
  return fail(host, error, EP_STATUS_NOT_FOUND, "%s has %zu device%s; there is no device %u.", provider, count,
              count == 1 ? "" : "s", index);
}

// Answers ep_plugin_query_v0 or ep_collectives_query_v0: checks the versions, makes the plug-in, and fills `out_ops`.
// `fill_slots` adds the functions to a table that has its version, its plug-in, and a shutdown that destroys the
// plug-in. Errors: those of negotiate; EP_STATUS_OUT_OF_HOST_MEMORY.
template <class Ops, class FillSlots>
ep_status answer_query(const ep_host* host, Ops* out_ops, ep_error** error, const FillSlots& fill_slots) noexcept {
  using Plugin = std::remove_pointer_t<decltype(Ops::plugin)>;
  constexpr bool has_devices = std::is_same_v<Ops, ep_plugin_ops>;
  constexpr uint32_t type = has_devices ? EP_STRUCT_PLUGIN_OPS : EP_STRUCT_COLLECTIVES_OPS;
  Ops ops{};
  try {
    if (const ep_status status = negotiate(host, out_ops, error, type); status != EP_STATUS_OK) return status;
    if constexpr (has_devices) {
      ops.abi_major = EP_ABI_MAJOR;
      ops.abi_minor = EP_ABI_MINOR;
    } else {
      ops.version_major = EP_COLLECTIVES_MAJOR;
      ops.version_minor = EP_COLLECTIVES_MINOR;
    }
    ops.plugin = make<Plugin>(host);
    ops.shutdown = [](Plugin* plugin) noexcept { destroy(plugin); };
    fill_slots(&ops);
    fill(out_ops, ops);
    return EP_STATUS_OK;
  } catch (...) {
    destroy(ops.plugin);
    return caught(host, error);
  }
}

}  // namespace tenon::provider
