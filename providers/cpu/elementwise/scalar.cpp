#include "providers/cpu/elementwise/scalar.h"

#include <cstring>

#include "providers/cpu/elementwise/convert.h"
#include "sdk/provider/descriptor.h"

namespace tenon::provider::cpu {

void write_scalar(const ep_scalar& scalar, int32_t dtype, void* to) {
  const auto put = [to](auto value) { std::memcpy(to, &value, sizeof value); };
  const auto as = [&scalar](auto zero) {
    using T = decltype(zero);
    switch (dtype_class(scalar.dtype)) {
      case DTypeClass::FLOAT: return static_cast<T>(scalar.value.f64);
      case DTypeClass::INT: return static_cast<T>(scalar.value.i64);
      default: return static_cast<T>(scalar.value.u64);
    }
  };
  switch (dtype) {
    case EP_DTYPE_f32: return put(as(float{}));
    case EP_DTYPE_f64: return put(as(double{}));
    case EP_DTYPE_bool: return put(static_cast<uint8_t>(as(int64_t{}) != 0));
    case EP_DTYPE_i8:
    case EP_DTYPE_u8: return put(static_cast<uint8_t>(as(int64_t{})));
    case EP_DTYPE_i16:
    case EP_DTYPE_u16: return put(static_cast<uint16_t>(as(int64_t{})));
    case EP_DTYPE_i32:
    case EP_DTYPE_u32: return put(static_cast<uint32_t>(as(int64_t{})));
    case EP_DTYPE_i64:
    case EP_DTYPE_u64: return put(as(int64_t{}));
    default: {
      const double value = as(double{});
      narrow(EP_DTYPE_f64, dtype)(to, 1, &value, 1, 1);
    }
  }
}

}  // namespace tenon::provider::cpu
