// The head of an entry in OpenCL C: from its name to the `{`.
#pragma once

#include <string>

#include "ep_api/ep_api.h"

namespace tenon::provider::opencl {

// Rewrites the head of `entry` in `text`, on the lines where it stands. A struct `ep_launch_words` follows the last
// parameter, and the body begins by moving each buffer by its offset in bytes (`ep_words.offsets[i]`), and
// `ep_faults`, where there are faults, to the slot of the launch (`ep_words.slot`). `by_reference`: the parameters come
// as a pointer to global memory, of which the body begins with a copy. Returns what is wrong, or an empty string.
std::string rewrite_head(const ep_module_entry& entry, bool by_reference, std::string* text);

// The arguments of an entry in front of its parameters: buffers, workspace and scratch.
uint32_t buffers_of(const ep_module_entry& entry);

}  // namespace tenon::provider::opencl
