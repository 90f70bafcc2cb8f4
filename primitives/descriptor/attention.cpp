// The rules of attention and rotary, as stated in ep_api.h above their attributes.
#include <algorithm>
#include <initializer_list>

#include "primitives/descriptor/check.h"

namespace tenon::descriptor {
namespace {

Status has_shape(const Desc& desc, const Operand& operand, std::initializer_list<int64_t> dims) {
  const bool same =
      operand.rank == static_cast<int32_t>(dims.size()) &&
      std::equal(dims.begin(), dims.end(), operand.dims, [](int64_t a, int64_t b) { return agree(a, b); });
  if (same) return {};
  return wrong(desc, "'{}' has shape {} but must have shape {}.", table::role_name(operand.role), dims_of(operand),
               Dims({dims.begin(), dims.size()}));
}

Status is_index(const Desc& desc, const Operand& operand) {
  if (type_of(operand) == DType::i32 || type_of(operand) == DType::i64) return {};
  return wrong(desc, "'{}' must be i32 or i64, not {}.", table::role_name(operand.role), dtype_name(type_of(operand)));
}

Status check_attention_shapes(const Desc& desc) {
  const Operand& query = get(desc, EP_ROLE_SRC);
  const Operand& key = get(desc, EP_ROLE_SRC_B);
  const Operand& value = get(desc, EP_ROLE_SRC_C);
  for (const Operand* operand : {&query, &key, &value}) {
    if (operand->rank == 4) continue;
    return wrong(desc, "'{}' has rank {}; it must be 4.", table::role_name(operand->role), operand->rank);
  }
  const int64_t batch = query.dims[0];
  const int64_t heads = query.dims[1];
  const int64_t groups = key.dims[1];
  TENON_RETURN_IF_ERROR(has_shape(desc, key, {batch, EP_ANY, EP_ANY, query.dims[3]}));
  TENON_RETURN_IF_ERROR(has_shape(desc, value, {batch, groups, key.dims[2], EP_ANY}));
  if (heads != EP_ANY && groups != EP_ANY && heads % groups != 0) {
    return wrong(desc, "{} heads of 'src' are not a multiple of {} heads of 'src_b'.", heads, groups);
  }
  TENON_RETURN_IF_ERROR(has_shape(desc, get(desc, EP_ROLE_DST), {batch, heads, query.dims[2], value.dims[3]}));
  if (const Operand* bias = find_operand(desc, EP_ROLE_BIAS)) {
    TENON_RETURN_IF_ERROR(has_shape(desc, *bias, {batch, heads, query.dims[2], key.dims[2]}));
  }
  if (const Operand* lengths = find_operand(desc, EP_ROLE_LENGTHS)) {
    TENON_RETURN_IF_ERROR(has_shape(desc, *lengths, {batch}));
  }
  if (const Operand* log_sum = find_operand(desc, EP_ROLE_LOG_SUM)) {
    TENON_RETURN_IF_ERROR(has_shape(desc, *log_sum, {batch, heads, query.dims[2], 1}));
  }
  return {};
}

}  // namespace

Status check_attention(const Desc& desc) {
  const ep_attention_attributes& at = desc.attributes.attention;
  const Operand& query = get(desc, EP_ROLE_SRC);
  if (at.before < -1 || at.after < -1) {
    return wrong(desc, "before ({}) and after ({}) must be at least -1.", at.before, at.after);
  }
  TENON_RETURN_IF_ERROR(check_attention_shapes(desc));
  TENON_RETURN_IF_ERROR(is_float(desc, query));
  for (int32_t role : {EP_ROLE_DST, EP_ROLE_SRC_B, EP_ROLE_SRC_C}) {
    TENON_RETURN_IF_ERROR(same_type(desc, get(desc, role), query));
  }
  const Operand* bias = find_operand(desc, EP_ROLE_BIAS);
  if (bias != nullptr && type_of(*bias) != DType::boolean) TENON_RETURN_IF_ERROR(same_type(desc, *bias, query));
  const Operand* lengths = find_operand(desc, EP_ROLE_LENGTHS);
  if (lengths != nullptr) TENON_RETURN_IF_ERROR(is_index(desc, *lengths));
  const Operand* log_sum = find_operand(desc, EP_ROLE_LOG_SUM);
  return log_sum == nullptr ? Status() : is_type(desc, *log_sum, statistics_type(query));
}

Status check_rotary(const Desc& desc) {
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& cosines = get(desc, EP_ROLE_SRC_B);
  const Operand& sines = get(desc, EP_ROLE_SRC_C);
  const Operand* indices = find_operand(desc, EP_ROLE_INDICES);
  if (src.rank != 4) return wrong(desc, "'src' has rank {}; it must be 4.", src.rank);
  TENON_RETURN_IF_ERROR(is_float(desc, src));
  TENON_RETURN_IF_ERROR(same_type(desc, get(desc, EP_ROLE_DST), src));
  TENON_RETURN_IF_ERROR(same_dims(desc, get(desc, EP_ROLE_DST), src));
  if (indices != nullptr) {
    TENON_RETURN_IF_ERROR(is_index(desc, *indices));
    TENON_RETURN_IF_ERROR(has_shape(desc, *indices, {src.dims[0], src.dims[2]}));
    TENON_RETURN_IF_ERROR(has_shape(desc, cosines, {EP_ANY, EP_ANY}));
  } else {
    TENON_RETURN_IF_ERROR(has_shape(desc, cosines, {src.dims[0], src.dims[1], src.dims[2], EP_ANY}));
  }
  TENON_RETURN_IF_ERROR(same_dims(desc, sines, cosines));
  if (type_of(cosines) != DType::f32) TENON_RETURN_IF_ERROR(same_type(desc, cosines, src));
  TENON_RETURN_IF_ERROR(same_type(desc, sines, cosines));
  const int64_t pairs = cosines.dims[cosines.rank - 1];
  if (pairs == EP_ANY || src.dims[3] == EP_ANY || 2 * pairs <= src.dims[3]) return {};
  return wrong(desc, "{} pairs do not fit in rows of {} elements.", pairs, src.dims[3]);
}

}  // namespace tenon::descriptor
