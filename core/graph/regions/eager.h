// Control flow by calling the functions: in eager code, and in a prepared region under an interpreter that must see its
// ops. Internal to core/graph.
#pragma once

#include <span>

#include "core/ops/control.h"

namespace tenon::control {

// Calls the functions under the current interpreter. Errors: those of cond, while_loop and scan.
TensorList run(Kind kind, const Attributes& attributes, std::span<const Body> bodies, const TensorList& operands);
// Like run(), but hands the record to the current interpreter if that keeps control flow.
TensorList apply(Kind kind, const Attributes& attributes, std::span<const Body> bodies, const TensorList& operands);

// Errors: unsupported if one of the `results` of a recorded function wants a gradient, which would be lost.
void refuse_gradients(const OpInfo& op, const TensorList& results);

// The one element of `predicate`. Waits for it. Errors: invalid_argument if it is not one bool.
bool holds(Kind kind, const Tensor& predicate);
// The number of steps of a scan. Errors: invalid_argument if the operands have different lengths.
int64_t steps_of(const Attributes& attributes, const TensorList& operands);
// The operands of the step at `index`: the carry, the slices of the sliced operands, and the invariants.
TensorList step_operands(const Attributes& attributes, TensorList carry, const TensorList& operands, int64_t index);
// Errors: cancelled if a scope of the calling thread is cancelled.
void check_cancelled(Kind kind);

}  // namespace tenon::control
