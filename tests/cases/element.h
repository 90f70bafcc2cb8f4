// The elements of an operand in an image: their positions, their bits, the greatest values of their dtypes. For the
// files of this folder.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#include "primitives/dtype/convert.h"
#include "primitives/reference/call.h"

namespace tenon::cases {

constexpr uint64_t guard_bytes = 256;  // before and after each operand

inline DType type_of(const ep_operand_desc& operand) { return static_cast<DType>(operand.dtype); }

// The number of elements from the first to the last addressed one.
inline int64_t extent(const ep_operand_desc& operand) {
  int64_t last = 0;
  for (int32_t axis = 0; axis < operand.rank; ++axis) last += (operand.dims[axis] - 1) * operand.strides[axis];
  return last + 1;
}

// Visits each element of the operand once, even if a stride of 0 repeats it. Passes its number in order, its offset and
// its index.
template <class Visit>
void for_each_element(const ep_operand_desc& operand, Visit&& visit) {
  int64_t dims[EP_MAX_RANK];
  for (int32_t axis = 0; axis < operand.rank; ++axis) dims[axis] = operand.strides[axis] == 0 ? 1 : operand.dims[axis];
  const reference::Operand view = {&operand, nullptr, nullptr};
  int64_t number = 0;
  reference::for_each_index({dims, static_cast<size_t>(operand.rank)},
                            [&](const int64_t* index) { visit(number++, view.at(index), index); });
}

inline double greatest_finite(DType dtype) {
  switch (dtype) {
    case DType::f16: return 65504;
    case DType::bf16: return 3.3895313892515355e38;
    case DType::f8e4m3fn: return 448;
    case DType::f8e5m2:
    case DType::f8e5m2fnuz: return 57344;
    case DType::f8e4m3fnuz: return 240;
    case DType::f8e8m0: return 0x1p127;
    case DType::f6e2m3: return 7.5;
    case DType::f6e3m2: return 28;
    case DType::f4e2m1: return 6;
    case DType::f32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

inline void put_bits(DType dtype, void* base, int64_t place, uint64_t bits) {
  if (is_floating(dtype) && dtype_info(dtype).bits < 8) {  // every code is a number of its own
    reference::store<double>(dtype, base, place, decode_float(dtype, bits));
  } else if (is_floating(dtype)) {
    const int32_t bytes = dtype_info(dtype).bits / 8;
    std::memcpy(static_cast<char*>(base) + place * bytes, &bits, static_cast<size_t>(bytes));
  } else {
    reference::store<uint64_t>(dtype, base, place, bits);
  }
}

// The bits of an element; for narrow integers the bits of its value.
inline uint64_t raw_bits(DType dtype, const void* base, int64_t place) {
  const bool whole = is_floating(dtype) || dtype == DType::boolean;  // a bool is 0 or 1
  if (!whole) return reference::load<uint64_t>(dtype, base, place);
  if (dtype_info(dtype).bits < 8) return encode_float(dtype, reference::load<double>(dtype, base, place));
  uint64_t bits = 0;
  const int32_t bytes = dtype_info(dtype).bits / 8;
  std::memcpy(&bits, static_cast<const char*>(base) + place * bytes, static_cast<size_t>(bytes));
  return bits;
}

}  // namespace tenon::cases
