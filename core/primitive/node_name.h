// NodeName: names one part of a program that runs as a whole, for errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device/call_site.h"

namespace tenon {

struct NodeName {
  OpName op;
  uint64_t operand_inputs = 0;  // as in vm::CallNote
  std::vector<int64_t> inputs;  // as in vm::CallNote
  std::string label;            // label of the part: "node 14 (/encoder/Gather)"; may be empty
};

}  // namespace tenon
