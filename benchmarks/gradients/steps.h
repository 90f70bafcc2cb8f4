// Rows of whole training steps: what a limit of memory costs a transformer, and a net with gradients of its gradients.
#pragma once

#include <vector>

#include "benchmarks/report/row.h"
#include "core/tensor/tensor.h"

namespace tenon::bench {

// Measures the memory of the transformer's steps at once, so it comes before rows that take more.
std::vector<Row> step_rows(const Device& device);

}  // namespace tenon::bench
