// The head of an entry in OpenCL C: from its name to the `{`.
#pragma once

#include <string>

#include "ep_api/ep_api.h"

namespace tenon::provider::opencl {

// Rewrites the head of `entry` in `text` without changing line numbers. A struct `ep_launch_words` follows the last
// parameter. The body begins by adding the offset in bytes (`ep_words.offsets[i]`) to each buffer, and by setting
// `ep_faults`, if there are faults, to the slot of the launch (`ep_words.slot`). With `by_reference`, the parameters
// come as a pointer to global memory, and the body begins with a copy of them. Returns an error text, or an empty
// string.
std::string rewrite_head(const ep_module_entry& entry, bool by_reference, std::string* text);

// The number of arguments before the parameters of an entry: buffers, workspace and scratch.
uint32_t buffers_of(const ep_module_entry& entry);

}  // namespace tenon::provider::opencl
