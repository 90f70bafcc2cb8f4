// What a module's text becomes before it is compiled: the provider's words in front, the constants, the text.
#pragma once

#include <string>

#include "ep_api/ep_api.h"

namespace tenon::provider::cpu {

inline constexpr uint32_t most_buffers = 256;  // of an entry

// What dialect_info says, without compiler and vector_bytes.
ep_dialect_info c_dialect();

// What EP_FAULT_PARAMETER declares. The first fault that any thread raises is kept.
struct FaultSink {
  int32_t raised = 0;
  int32_t code = 0;
  int32_t operand = 0;
  int32_t reserved = 0;
  int64_t value = 0;
  int64_t limit = 0;
};

// The whole text. Its own lines count from 1 in messages, in a file called "kernel".
std::string source_of(const ep_module_desc& desc);

}  // namespace tenon::provider::cpu
