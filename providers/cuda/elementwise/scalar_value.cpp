#include "providers/cuda/elementwise/scalar_value.h"

#include <cstring>

#include "providers/cuda/kernels/element.h"
#include "sdk/provider/descriptor.h"

namespace tenon::provider::cuda {
namespace {

template <class T>
uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// Calls visit(value) with the scalar as double, int64_t or uint64_t.
template <class Visit>
void with_value(const ep_scalar& scalar, const Visit& visit) {
  switch (dtype_class(scalar.dtype)) {
    case DTypeClass::FLOAT: return visit(scalar.value.f64);
    case DTypeClass::INT: return visit(scalar.value.i64);
    default: return visit(scalar.value.u64);
  }
}

template <class Visit>
void with_class(int32_t dtype_class, const Visit& visit) {
  switch (dtype_class) {
    case EP_DTYPE_f32: return visit(float{});
    case EP_DTYPE_f64: return visit(double{});
    case EP_DTYPE_i64: return visit(int64_t{});
    case EP_DTYPE_bool: return visit(bool{});
    default: return visit(uint64_t{});
  }
}

}  // namespace

int32_t class_of(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_f16:
    case EP_DTYPE_bf16:
    case EP_DTYPE_f32: return EP_DTYPE_f32;
    case EP_DTYPE_f64: return EP_DTYPE_f64;
    case EP_DTYPE_bool: return EP_DTYPE_bool;
    case EP_DTYPE_i8:
    case EP_DTYPE_i16:
    case EP_DTYPE_i32:
    case EP_DTYPE_i64: return EP_DTYPE_i64;
    case EP_DTYPE_u8:
    case EP_DTYPE_u16:
    case EP_DTYPE_u32:
    case EP_DTYPE_u64: return EP_DTYPE_u64;
    default: return 0;
  }
}

const char* class_name(int32_t dtype_class) { return dtype_name(dtype_class); }

uint64_t class_bits(const ep_scalar& scalar, int32_t dtype) {
  uint64_t bits = 0;
  with_value(scalar, [&](auto value) {
    with_any_storage(dtype, [&](auto storage) {
      const auto element = cast<decltype(storage)>(value);
      with_class(class_of(dtype), [&](auto type) { bits = bits_of(widen<decltype(type)>(element)); });
    });
  });
  return bits;
}

uint64_t parameter_bits(const ep_scalar& scalar, int32_t dtype_class) {
  uint64_t bits = 0;
  with_value(scalar, [&](auto value) {
    with_class(dtype_class, [&](auto type) {
      using Class = decltype(type);
      if constexpr (std::is_same_v<Class, bool>)
        bits = value != 0 ? 1 : 0;
      else
        bits = bits_of(cast<Class>(value));
    });
  });
  return bits;
}

uint64_t element_bits(const ep_scalar& scalar, int32_t dtype) {
  uint64_t bits = 0;
  with_value(scalar, [&](auto value) {
    with_any_storage(dtype, [&](auto storage) { bits = bits_of(cast<decltype(storage)>(value)); });
  });
  return bits;
}

}  // namespace tenon::provider::cuda
