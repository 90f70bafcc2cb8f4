// Control flow whose functions are called: what eager code does, and what a prepared region does where an interpreter
// must see its ops. Internal to core/graph.
#pragma once

#include <span>

#include "core/ops/control.h"

namespace tenon::control {

// Calls the functions under the current interpreter. Errors: those of cond, while_loop and scan.
TensorList run(Kind kind, const Attributes& attributes, std::span<const Body> bodies, const TensorList& operands);
// The same, or under an interpreter that keeps control flow its record.
TensorList apply(Kind kind, const Attributes& attributes, std::span<const Body> bodies, const TensorList& operands);

// Errors: unsupported, if one of the `results` of a recorded function wants a gradient, which it would lose.
void refuse_gradients(const OpInfo& op, const TensorList& results);

// The one element of `predicate`. Waits for it. Errors: invalid_argument: it is not one bool.
bool holds(Kind kind, const Tensor& predicate);
// The number of steps of a scan. Errors: invalid_argument: operands of different lengths.
int64_t steps_of(const Attributes& attributes, const TensorList& operands);
// The slices of the sliced operands at `index`, between the carry and the invariants behind it.
TensorList step_operands(const Attributes& attributes, TensorList carry, const TensorList& operands, int64_t index);
// Errors: cancelled, if a scope of the calling thread is.
void check_cancelled(Kind kind);

}  // namespace tenon::control
