// Tactics: which loops and storage a kernel gets on a class of device.
#pragma once

#include "core/compiler/loop/ir.h"
#include "primitives/status/status.h"

namespace tenon::compiler {

// Loops for a CPU with vectors, of a kernel without loops. Axes that are one in memory become one. The items are
// positions of an axis that all stages share: rows, blocks of a flat loop, or blocks of columns. In an item each stage
// runs in as few loops as its readers allow, the innermost a vector loop over the axis along which most memory is
// contiguous. What is cheap is computed again in each loop that reads it, what is not stays in a row.
//
// The loops depend on the kernel alone, so the order in which a reduction adds does as well.
// Errors: what verify() refuses.
Status schedule_for_cpu(Kernel* kernel);

}  // namespace tenon::compiler
