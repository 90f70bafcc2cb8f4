// The rules of kinds that sort, scan or find elements.
#include "primitives/descriptor/check.h"
#include "primitives/descriptor/fields.h"
#include "primitives/text/format.h"

namespace tenon::descriptor {
namespace {

Status is_bool_attribute(const Desc& desc, std::string_view name, int32_t value) {
  if (value == 0 || value == 1) return {};
  return wrong(desc, "{} is {}; it may be 0 or 1.", name, value);
}

// Checks that DST is like `like`, and DST_INDICES too but of dtype i64. One of the two may be absent. `like` has SRC's
// role for messages.
Status check_values_and_positions(const Desc& desc, const Operand& like) {
  const Operand* values = find_operand(desc, EP_ROLE_DST);
  const Operand* positions = find_operand(desc, EP_ROLE_DST_INDICES);
  if (values == nullptr && positions == nullptr) return wrong(desc, "operands 'dst' and 'dst_indices' are missing.");
  if (values != nullptr) {
    TENON_RETURN_IF_ERROR(same_type(desc, *values, like));
    TENON_RETURN_IF_ERROR(same_dims(desc, *values, like));
  }
  if (positions == nullptr) return {};
  TENON_RETURN_IF_ERROR(is_type(desc, *positions, DType::i64));
  return same_dims(desc, *positions, like);
}

// Ok if `operand` is an i64 tensor of shape [n].
Status is_list(const Desc& desc, const Operand& operand, int64_t n) {
  TENON_RETURN_IF_ERROR(is_type(desc, operand, DType::i64));
  if (operand.rank == 1 && agree(operand.dims[0], n)) return {};
  return wrong(desc, "'{}' has shape {} but must have shape [{}].", table::role_name(operand.role), dims_of(operand),
               n);
}

// The product of all dims, or EP_ANY.
int64_t elements_of(const Operand& operand) {
  int64_t product = 1;
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    if (operand.dims[axis] == EP_ANY) return EP_ANY;
    product *= operand.dims[axis];
  }
  return product;
}

}  // namespace

Status check_scan(const Desc& desc) {
  const ep_scan_attributes& at = desc.attributes.scan;
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& dst = get(desc, EP_ROLE_DST);
  const Operand* positions = find_operand(desc, EP_ROLE_DST_INDICES);
  const bool selects = at.op == EP_SCAN_MAX || at.op == EP_SCAN_MIN;
  TENON_RETURN_IF_ERROR(axis_in_rank(desc, at.axis, src.rank));
  TENON_RETURN_IF_ERROR(is_bool_attribute(desc, "exclusive", at.exclusive));
  TENON_RETURN_IF_ERROR(is_bool_attribute(desc, "reverse", at.reverse));
  TENON_RETURN_IF_ERROR(same_type(desc, dst, src));
  TENON_RETURN_IF_ERROR(same_dims(desc, dst, src));
  if (at.op == EP_SCAN_LOG_SUM_EXP) TENON_RETURN_IF_ERROR(is_float(desc, src));
  if (!selects && !table::in_domain(table::Domain::NUMERIC, type_of(src))) {
    return wrong(desc, "{} is not defined on {}.", value_text(FieldType::SCAN, at.op), dtype_name(type_of(src)));
  }
  if (positions == nullptr) return {};
  if (!selects || at.exclusive != 0) return wrong(desc, "'dst_indices' is for max and min that are not exclusive.");
  TENON_RETURN_IF_ERROR(is_type(desc, *positions, DType::i64));
  return same_dims(desc, *positions, src);
}

Status check_sort(const Desc& desc) {
  const ep_sort_attributes& at = desc.attributes.sort;
  const Operand& src = get(desc, EP_ROLE_SRC);
  TENON_RETURN_IF_ERROR(axis_in_rank(desc, at.axis, src.rank));
  TENON_RETURN_IF_ERROR(is_bool_attribute(desc, "descending", at.descending));
  return check_values_and_positions(desc, src);
}

Status check_top_k(const Desc& desc) {
  const ep_top_k_attributes& at = desc.attributes.top_k;
  const Operand& src = get(desc, EP_ROLE_SRC);
  TENON_RETURN_IF_ERROR(axis_in_rank(desc, at.axis, src.rank));
  TENON_RETURN_IF_ERROR(is_bool_attribute(desc, "largest", at.largest));
  const Operand* first = find_operand(desc, EP_ROLE_DST);
  if (first == nullptr) first = find_operand(desc, EP_ROLE_DST_INDICES);
  Operand like = src;
  if (first != nullptr && first->rank == src.rank) {
    const int64_t k = first->dims[at.axis];
    const int64_t length = src.dims[at.axis];
    if (k != EP_ANY && length != EP_ANY && k > length) {
      return wrong(desc, "'{}' has {} elements along axis {}, but 'src' has {}.", table::role_name(first->role), k,
                   at.axis, length);
    }
    like.dims[at.axis] = k;
  }
  return check_values_and_positions(desc, like);
}

Status check_unique(const Desc& desc) {
  const ep_unique_attributes& at = desc.attributes.unique;
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& dst = get(desc, EP_ROLE_DST);
  if (at.axis != -1) TENON_RETURN_IF_ERROR(axis_in_rank(desc, at.axis, src.rank));
  TENON_RETURN_IF_ERROR(same_type(desc, dst, src));
  const int64_t n = at.axis == -1 ? elements_of(src) : src.dims[at.axis];
  if (at.axis != -1) TENON_RETURN_IF_ERROR(same_dims(desc, dst, src));
  if (at.axis == -1 && (dst.rank != 1 || !agree(dst.dims[0], n))) {
    return wrong(desc, "'dst' has shape {} but must have shape [{}].", dims_of(dst), n);
  }
  TENON_RETURN_IF_ERROR(is_list(desc, get(desc, EP_ROLE_DST_COUNT), 1));
  for (int32_t role : {EP_ROLE_DST_INDICES, EP_ROLE_DST_INVERSE, EP_ROLE_DST_COUNTS}) {
    const Operand* list = find_operand(desc, role);
    if (list != nullptr) TENON_RETURN_IF_ERROR(is_list(desc, *list, n));
  }
  return {};
}

Status check_nonzero(const Desc& desc) {
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& dst = get(desc, EP_ROLE_DST);
  TENON_RETURN_IF_ERROR(is_type(desc, dst, DType::i64));
  if (dst.rank != 2 || !agree(dst.dims[1], src.rank)) {
    return wrong(desc, "'dst' has shape {} but must have rank 2 and {} columns, the rank of 'src'.", dims_of(dst),
                 src.rank);
  }
  return is_list(desc, get(desc, EP_ROLE_DST_COUNT), 1);
}

Status check_one_hot(const Desc& desc) {
  const int32_t axis = desc.attributes.one_hot.axis;
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& dst = get(desc, EP_ROLE_DST);
  TENON_RETURN_IF_ERROR(axis_in_rank(desc, axis, dst.rank));
  if (type_of(src) != DType::i32 && type_of(src) != DType::i64)
    return wrong(desc, "'src' must be i32 or i64, not {}.", dtype_name(type_of(src)));
  bool fits = dst.rank == src.rank + 1;
  for (int32_t i = 0; fits && i < src.rank; ++i) fits = agree(src.dims[i], dst.dims[i < axis ? i : i + 1]);
  if (fits) return {};
  return wrong(desc, "'dst' has shape {}, which is not that of 'src' {} with one more axis at {}.", dims_of(dst),
               dims_of(src), axis);
}

}  // namespace tenon::descriptor
