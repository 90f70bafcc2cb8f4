// Work: the bytes and operations of a launch, for reports that compare its time with the speed of a machine. Internal.
#pragma once

#include <cstdint>

#include "core/interpreter/prepared.h"

namespace tenon {

struct Work {
  uint64_t bytes = 0;  // bytes of its operands, each element counted once
  uint64_t flops = 0;  // for a product, 2 per multiplication; otherwise 1 per element of the largest operand
};

// The work of one launch of `prepared`, which is native.
Work work_of(const Prepared& prepared);

}  // namespace tenon
