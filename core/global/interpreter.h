// The interpreter of global tensors: it chooses how the tensors of a call are spread, moves elements where they have to
// be, and lets the eager interpreter compute the part of this rank. Internal.
#pragma once

#include "core/global/placement.h"
#include "core/ops/op_call.h"

namespace tenon::global {

// One serves all threads. It gets the calls of which a tensor is global.
Interpreter& global_interpreter();

// Brings a copied view up to date, if what it is a view of was written since. Others stay as they are.
void refresh(const Tensor& tensor);

// Carries out a composite that has a tensor on `placement`: call.op->compose(call), in which tensors that it makes
// itself are the same on every rank. Errors: invalid_argument (an argument is a local tensor, of more than a number).
void compose_global(const OpCall& call, const Placement& placement);

}  // namespace tenon::global
