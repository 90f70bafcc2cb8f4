// What a module's text becomes before it is compiled.
#pragma once

#include <string>

#include "ep_api/ep_api.h"

struct DeviceFacts;

namespace tenon::provider::cuda {

inline constexpr uint32_t most_module_buffers = 64;  // of an entry, workspace and scratch included

// What dialect_info says of the device, without the compiler.
ep_dialect_info cuda_dialect(const DeviceFacts& facts);

// The whole text. Its own lines count from 1 in messages, in a file called "kernel".
std::string source_of(const ep_module_desc& desc);

}  // namespace tenon::provider::cuda
