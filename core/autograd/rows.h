// The gradient rows, in the order of the op table, and what hand-written gradients share. Internal.
#pragma once

#include <cstdint>

#include "core/autograd/gradient_row.h"

namespace tenon::autograd {

// Of the op with this id, in op_table() or of a library.
const GradientRow& gradient_row(uint16_t id);

}  // namespace tenon::autograd
