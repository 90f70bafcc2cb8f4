// Negotiation: accepting the tables a plug-in fills.
//
// The host offers a zeroed buffer larger than the struct, with the struct's size in struct_size; the plug-in writes at
// most that much and leaves in struct_size how much it filled. What is accepted is copied once into a full-size,
// zero-filled struct of the host's own: a shorter one is fine (the rest is zero, which means the old behaviour), a
// longer one too if its unknown tail is zero. While the version is 0.x, host and plug-in must have the same minor.
#pragma once

#include <string>

#include "ep_api/ep_api.h"
#include "loader/host/host.h"
#include "loader/loader.h"
#include "primitives/status/status.h"

namespace tenon::loader {

// Calls the query. Errors: the query's own; VERSION; a table that is malformed or misses a required slot.
Result<ep_plugin_ops> negotiate_plugin(const HostServices& host, ep_plugin_query_fn query);

// Reads and checks what device `index` says of itself.
Result<DeviceInfo> query_device_info(const std::string& provider, const ep_plugin_ops& plugin, uint32_t index);

// Opens device `index`, in the context of `adopt` if that is not null (the plug-in then has device_adopt). On success
// `device.handle` and `device.ops` are set.
// Errors: the provider's own; a table that is malformed or misses a slot that a device with `device.info` must have,
// and then `device.info.unusable_reason` says so too.
Status open_device_table(const std::string& provider, const ep_plugin_ops& plugin, const ep_adopt_desc* adopt,
                         OpenDevice& device);

}  // namespace tenon::loader
