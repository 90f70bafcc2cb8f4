// The rules of recurrent, as stated in ep_api.h above its attributes.
#include <cmath>

#include "primitives/descriptor/check.h"

namespace tenon::descriptor {
namespace {

// Ok if the operand `role` is absent, or has these dims and the dtype of SRC.
Status is_state(const Desc& desc, int32_t role, const Dims& dims) {
  const Operand* operand = find_operand(desc, role);
  if (operand == nullptr) return {};
  TENON_RETURN_IF_ERROR(same_type(desc, *operand, get(desc, EP_ROLE_SRC)));
  return has_dims(desc, *operand, dims);
}

Status check_attributes(const Desc& desc, const ep_recurrent_attributes& at) {
  constexpr int32_t known = EP_RECURRENT_FLAG_REVERSE | EP_RECURRENT_FLAG_LINEAR_BEFORE_RESET |
                            EP_RECURRENT_FLAG_COUPLED | EP_RECURRENT_FLAG_TORCH;
  if ((at.flags & ~known) != 0) return unsupported(desc, "has flags {}, of which some are unknown.", at.flags);
  const bool lstm = at.cell == EP_CELL_LSTM;
  if ((at.flags & EP_RECURRENT_FLAG_LINEAR_BEFORE_RESET) != 0 && at.cell != EP_CELL_GRU) {
    return wrong(desc, "has the flag linear_before_reset, which only gru takes.");
  }
  if ((at.flags & EP_RECURRENT_FLAG_COUPLED) != 0 && !lstm) {
    return wrong(desc, "has the flag coupled, which only lstm takes.");
  }
  if (!(at.clip >= 0) || !std::isfinite(at.clip)) {
    return wrong(desc, "clip is {}; it must be at least 0 and finite.", at.clip);
  }
  for (int32_t role : {EP_ROLE_PEEPHOLE, EP_ROLE_CELL, EP_ROLE_DST_CELL}) {
    if (!lstm && find_operand(desc, role) != nullptr) {
      return wrong(desc, "'{}' is for lstm only.", table::role_name(role));
    }
  }
  return {};
}

}  // namespace

Status check_recurrent(const Desc& desc) {
  const ep_recurrent_attributes& at = desc.attributes.recurrent;
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& recurrent = get(desc, EP_ROLE_RECURRENT_WEIGHT);
  TENON_RETURN_IF_ERROR(check_attributes(desc, at));
  if (src.rank != 3) return wrong(desc, "'src' has rank {} but must have 3 (steps, batch, inputs).", src.rank);
  if (recurrent.rank != 2) return wrong(desc, "'recurrent_weight' has rank {} but must have 2.", recurrent.rank);
  TENON_RETURN_IF_ERROR(is_float(desc, src));
  const int64_t steps = src.dims[0];
  const int64_t batch = src.dims[1];
  const int64_t width = recurrent.dims[1];
  const int64_t gates = at.cell == EP_CELL_LSTM ? 4 : at.cell == EP_CELL_GRU ? 3 : 1;
  const int64_t rows = width == EP_ANY ? EP_ANY : gates * width;
  TENON_RETURN_IF_ERROR(is_state(desc, EP_ROLE_DST, {steps, batch, width}));
  TENON_RETURN_IF_ERROR(is_state(desc, EP_ROLE_WEIGHT, {rows, src.dims[2]}));
  TENON_RETURN_IF_ERROR(is_state(desc, EP_ROLE_RECURRENT_WEIGHT, {rows, width}));
  TENON_RETURN_IF_ERROR(is_state(desc, EP_ROLE_BIAS, {rows}));
  TENON_RETURN_IF_ERROR(is_state(desc, EP_ROLE_RECURRENT_BIAS, {rows}));
  TENON_RETURN_IF_ERROR(is_state(desc, EP_ROLE_PEEPHOLE, {width == EP_ANY ? EP_ANY : 3 * width}));
  for (int32_t role : {EP_ROLE_HIDDEN, EP_ROLE_CELL, EP_ROLE_DST_HIDDEN, EP_ROLE_DST_CELL}) {
    TENON_RETURN_IF_ERROR(is_state(desc, role, {batch, width}));
  }
  const Operand* lengths = find_operand(desc, EP_ROLE_LENGTHS);
  if (lengths == nullptr) return {};
  if (type_of(*lengths) != DType::i32 && type_of(*lengths) != DType::i64) {
    return wrong(desc, "'lengths' must be i32 or i64, not {}.", dtype_name(type_of(*lengths)));
  }
  return has_dims(desc, *lengths, {batch});
}

}  // namespace tenon::descriptor
