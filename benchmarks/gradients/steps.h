// Rows of whole training steps: that of a net with gradients of its gradients.
#pragma once

#include <vector>

#include "benchmarks/report/row.h"
#include "core/tensor/tensor.h"

namespace tenon::bench {

std::vector<Row> step_rows(const Device& device);

}  // namespace tenon::bench
