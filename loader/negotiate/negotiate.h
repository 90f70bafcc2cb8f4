// Negotiation: accepting the tables that a plug-in fills.
//
// The host passes a zeroed buffer larger than the struct, with the size of the struct in struct_size. The plug-in
// writes at most that many bytes and sets struct_size to the number it wrote. The host copies an accepted struct once
// into a full-size, zero-filled struct of its own. A shorter struct is accepted: the rest is zero, which means the old
// behaviour. A longer one is accepted if its unknown tail is zero. While the version is 0.x, host and plug-in must have
// the same minor.
#pragma once

#include <string>

#include "ep_api/ep_api.h"
#include "loader/host/host.h"
#include "loader/loader.h"
#include "primitives/status/status.h"

namespace tenon::loader {

// Calls the query. Errors: an error of the query; VERSION; a table that is malformed or lacks a required slot.
Result<ep_plugin_ops> negotiate_plugin(const HostServices& host, ep_plugin_query_fn query);

// Reads and checks the description of device `index`.
Result<DeviceInfo> query_device_info(const std::string& provider, const ep_plugin_ops& plugin, uint32_t index);

// Opens device `index`, in the context of `adopt` unless that is null (the plug-in then has device_adopt). On success
// sets `device.handle` and `device.ops`.
// Errors: an error of the provider; a table that is malformed or lacks a slot that a device with `device.info` must
// have. For such a table `device.info.unusable_reason` is set too.
Status open_device_table(const std::string& provider, const ep_plugin_ops& plugin, const ep_adopt_desc* adopt,
                         OpenDevice& device);

}  // namespace tenon::loader
