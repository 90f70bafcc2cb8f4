// Effort: how much an op computes, told from shapes alone, for estimates of time. Internal.
#pragma once

#include <span>

#include "core/ops/op_call.h"

namespace tenon::graph {

// Operations on numbers: of a product two per multiplication; of others those of a map like exp or tanh for each
// element of the largest argument or result. `inputs`: an absent one has no axes. An axis of length 0 is one whose
// length nobody knows.
double flops_of(const OpInfo& op, std::span<const Dims> inputs, const Dims& made);

}  // namespace tenon::graph
