// Probing: would every part of a decomposition run natively? Nothing is computed. Internal.
#pragma once

#include "core/ops/op_call.h"

namespace tenon {

// Ok if all primitives that call.op->decompose would use on the device of `call` are native there; else unsupported,
// with the first part refused and why. May create (and cache) the primitives.
Status probe_decomposition(const OpCall& call);

}  // namespace tenon
