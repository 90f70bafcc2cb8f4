#include "providers/cpu/rows/row_primitive.h"

namespace tenon::provider::cpu {

RowPrimitive::RowPrimitive(const ep_device& on, const ep_primitive_desc& desc, int64_t rows_of_buffer)
    : desc_(desc), threads_(on.threads), rows_of_buffer_(rows_of_buffer) {}

uint64_t RowPrimitive::workspace(const ep_shape* shapes) const {
  return row_workspace(threads_, rows_of_buffer_, row_length(shapes));
}

}  // namespace tenon::provider::cpu
