// Maps: kernels that compute each element of their results from the elements at the same place of their inputs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/codegen/loop/ir.h"

namespace tenon::codegen {

struct MapFacts {
  // All buffers of more than one element have equally many, and each point of the kernel reads and writes them at one
  // place. So inputs that lie in another order, all alike, give results in that order.
  bool is_map = false;
  // By output: as bits, the inputs over which it may be written, since at each place they are read before.
  std::vector<uint64_t> over;
};

// Of a kernel that has loops. Pure.
MapFacts map_facts(const Kernel& kernel);

}  // namespace tenon::codegen
