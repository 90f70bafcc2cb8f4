// Layout class: the path of most ops. An elementwise op on a synchronous device is folded on the stack. If the class of
// the folded call (op, dtypes, device, rank, and each stride as 0, 1 or more) has a kernel, that kernel is launched.
// Only the output comes from the heap. Internal.
#pragma once

#include "core/interpreter/prepared.h"

namespace tenon {

// Runs `call`, of an elementwise op, if its class has a kernel and process::attention is 0. False: nothing happened.
// Throws the failure of the launch.
bool apply_by_class(const OpCall& call);

// Gives the class of `call` the kernel of `prepared`, which was made for `call`, if that kernel serves every shape of
// the class.
void learn_class(const OpCall& call, const Prepared& prepared);

}  // namespace tenon
