// Reads a primitive's descriptor: operands by role, names for messages, and the shape that a launch gives.
#pragma once

#include <cstdint>

#include "ep_api/ep_api.h"
#include "ep_api/ep_names.h"

namespace tenon::provider {

// "matmul", "f32", "relu", "add", "where"; "unknown" for an id that our ep_api.h does not have.
constexpr const char* kind_name(int32_t kind) { return ep_primitive_name(kind); }
constexpr const char* dtype_name(int32_t dtype) { return ep_dtype_name(dtype); }
constexpr const char* unary_name(int32_t op) { return ep_unary_name(op); }
constexpr const char* binary_name(int32_t op) { return ep_binary_name(op); }
constexpr const char* ternary_name(int32_t op) { return ep_ternary_name(op); }

// The bytes of one element; 0 for packed and unknown types.
constexpr int32_t dtype_size(int32_t dtype) {
  switch (dtype) {
#define EP_DTYPE(name, id, bits, type_class) \
  case id:                                   \
    return (bits) / 8;
#include "ep_api/dtypes.def"
#undef EP_DTYPE
    default: return 0;
  }
}

enum class DTypeClass : uint8_t { NONE, BOOL, INT, UINT, FLOAT };

constexpr DTypeClass dtype_class(int32_t dtype) {
  switch (dtype) {
#define EP_DTYPE(name, id, bits, type_class) \
  case id:                                   \
    return DTypeClass::type_class;
#include "ep_api/dtypes.def"
#undef EP_DTYPE
    default: return DTypeClass::NONE;
  }
}

constexpr bool is_floating(int32_t dtype) { return dtype_class(dtype) == DTypeClass::FLOAT; }

// The number of the operand of `role`, or -1.
inline int32_t find_operand(const ep_primitive_desc& desc, int32_t role) {
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (desc.operands[i].role == role) return static_cast<int32_t>(i);
  }
  return -1;
}

// The operand of `role`, or NULL if the descriptor has none.
inline const ep_operand_desc* operand(const ep_primitive_desc& desc, int32_t role) {
  const int32_t i = find_operand(desc, role);
  return i < 0 ? nullptr : &desc.operands[i];
}

inline bool is_scalar(const ep_operand_desc& operand) { return (operand.flags & EP_OPERAND_FLAG_SCALAR) != 0; }

// True if the launch gives a dim or a stride of any operand.
inline bool is_dynamic(const ep_primitive_desc& desc) {
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    for (int32_t axis = 0; axis < desc.operands[i].rank; ++axis) {
      if (desc.operands[i].dims[axis] == EP_ANY || desc.operands[i].strides[axis] == EP_ANY) return true;
    }
  }
  return false;
}

// Dims and strides of one operand, from the descriptor or from the launch.
struct OperandShape {
  const int64_t* dims;
  const int64_t* strides;
  int32_t rank;
};

inline OperandShape shape_of(const ep_operand_desc& operand, const ep_shape* shapes, uint32_t index) {
  if (shapes != nullptr) return {shapes[index].dims, shapes[index].strides, shapes[index].rank};
  return {operand.dims, operand.strides, operand.rank};
}

}  // namespace tenon::provider
