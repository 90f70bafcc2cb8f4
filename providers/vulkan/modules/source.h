// What a module's text becomes before it is compiled, and where its arguments lie.
#pragma once

#include <string>

#include "ep_api/ep_api.h"
#include "providers/vulkan/queue/context.h"

namespace tenon::provider::vulkan {

// Where an entry finds buffers and parameters. In front of them, in push constants, stands the address of the fault's
// slot.
enum class Placement : uint8_t {
  pushed,      // both are push constants
  parameters,  // parameters are in memory; their address follows the buffers in push constants
  all,         // both are in memory, buffers first; its address is a push constant
};

Placement placement_of(const ep_module_entry& entry);
// The buffers of an entry with workspace and scratch; at least 1, since GLSL has no empty arrays.
uint32_t words_of(const ep_module_entry& entry);

// What dialect_info says of the device, without the compiler.
ep_dialect_info glsl_dialect(const Context& context);

// The whole text. Its own lines count from 1 in messages.
std::string source_of(const Context& context, const ep_module_desc& desc);

}  // namespace tenon::provider::vulkan
