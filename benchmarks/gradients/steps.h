// Rows of whole training steps: a net with gradients of gradients.
#pragma once

#include <vector>

#include "benchmarks/report/row.h"
#include "core/tensor/tensor.h"

namespace tenon::bench {

std::vector<Row> step_rows(const Device& device);

}  // namespace tenon::bench
