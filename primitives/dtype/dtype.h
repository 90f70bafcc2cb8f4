// DType: the element types of ep_api/dtypes.def as a C++ enum, with their properties.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ep_api/ep_api.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

enum class DType : int32_t {
  none = 0,
#define EP_DTYPE(name, id, bits, type_class) name = id,
#define bool boolean  // the row is named as in C; `bool` itself is a keyword here
#include "ep_api/dtypes.def"
#undef bool
#undef EP_DTYPE
};

enum class DTypeClass : uint8_t { NONE, BOOL, INT, UINT, FLOAT };

struct DTypeInfo {
  std::string_view name;  // "f32"
  int32_t bits;
  DTypeClass type_class;
};

// The row of `dtype`. DType::none and unknown ids have the name "none" and 0 bits.
const DTypeInfo& dtype_info(DType dtype);
inline std::string_view dtype_name(DType dtype) { return dtype_info(dtype).name; }
std::optional<DType> dtype_from_name(std::string_view name);

// Bytes of one element, for types of at least 8 bits; 0 for packed types.
constexpr int64_t dtype_size(DType dtype) {
  switch (static_cast<int32_t>(dtype)) {
#define EP_DTYPE(name, id, bits, type_class) \
  case id:                                   \
    return bits / 8;
#include "ep_api/dtypes.def"
#undef EP_DTYPE
    default: return 0;
  }
}

// Bytes of `count` contiguous elements of a packed type, rounded up to whole bytes.
int64_t packed_bytes(DType dtype, int64_t count);
// Bytes of `count` contiguous elements, packed types rounded up to whole bytes.
inline int64_t dtype_bytes(DType dtype, int64_t count) {
  const int64_t size = dtype_size(dtype);
  return size != 0 ? size * count : packed_bytes(dtype, count);
}

inline bool is_floating(DType dtype) { return dtype_info(dtype).type_class == DTypeClass::FLOAT; }
inline bool is_integer(DType dtype) {
  DTypeClass c = dtype_info(dtype).type_class;
  return c == DTypeClass::INT || c == DTypeClass::UINT;
}

// The dtype of an operation on two tensors of dtypes a and b, by PyTorch's promotion: bool < integers < floats. A
// signed and an unsigned type of equal width give the next wider signed type; f16 with bf16 gives f32.
DType promote(DType a, DType b);

}  // namespace tenon

#pragma GCC visibility pop
