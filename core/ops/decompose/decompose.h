// The second rung of the ladder: a record as ops that a device more likely has.
#pragma once

#include "core/ops/op_call.h"

namespace tenon::ops {

// True if decompose() knows the record: its op has a decomposition, or the record has epilogues.
bool has_decomposition(const OpCall& call);

// True if the results of `call` have elements that are sums, products or means of none: a reduction or a product of
// tensors without elements, which no primitive takes (rule P04). decompose() fills them.
bool is_of_nothing(const OpCall& call);

// Computes `call` by other ops, which come to the current interpreter, and writes call.outputs.
// Errors: unsupported, if it is made of nothing simpler; those of the ops.
void decompose(const OpCall& call);

}  // namespace tenon::ops
