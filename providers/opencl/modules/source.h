// What a module's text becomes before the driver compiles it.
#pragma once

#include <string>

#include "ep_api/ep_api.h"
#include "providers/opencl/driver/describe.h"

namespace tenon::provider::opencl {

inline constexpr uint32_t most_module_buffers = 128;  // of an entry, workspace and scratch included

// What dialect_info says of the device.
ep_dialect_info opencl_dialect(const PhysicalDevice& device);

// Whether the parameters of `entry` come in global memory, since its arguments would be too many bytes.
bool by_reference(const PhysicalDevice& device, const ep_module_desc& desc, const ep_module_entry& entry);

// The bytes of struct ep_launch_words in the text of `desc`: the fault's slot and an offset per buffer.
uint64_t launch_words(const ep_module_desc& desc);

// Makes the whole text, in which its own lines count from 1. Returns what is wrong with the entries, or an empty
// string.
std::string make_source(const PhysicalDevice& device, const ep_module_desc& desc, std::string* out_source);

}  // namespace tenon::provider::opencl
