#include "core/autograd/rows.h"

#include "core/ops/gradients.h"

namespace tenon::autograd {

const GradientRow& gradient_row(uint16_t id) { return gradient_rows[id]; }

}  // namespace tenon::autograd
