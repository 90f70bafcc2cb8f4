// Builds the text that the compiler gets: the provider's definitions, the constants, then the module's text.
#pragma once

#include <string>

#include "ep_api/ep_api.h"

namespace tenon::provider::cpu {

inline constexpr uint32_t most_buffers = 256;  // per entry

// The content of dialect_info except compiler and vector_bytes.
ep_dialect_info c_dialect();

// The struct behind EP_FAULT_PARAMETER. It keeps the first fault that a thread raises.
struct FaultSink {
  int32_t raised = 0;
  int32_t code = 0;
  int32_t operand = 0;
  int32_t reserved = 0;
  int64_t value = 0;
  int64_t limit = 0;
};

// Returns the complete text. In messages, the lines of the module's text count from 1, in a file named "kernel".
std::string source_of(const ep_module_desc& desc);

}  // namespace tenon::provider::cpu
