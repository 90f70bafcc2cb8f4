// Work: how much a launch moves and computes, for reports that compare its time with what a machine can do. Internal.
#pragma once

#include <cstdint>

#include "core/interpreter/prepared.h"

namespace tenon {

struct Work {
  uint64_t bytes = 0;  // of its operands, each element counted once
  uint64_t flops = 0;  // of a product 2 per multiplication; of others 1 per element of the largest operand
};

// The work of one launch of `prepared`, which is native.
Work work_of(const Prepared& prepared);

}  // namespace tenon
