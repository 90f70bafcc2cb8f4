// Maps: kernels that compute each output element from the input elements at the same position.
#pragma once

#include <cstdint>
#include <vector>

#include "core/codegen/loop/ir.h"

namespace tenon::codegen {

struct MapFacts {
  // All buffers with more than one element have the same number of elements, and each point of the kernel reads and
  // writes them at one position. So if all inputs have the same other order, the results have that order too.
  bool is_map = false;
  // By output: a bit mask of the inputs that it may overwrite, because each element is read before it is written.
  std::vector<uint64_t> over;
};

// The facts of a scheduled kernel. Pure.
MapFacts map_facts(const Kernel& kernel);

}  // namespace tenon::codegen
