#include "providers/cpu/rows/row_primitive.h"

namespace tenon::provider::cpu {

RowPrimitive::RowPrimitive(const ep_device& on, const ep_primitive_desc& desc, int64_t rows_of_buffer)
    : desc_(desc), threads_(on.threads), rows_of_buffer_(rows_of_buffer) {}

ep_status RowPrimitive::workspace(const ep_shape* shapes, uint64_t* out_bytes) const {
  *out_bytes = row_workspace(threads_, rows_of_buffer_, row_length(shapes));
  return EP_STATUS_OK;
}

}  // namespace tenon::provider::cpu
