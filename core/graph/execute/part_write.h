// Part writes: steps that overwrite a part of their first input (slice_scatter, select_scatter). Such a step copies its
// first input and then copies its second input into the part. If the result is in the memory of the first input, the
// first copy is left out. Internal to core/graph/execute.
#pragma once

#include "core/graph/execute/executable.h"

namespace tenon::graph {

struct PartWrite {
  Step whole;           // copies the first input
  Step part;            // copies the second input into the part; uses the primitive of the step (Step::prepared)
  uint64_t offset = 0;  // offset of the part in the result, in bytes
};

// Prepares the last step of `program` if it is a part write and its device can do it with two copies of one launch
// each. Otherwise the step runs by itself. `seen`: the value for the part; 0: makes a new one.
void prepare_part_write(Executable* program, uint32_t seen = 0);

}  // namespace tenon::graph
