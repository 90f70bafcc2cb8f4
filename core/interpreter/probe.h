// Probing: finds out whether every part of a decomposition would run natively. Computes nothing. Internal.
#pragma once

#include "core/ops/op_call.h"

namespace tenon {

// Ok if all primitives that call.op->decompose would use on the device of `call` are native there; else unsupported,
// with the first refused part and the reason. May create (and cache) the primitives.
Status probe_decomposition(const OpCall& call);

}  // namespace tenon
