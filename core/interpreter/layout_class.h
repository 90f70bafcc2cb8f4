// Layout class: the way of most ops. An elementwise op on a synchronous device is folded on the stack, and where the
// class of the folded call (op, dtypes, device, rank, and each stride as 0, 1 or more) has a kernel, that is launched.
// Nothing is looked at twice, nothing comes from the heap but the output. Internal.
#pragma once

#include "core/interpreter/prepared.h"

namespace tenon {

// Runs `call`, of an elementwise op, if its class has a kernel and nothing asks for attention. False: nothing happened.
// Throws what the launch failed with.
bool apply_by_class(const OpCall& call);

// From now on the class of `call`, which `prepared` is for, has its kernel, if that serves every shape of the class.
void learn_class(const OpCall& call, const Prepared& prepared);

}  // namespace tenon
