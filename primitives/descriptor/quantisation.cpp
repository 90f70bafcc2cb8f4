#include "primitives/descriptor/quantisation.h"

#include <algorithm>
#include <cstring>

#include "primitives/descriptor/check.h"

namespace tenon::descriptor {
namespace {

#define ROW(kind, operand, parameters, member)                                                               \
  {                                                                                                          \
    EP_PRIMITIVE_##kind, EP_ROLE_##operand, EP_ROLE_##parameters##_SCALE, EP_ROLE_##parameters##_ZERO_POINT, \
        offsetof(ep_attributes, kind.member)                                                                 \
  }
#define ONE(kind, operand, parameters) \
  { EP_PRIMITIVE_##kind, EP_ROLE_##operand, EP_ROLE_##parameters##_SCALE, EP_ROLE_##parameters##_ZERO_POINT, kOneScale }
constexpr Quantisable rows[] = {
    ROW(quantise, DST, DST, dst),
    ROW(dequantise, SRC, SRC, src),
    ROW(matmul, DST, DST, dst),
    ROW(matmul, SRC, SRC, src),
    ROW(matmul, SRC_B, WEIGHT, weight),
    ROW(convolution, DST, DST, dst),
    ROW(convolution, SRC, SRC, src),
    ROW(convolution, WEIGHT, WEIGHT, weight),
    ONE(binary, DST, DST),
    ONE(binary, SRC, SRC),
    ONE(binary, SRC_B, WEIGHT),
};
#undef ROW
#undef ONE

constexpr DType quantised_types[] = {DType::i2,     DType::u2,       DType::i4,         DType::u4,
                                     DType::i8,     DType::u8,       DType::i16,        DType::u16,
                                     DType::i32,    DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2fnuz,
                                     DType::f8e5m2, DType::f6e2m3,   DType::f6e3m2,     DType::f4e2m1};
constexpr DType scale_types[] = {DType::f32, DType::f16, DType::bf16};

template <size_t N>
bool is_one_of(const DType (&types)[N], DType type) {
  return std::find(std::begin(types), std::end(types), type) != std::end(types);
}

// The length of an operand's scale and zero point along `axis`.
int64_t parameter_dim(const ep_quantisation& how, const Operand& operand, int32_t axis) {
  const int64_t shared = shared_along(how, axis);
  if (shared == 0) return 1;
  return operand.dims[axis] == EP_ANY ? EP_ANY : (operand.dims[axis] + shared - 1) / shared;
}

Status check_parameter_dims(const Desc& desc, const ep_quantisation& how, const Operand& operand,
                            const Operand& parameter) {
  bool fits = parameter.rank == operand.rank;
  Dims wanted = dims_of(operand);
  for (int32_t axis = 0; axis < operand.rank; ++axis) {
    wanted[axis] = parameter_dim(how, operand, axis);
    fits = fits && agree(parameter.dims[axis], wanted[axis]);
  }
  if (fits) return {};
  return wrong(desc, "'{}' has shape {}, but '{}' of shape {} wants {}.", table::role_name(parameter.role),
               dims_of(parameter), table::role_name(operand.role), dims_of(operand), wanted);
}

Status check_blocks(const Desc& desc, const ep_quantisation& how, const Operand& operand) {
  const std::string name = table::role_name(operand.role);
  if (how.axes >> operand.rank != 0) {
    return wrong(desc, "axes mask {} of '{}' names an axis beyond rank {}.", how.axes, name, operand.rank);
  }
  if (how.block[0] == 0) {
    if (how.block_axis == 0 && how.block[1] == 0) return {};
    return wrong(desc, "'{}' has block axis {} and a second block of {}, but no first block.", name, how.block_axis,
                 how.block[1]);
  }
  for (int32_t i = 0; i < 2; ++i) {
    if (i == 1 && how.block[1] == 0) continue;
    const int64_t axis = int64_t{how.block_axis} + i;
    if (how.block[i] < 1) return wrong(desc, "block {} of '{}' must be at least 1.", how.block[i], name);
    if (axis < 0 || axis >= operand.rank || (how.axes >> axis & 1) == 0) {
      return wrong(desc, "'{}' has blocks along axis {}, which is not in its axes mask {}.", name, axis, how.axes);
    }
  }
  return {};
}

Status check_quantised(const Desc& desc, const Quantisable& row) {
  const Operand& operand = get(desc, row.role);
  const std::string name = table::role_name(row.role);
  const ep_quantisation how = quantisation_of(desc, row);
  if (!is_quantised(desc, row.role)) {
    const ep_quantisation none = {};
    if (std::memcmp(&how, &none, sizeof how) == 0) return {};
    return wrong(desc, "the attributes say how '{}' is quantised, but it has neither '{}' nor '{}'.", name,
                 table::role_name(row.scale_role), table::role_name(row.zero_point_role));
  }
  if (!is_one_of(quantised_types, type_of(operand))) {
    return wrong(desc, "'{}' is {}, which cannot be quantised.", name, dtype_name(type_of(operand)));
  }
  TENON_RETURN_IF_ERROR(check_blocks(desc, how, operand));
  if (const Operand* scale = find_operand(desc, row.scale_role)) {
    if (!is_one_of(scale_types, type_of(*scale))) {
      return wrong(desc, "'{}' is {} but must be f32, f16 or bf16.", table::role_name(row.scale_role),
                   dtype_name(type_of(*scale)));
    }
    TENON_RETURN_IF_ERROR(check_parameter_dims(desc, how, operand, *scale));
  }
  if (const Operand* zero_point = find_operand(desc, row.zero_point_role)) {
    if (is_floating(type_of(operand)))
      return wrong(desc, "'{}' is {} and takes no zero point.", name, dtype_name(type_of(operand)));
    TENON_RETURN_IF_ERROR(same_type(desc, *zero_point, operand));
    TENON_RETURN_IF_ERROR(check_parameter_dims(desc, how, operand, *zero_point));
  }
  return {};
}

}  // namespace

const Quantisable* quantisable(int32_t kind, int32_t role) {
  for (const Quantisable& row : rows) {
    if (row.kind == kind && row.role == role) return &row;
  }
  return nullptr;
}

bool is_quantised(const ep_primitive_desc& desc, int32_t role) {
  const Quantisable* row = quantisable(desc.kind, role);
  return row != nullptr &&
         (find_operand(desc, row->scale_role) != nullptr || find_operand(desc, row->zero_point_role) != nullptr);
}

bool is_quantised(const ep_primitive_desc& desc) {
  return std::any_of(std::begin(rows), std::end(rows),
                     [&](const Quantisable& row) { return row.kind == desc.kind && is_quantised(desc, row.role); });
}

ep_quantisation quantisation_of(const ep_primitive_desc& desc, const Quantisable& row) {
  ep_quantisation how{};
  if (row.offset == kOneScale) return how;
  std::memcpy(&how, reinterpret_cast<const char*>(&desc.attributes) + row.offset, sizeof how);
  return how;
}

int64_t shared_along(const ep_quantisation& how, int32_t axis) {
  if ((how.axes >> axis & 1) == 0) return 0;
  const int32_t block = axis - how.block_axis;
  return how.block[0] != 0 && (block == 0 || block == 1) && how.block[block] != 0 ? how.block[block] : 1;
}

Status check_quantisation(const ep_primitive_desc& desc) {
  for (const Quantisable& row : rows) {
    if (row.kind == desc.kind) TENON_RETURN_IF_ERROR(check_quantised(desc, row));
  }
  return {};
}

}  // namespace tenon::descriptor
