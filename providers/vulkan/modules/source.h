// The text that is compiled for a module, and the location of its arguments.
#pragma once

#include <string>

#include "ep_api/ep_api.h"
#include "providers/vulkan/queue/context.h"

namespace tenon::provider::vulkan {

// Where an entry finds buffers and parameters. Push constants begin with the address of the fault slot.
enum class Placement : uint8_t {
  pushed,      // parameters and buffers are push constants
  parameters,  // parameters are in memory; their address follows the buffers in push constants
  all,         // both are in memory, buffers first; their address is a push constant
};

Placement placement_of(const ep_module_entry& entry);
// The number of buffers of an entry, with workspace and scratch; at least 1, since GLSL has no empty arrays.
uint32_t words_of(const ep_module_entry& entry);

// The device's answer to dialect_info, without the compiler.
ep_dialect_info glsl_dialect(const Context& context);

// The whole text. Messages count the module's own lines from 1.
std::string source_of(const Context& context, const ep_module_desc& desc);

}  // namespace tenon::provider::vulkan
