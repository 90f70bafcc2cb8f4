// Part writes: steps that write a part of what they read (slice_scatter, select_scatter). Such a step is a copy of its
// first input and a copy of its second one into the part. Where the result lies over the first input, the first copy is
// left out. Internal to core/graph/execute.
#pragma once

#include "core/graph/execute/executable.h"

namespace tenon::graph {

struct PartWrite {
  Step whole;           // copies the first input
  Step part;            // copies the second input into the part; its kernel is that of the step (Step::prepared)
  uint64_t offset = 0;  // of the part in the result, in bytes
};

// Prepares the last step of `program` if it writes a part and its device can do that by two copies of one launch each.
// Else the step runs by itself. `seen`: the value that stands for the part; 0: a new one.
void prepare_part_write(Executable* program, uint32_t seen = 0);

}  // namespace tenon::graph
