// check_descriptor: the rules for every kind.
#include <algorithm>
#include <cstring>

#include "primitives/descriptor/check.h"
#include "primitives/descriptor/fields.h"
#include "primitives/descriptor/quantisation.h"
#include "primitives/text/format.h"

namespace tenon::descriptor {
namespace {

// --- roles ---

enum class Presence : uint8_t { REQUIRED, OPTIONAL, SERIES };  // SERIES: role + i, at least one, without gaps

struct RoleRule {
  int32_t kind;
  int32_t role;
  Presence presence;
};

constexpr RoleRule role_rules[] = {
#define EP_OPERAND(kind, role, presence) {EP_PRIMITIVE_##kind, EP_ROLE_##role, Presence::presence},
#define EP_QUANTISED_OPERAND(kind, operand)                             \
  {EP_PRIMITIVE_##kind, EP_ROLE_##operand##_SCALE, Presence::OPTIONAL}, \
      {EP_PRIMITIVE_##kind, EP_ROLE_##operand##_ZERO_POINT, Presence::OPTIONAL},
#include "primitives/descriptor/kinds.def"
};

bool takes_epilogues(int32_t kind) { return kind == EP_PRIMITIVE_matmul || kind == EP_PRIMITIVE_convolution; }

bool may_have(const Desc& desc, int32_t role) {
  if (role >= EP_ROLE_EPILOGUE_0 && role < EP_ROLE_EPILOGUE_0 + EP_MAX_EPILOGUES) return takes_epilogues(desc.kind);
  return std::any_of(std::begin(role_rules), std::end(role_rules), [&](const RoleRule& rule) {
    const int32_t last = rule.presence == Presence::SERIES ? rule.role + EP_MAX_OPERANDS - 1 : rule.role;
    return rule.kind == desc.kind && role >= rule.role && role <= last;
  });
}

Status check_roles(const Desc& desc) {
  int64_t last = -1;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const int32_t role = desc.operands[i].role;
    const std::string name = table::role_name(role);
    if (name.empty()) return unsupported(desc, "operand {} has role {}, which is unknown.", i, role);
    if (!may_have(desc, role)) return wrong(desc, "has no operand '{}'.", name);
    const int64_t order = (table::is_output(desc.kind, role) ? 0 : 1000) + role;
    if (order <= last) {
      return wrong(desc,
                   "operand '{}' stands at place {}; outputs come first, then inputs, each in the order of their roles "
                   "and once.",
                   name, i);
    }
    last = order;
  }
  for (const RoleRule& rule : role_rules) {
    if (rule.kind != desc.kind || rule.presence == Presence::OPTIONAL) continue;
    if (find_operand(desc, rule.role) == nullptr) {
      return wrong(desc, "operand '{}' is missing.", table::role_name(rule.role));
    }
    for (int32_t i = 1; rule.presence == Presence::SERIES && i < EP_MAX_OPERANDS; ++i) {
      const bool gap = find_operand(desc, rule.role + i) && !find_operand(desc, rule.role + i - 1);
      if (gap) return wrong(desc, "operand '{}' is missing.", table::role_name(rule.role + i - 1));
    }
  }
  return {};
}

// --- one operand ---

// Checks an operand in a layout of the device's own: a token, and no strides. The descriptor then has no EP_ANY.
Status check_opaque(const Desc& desc, const Operand& operand, const std::string& name) {
  if (operand.flags != EP_OPERAND_FLAG_OPAQUE || operand.rank == 0) {
    return wrong(desc, "opaque '{}' may be neither scalar nor constant, and has a rank of at least 1.", name);
  }
  if (operand.strides[0] <= 0) {
    return wrong(desc, "opaque '{}' has token {}; it must be above 0.", name, operand.strides[0]);
  }
  if (operand.alignment != 0) return wrong(desc, "opaque '{}' promises alignment {}.", name, operand.alignment);
  for (int32_t axis = 0; axis < EP_MAX_RANK; ++axis) {
    const int64_t dim = operand.dims[axis];
    if (axis > 0 && operand.strides[axis] != 0)
      return wrong(desc, "opaque '{}' has strides in addition to its token.", name);
    if (axis >= operand.rank ? dim != 0 : dim < 1) return wrong(desc, "dim {} of opaque '{}' is {}.", axis, name, dim);
  }
  if (has_any(desc)) return wrong(desc, "'{}' is opaque, so no dim or stride may be EP_ANY.", name);
  return {};
}

Status check_layout(const Desc& desc, const Operand& operand, const std::string& name) {
  const bool output = table::is_output(desc.kind, operand.role);
  for (int32_t axis = 0; axis < EP_MAX_RANK; ++axis) {
    const int64_t dim = operand.dims[axis];
    const int64_t stride = operand.strides[axis];
    if (axis >= operand.rank) {
      if (dim != 0 || stride != 0)
        return wrong(desc, "'{}' has a dim or stride beyond its rank {}.", name, operand.rank);
      continue;
    }
    if (dim < 1 && dim != EP_ANY) return wrong(desc, "dim {} of '{}' is {}; it must be at least 1.", axis, name, dim);
    if (stride < 0 && stride != EP_ANY)
      return wrong(desc, "stride {} of '{}' is {}; it must not be negative.", axis, name, stride);
    if (output && stride == 0 && dim != 1)
      return wrong(desc, "output '{}' has stride 0 along axis {} of length {}.", name, axis, dim);
  }
  return {};
}

Status check_operand(const Desc& desc, const Operand& operand) {
  const std::string name = table::role_name(operand.role);
  if (dtype_info(type_of(operand)).bits == 0) {
    return unsupported(desc, "'{}' has dtype {}, which is unknown.", name, operand.dtype);
  }
  if (operand.flags & ~(EP_OPERAND_FLAG_SCALAR | EP_OPERAND_FLAG_CONSTANT | EP_OPERAND_FLAG_OPAQUE)) {
    return unsupported(desc, "'{}' has flags {}, of which some are unknown.", name, operand.flags);
  }
  if (operand.rank < 0 || operand.rank > EP_MAX_RANK) {
    return wrong(desc, "'{}' has rank {}; it must be 1 to {}.", name, operand.rank, EP_MAX_RANK);
  }
  if (is_opaque(operand)) return check_opaque(desc, operand, name);
  if (is_scalar(operand)) {
    const bool allowed = (desc.kind == EP_PRIMITIVE_binary || desc.kind == EP_PRIMITIVE_ternary) &&
                         operand.role >= EP_ROLE_SRC && operand.role <= EP_ROLE_SRC_C;
    if (!allowed) return wrong(desc, "'{}' may not be a scalar.", name);
    if (operand.rank != 0) return wrong(desc, "scalar '{}' has rank {}; it must be 0.", name, operand.rank);
  } else if (operand.rank == 0) {
    return wrong(desc, "'{}' has rank 0, which only a scalar may have.", name);
  }
  if (!is_alignment(operand.alignment)) {
    return wrong(desc, "'{}' has alignment {}; it may be 0 or a power of two up to {}.", name, operand.alignment,
                 kGreatestAlignment);
  }
  return check_layout(desc, operand, name);
}

// --- the rest of the descriptor ---

Status check_attribute_names(const Desc& desc, const table::KindRow& row) {
  for (const Field& field : fields()) {
    if (field.kind != desc.kind) continue;
    const int64_t value = get_field(desc.attributes, field, 0);
    if (!is_known(field.type, value)) return unsupported(desc, "{} {} is unknown.", field.name, value);
  }
  const char* bytes = reinterpret_cast<const char*>(&desc.attributes);
  const bool clean =
      std::all_of(bytes + row.attribute_size, bytes + sizeof(ep_attributes), [](char c) { return c == 0; });
  if (!clean) return unsupported(desc, "has attributes beyond those of its kind.");
  return {};
}

Status check_epilogues(const Desc& desc) {
  if (desc.epilogue_count > EP_MAX_EPILOGUES)
    return wrong(desc, "has {} epilogues; at most {} are possible.", desc.epilogue_count, EP_MAX_EPILOGUES);
  if (desc.epilogue_count > 0 && !takes_epilogues(desc.kind)) return wrong(desc, "takes no epilogues.");
  uint32_t used = 0;
  for (uint32_t i = 0; i < desc.epilogue_count; ++i) {
    const ep_epilogue& epilogue = desc.epilogues[i];
    const bool known = (epilogue.arity == 1 && table::unary_row(epilogue.op)) ||
                       (epilogue.arity == 2 && table::binary_row(epilogue.op));
    if (!known)
      return unsupported(desc, "epilogue {} has arity {} and op {}, which is unknown.", i, epilogue.arity, epilogue.op);
    if (epilogue.scalar < 0 || epilogue.scalar >= EP_MAX_SCALARS)
      return wrong(desc, "epilogue {} reads launch scalar {}.", i, epilogue.scalar);
    if (epilogue.role == 0) continue;
    const Operand* operand = find_operand(desc, epilogue.role);
    if (epilogue.arity == 1 || operand == nullptr || epilogue.role < EP_ROLE_EPILOGUE_0 ||
        epilogue.role >= EP_ROLE_EPILOGUE_0 + EP_MAX_EPILOGUES) {
      return wrong(desc, "epilogue {} reads role {}, which is not an operand for it.", i, epilogue.role);
    }
    used |= uint32_t{1} << (epilogue.role - EP_ROLE_EPILOGUE_0);
    TENON_RETURN_IF_ERROR(has_result_type(desc, *operand));
    TENON_RETURN_IF_ERROR(same_dims(desc, *operand, get(desc, EP_ROLE_DST)));
  }
  for (int32_t i = 0; i < EP_MAX_EPILOGUES; ++i) {
    if (find_operand(desc, EP_ROLE_EPILOGUE_0 + i) && !(used >> i & 1))
      return wrong(desc, "operand 'epilogue_{}' is read by no epilogue.", i);
  }
  return {};
}

Status check_head(const Desc& desc) {
  if (desc.operand_count > EP_MAX_OPERANDS) {
    return wrong(desc, "has {} operands; at most {} are possible.", desc.operand_count, EP_MAX_OPERANDS);
  }
  if (desc.flags & ~EP_PRIMITIVE_FLAG_DETERMINISTIC)
    return unsupported(desc, "has flags {}, of which some are unknown.", desc.flags);
  if (desc.precision < EP_PRECISION_DEFAULT || desc.precision > EP_PRECISION_FULL) {
    return unsupported(desc, "has precision {}, which is unknown.", desc.precision);
  }
  if (desc.accumulate_dtype != 0 && dtype_info(static_cast<DType>(desc.accumulate_dtype)).bits == 0) {
    return unsupported(desc, "accumulates in dtype {}, which is unknown.", desc.accumulate_dtype);
  }
  if (desc.baked_scalars >> EP_MAX_SCALARS != 0)
    return wrong(desc, "bakes scalars beyond slot {}.", EP_MAX_SCALARS - 1);
  if (static_cast<uint32_t>(desc.extensions[0]) != 0) {
    return unsupported(desc, "has an extension of type {}, which is unknown.",
                       static_cast<uint32_t>(desc.extensions[0]));
  }
  return {};
}

}  // namespace

int32_t operand_index(const ep_primitive_desc& desc, int32_t role) {
  for (uint32_t i = 0; i < std::min<uint32_t>(desc.operand_count, EP_MAX_OPERANDS); ++i) {
    if (desc.operands[i].role == role) return static_cast<int32_t>(i);
  }
  return -1;
}

const ep_operand_desc* find_operand(const ep_primitive_desc& desc, int32_t role) {
  const int32_t index = operand_index(desc, role);
  return index < 0 ? nullptr : &desc.operands[index];
}

bool has_opaque(const ep_primitive_desc& desc) {
  return std::any_of(desc.operands, desc.operands + desc.operand_count, is_opaque);
}

bool has_any(const ep_primitive_desc& desc) {
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const Operand& operand = desc.operands[i];
    for (int32_t axis = 0; axis < operand.rank; ++axis) {
      if (operand.dims[axis] == EP_ANY || operand.strides[axis] == EP_ANY) return true;
    }
  }
  return false;
}

Status check_descriptor(const ep_primitive_desc& desc) {
  const table::KindRow* row = table::kind_row(desc.kind);
  if (row == nullptr) return Status(Code::unsupported, fmt::format("{} is unknown.", table::kind_name(desc.kind)));
  TENON_RETURN_IF_ERROR(check_head(desc));
  TENON_RETURN_IF_ERROR(check_attribute_names(desc, *row));
  TENON_RETURN_IF_ERROR(check_roles(desc));
  for (uint32_t i = 0; i < desc.operand_count; ++i) TENON_RETURN_IF_ERROR(check_operand(desc, desc.operands[i]));
  TENON_RETURN_IF_ERROR(check_epilogues(desc));
  TENON_RETURN_IF_ERROR(check_quantisation(desc));
  return check_kind(desc);
}

}  // namespace tenon::descriptor
