// The text that is compiled for a module.
#pragma once

#include <string>

#include "ep_api/ep_api.h"
#include "providers/opencl/driver/describe.h"

namespace tenon::provider::opencl {

inline constexpr uint32_t most_module_buffers = 128;  // per entry, including workspace and scratch

// The device's answer to dialect_info.
ep_dialect_info opencl_dialect(const PhysicalDevice& device);

// True if the parameters of `entry` come in global memory, because its arguments would have too many bytes.
bool by_reference(const PhysicalDevice& device, const ep_module_desc& desc, const ep_module_entry& entry);

// The bytes of struct ep_launch_words in the text of `desc`: the fault's slot and an offset per buffer.
uint64_t launch_words(const ep_module_desc& desc);

// Makes the whole text; messages count the module's own lines from 1. Returns an error text if the entries are wrong,
// or an empty string.
std::string make_source(const PhysicalDevice& device, const ep_module_desc& desc, std::string* out_source);

}  // namespace tenon::provider::opencl
