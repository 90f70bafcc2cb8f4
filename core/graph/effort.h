// Effort: estimates the work of an op from its shapes alone. Internal.
#pragma once

#include <span>

#include "core/ops/op_call.h"

namespace tenon::graph {

// Estimated number of operations. Matmuls and convolutions count two per multiplication. Other ops count, for each
// element of their largest argument or result, as much as a function such as exp or tanh. `inputs`: an absent input has
// no axes. An axis of length 0 has an unknown length.
double flops_of(const OpInfo& op, std::span<const Dims> inputs, const Dims& made);

}  // namespace tenon::graph
