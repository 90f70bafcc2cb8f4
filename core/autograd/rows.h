// The gradient rows, in the order of the op table, and helpers of hand-written gradients. Internal.
#pragma once

#include <cstdint>

#include "core/autograd/gradient_row.h"

namespace tenon::autograd {

// The row of the op with this id, from op_table() or a library.
const GradientRow& gradient_row(uint16_t id);

}  // namespace tenon::autograd
