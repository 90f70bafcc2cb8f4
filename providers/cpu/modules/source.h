// What a module's text becomes before it is compiled: the provider's words in front, the constants, the text.
#pragma once

#include <string>

#include "ep_api/ep_api.h"

namespace tenon::provider::cpu {

// The limits that dialect_info states.
inline constexpr uint32_t most_buffers = 256;
inline constexpr uint64_t most_parameter_bytes = 65536;
inline constexpr uint64_t most_local_bytes = uint64_t{4} << 20;

// What EP_FAULT_PARAMETER declares. The first fault that any thread raises is kept.
struct FaultSink {
  int32_t raised = 0;
  int32_t code = 0;
  int32_t operand = 0;
  int32_t reserved = 0;
  int64_t value = 0;
  int64_t limit = 0;
};

// Why `desc` cannot be compiled here: INVALID_ARGUMENT for what no description may say, UNSUPPORTED for what is beyond
// this device. OK: nothing is wrong.
ep_status check_module(const ep_host* host, const ep_module_desc& desc, ep_error** error);

// `text` for a message: at most 64 characters, and none that is not printed.
std::string shown(ep_string text);

// The whole text. Its own lines count from 1 in messages, in a file called "kernel".
std::string source_of(const ep_module_desc& desc);

}  // namespace tenon::provider::cpu
