// The text that is compiled for a module.
#pragma once

#include <string>

#include "ep_api/ep_api.h"

struct DeviceFacts;

namespace tenon::provider::cuda {

inline constexpr uint32_t most_module_buffers = 64;  // per entry, including workspace and scratch

// The device's answer to dialect_info, without the compiler.
ep_dialect_info cuda_dialect(const DeviceFacts& facts);

// The whole text. Messages count the module's own lines from 1, in a file called "kernel".
std::string source_of(const ep_module_desc& desc);

}  // namespace tenon::provider::cuda
