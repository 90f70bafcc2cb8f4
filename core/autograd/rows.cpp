#include "core/autograd/rows.h"

#include <iterator>

#include "core/ops/gradients.h"
#include "core/ops/libraries.h"

namespace tenon::autograd {

const GradientRow& gradient_row(uint16_t id) {
  if (id < std::size(gradient_rows)) [[likely]]
    return gradient_rows[id];
  const LibraryRow row = library_row(id);
  return row.library->gradients[row.index];
}

}  // namespace tenon::autograd
