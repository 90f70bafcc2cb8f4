// The interpreter of global tensors: it chooses the layouts of a call's tensors, moves elements as needed, and lets the
// eager interpreter compute this rank's part. Internal.
#pragma once

#include "core/global/placement.h"
#include "core/ops/op_call.h"

namespace tenon::global {

// One object serves all threads. It gets the calls that have a global tensor.
Interpreter& global_interpreter();

// Updates a copied view if its base was written since. Does nothing for other tensors.
void refresh(const Tensor& tensor);

// Carries out a composite that has a tensor on `placement`: call.op->compose(call). Tensors that the composite makes
// are the same on every rank. Errors: invalid_argument (an argument is a local tensor with more than one element).
void compose_global(const OpCall& call, const Placement& placement);

}  // namespace tenon::global
