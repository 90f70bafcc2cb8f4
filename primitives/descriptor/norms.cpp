// The rules of norms, as stated in ep_api.h above their attributes, and the checks shared with their gradients.
#include "primitives/descriptor/check.h"

namespace tenon::descriptor {

Status is_list(const Desc& desc, int32_t role, const Operand& src, int32_t axis) {
  const Operand* operand = find_operand(desc, role);
  if (operand == nullptr) return {};
  TENON_RETURN_IF_ERROR(is_float(desc, *operand));
  if (operand->rank == 1 && agree(operand->dims[0], src.dims[axis])) return {};
  return wrong(desc, "'{}' has shape {} but must have shape [{}].", table::role_name(role), dims_of(*operand),
               src.dims[axis]);
}

Status is_normalised(const Desc& desc, int32_t role, const Operand& src, int32_t axis) {
  const Operand* operand = find_operand(desc, role);
  if (operand == nullptr) return {};
  TENON_RETURN_IF_ERROR(is_float(desc, *operand));
  bool same = operand->rank == src.rank - axis;
  for (int32_t i = 0; same && i < operand->rank; ++i) same = agree(operand->dims[i], src.dims[axis + i]);
  if (same) return {};
  return wrong(desc, "'{}' has shape {} but must have the dims of {} from axis {} on.", table::role_name(role),
               dims_of(*operand), dims_of(src), axis);
}

Status are_like_source(const Desc& desc, int32_t axis, std::initializer_list<int32_t> roles) {
  const Operand& src = get(desc, EP_ROLE_SRC);
  TENON_RETURN_IF_ERROR(axis_in_rank(desc, axis, src.rank));
  TENON_RETURN_IF_ERROR(is_float(desc, src));
  for (int32_t role : roles) {
    TENON_RETURN_IF_ERROR(same_type(desc, get(desc, role), src));
    TENON_RETURN_IF_ERROR(same_dims(desc, get(desc, role), src));
  }
  return {};
}

Status check_rms_norm(const Desc& desc) {
  const Operand& src = get(desc, EP_ROLE_SRC);
  const int32_t axis = desc.attributes.rms_norm.axis;
  TENON_RETURN_IF_ERROR(are_like_source(desc, axis, {EP_ROLE_DST}));
  TENON_RETURN_IF_ERROR(is_normalised(desc, EP_ROLE_SCALE, src, axis));
  const Operand* inv_std = find_operand(desc, EP_ROLE_INV_STD);
  if (inv_std == nullptr) return {};
  TENON_RETURN_IF_ERROR(is_type(desc, *inv_std, statistics_type(src)));
  return same_dims_but_one(desc, *inv_std, src, ~uint32_t{0} << axis);
}

Status check_group_norm(const Desc& desc) {
  const Operand& src = get(desc, EP_ROLE_SRC);
  const int64_t groups = desc.attributes.group_norm.groups;
  if (src.rank < 2) return wrong(desc, "'src' has rank {}; it must be at least 2.", src.rank);
  TENON_RETURN_IF_ERROR(are_like_source(desc, 1, {EP_ROLE_DST}));
  if (groups < 1 || (src.dims[1] != EP_ANY && src.dims[1] % groups != 0)) {
    return wrong(desc, "{} channels are not a multiple of groups ({}).", src.dims[1], groups);
  }
  for (int32_t role : {EP_ROLE_SCALE, EP_ROLE_SHIFT}) TENON_RETURN_IF_ERROR(is_list(desc, role, src, 1));
  for (int32_t role : {EP_ROLE_MEAN, EP_ROLE_INV_STD}) {
    const Operand* operand = find_operand(desc, role);
    if (operand == nullptr) continue;
    TENON_RETURN_IF_ERROR(is_type(desc, *operand, statistics_type(src)));
    if (operand->rank == 2 && agree(operand->dims[0], src.dims[0]) && agree(operand->dims[1], groups)) continue;
    return wrong(desc, "'{}' has shape {} but must have shape [{}, {}].", table::role_name(role), dims_of(*operand),
                 src.dims[0], groups);
  }
  return {};
}

}  // namespace tenon::descriptor
