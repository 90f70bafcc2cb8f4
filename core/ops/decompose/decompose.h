// The second rung of the ladder: a record computed by ops that a device is more likely to support.
#pragma once

#include "core/ops/op_call.h"

namespace tenon::ops {

// True if decompose() handles the record: its op has a decomposition, or the record has epilogues.
bool has_decomposition(const OpCall& call);

// True if elements of the results are sums, products or means over nothing: a reduction or product of tensors without
// elements, which no primitive takes (rule P04). decompose() fills them.
bool is_of_nothing(const OpCall& call);

// Computes `call` by other ops, which it passes to the current interpreter, and writes call.outputs. Errors:
// unsupported, if it has no decomposition; those of the ops.
void decompose(const OpCall& call);

}  // namespace tenon::ops
