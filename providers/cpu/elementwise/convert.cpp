#include "providers/cpu/elementwise/convert.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ep_api/ep_api.h"
#include "sdk/provider/float_formats.h"

namespace tenon::provider::cpu {
namespace {

// Storage types of the narrow floats. Each is a C++ type of its own, so that templates can tell them apart.
struct F16Bits {
  uint16_t bits;
};
struct Bf16Bits {
  uint16_t bits;
};
struct F8E4M3FNBits {
  uint8_t bits;
};
struct F8E5M2Bits {
  uint8_t bits;
};

// A format of one byte as a storage type.
template <class Format>
struct ByteBits {
  uint8_t bits;
};
using F8E4M3FNUZBits = ByteBits<F8E4M3FNUZ>;
using F8E5M2FNUZBits = ByteBits<F8E5M2FNUZ>;
using F8E8M0Bits = ByteBits<F8E8M0>;

template <class Format>
void from_f32(float value, ByteBits<Format>* result) {
  result->bits = static_cast<uint8_t>(Format::from_f32(value));
}
template <class Format>
float to_f32(ByteBits<Format> value) {
  return Format::to_f32(value.bits);
}

template <class T>
T from_f32(float value) {
  if constexpr (std::is_same_v<T, F16Bits>)
    return {static_cast<uint16_t>(F16::from_f32(value))};
  else if constexpr (std::is_same_v<T, Bf16Bits>)
    return {bf16_from_f32(value)};
  else if constexpr (std::is_same_v<T, F8E4M3FNBits>)
    return {static_cast<uint8_t>(F8E4M3FN::from_f32(value))};
  else if constexpr (std::is_same_v<T, F8E5M2Bits>)
    return {static_cast<uint8_t>(F8E5M2::from_f32(value))};
  else {
    T result;
    from_f32(value, &result);
    return result;
  }
}
float to_f32(F16Bits value) { return F16::to_f32(value.bits); }
float to_f32(Bf16Bits value) { return bf16_to_f32(value.bits); }
float to_f32(F8E4M3FNBits value) { return F8E4M3FN::to_f32(value.bits); }
float to_f32(F8E5M2Bits value) { return F8E5M2::to_f32(value.bits); }

template <class T>
inline constexpr bool is_narrow_float = std::is_class_v<T>;

// Rounds to f32 by "round to odd": an inexact result gets an odd last bit. A second rounding, to a format of at most 22
// bits, then gives the same as rounding `value` there directly.
float to_odd_f32(double value) {
  float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value) || std::isinf(nearest)) return nearest;
  if ((std::bit_cast<uint32_t>(nearest) & 1U) == 0) {
    const bool up = (static_cast<double>(nearest) < value) == (value > 0);
    nearest = std::bit_cast<float>(std::bit_cast<uint32_t>(nearest) + (up ? 1U : ~0U));
  }
  return nearest;
}

// A double that rounds to every narrow float as `value` does: the bits below the 52 leading ones become one sticky bit.
template <class I>
double sticky_double(I value) {
  using U = std::make_unsigned_t<I>;
  const bool negative = value < 0;
  U magnitude = negative ? U{0} - static_cast<U>(value) : static_cast<U>(value);
  if (magnitude >> 53 != 0) magnitude = ((magnitude >> 12) | ((magnitude & 0xfff) != 0 ? 1U : 0U)) << 12;
  const double result = static_cast<double>(magnitude);
  return negative ? -result : result;
}

// Truncates toward zero and saturates. NaN becomes 0.
template <class I, class F>
I float_to_integer(F value) {
  if (std::isnan(value)) return 0;
  constexpr F least = static_cast<F>(std::numeric_limits<I>::min());
  const F limit = std::ldexp(F{1}, std::numeric_limits<I>::digits);  // the greatest value plus one, exact
  if (value >= limit) return std::numeric_limits<I>::max();
  if (value <= least) return std::numeric_limits<I>::min();
  return static_cast<I>(value);
}

template <class To, class From>
To cast(From value) {
  if constexpr (std::is_same_v<To, bool>)
    return value != From{0};
  else if constexpr (is_narrow_float<To>) {
    if constexpr (std::is_same_v<From, float>)
      return from_f32<To>(value);
    else if constexpr (std::is_same_v<From, double>)
      return from_f32<To>(to_odd_f32(value));
    else
      return from_f32<To>(to_odd_f32(sticky_double(value)));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return float_to_integer<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class To, class From>
void convert(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t n) {
  To* out = static_cast<To*>(dst);
  const From* in = static_cast<const From*>(src);
  if (dst_stride == 1 && src_stride == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = cast<To>(in[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i * dst_stride] = cast<To>(in[i * src_stride]);
  }
}

template <class T>
void to_wide(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t n) {
  const T* in = static_cast<const T*>(src);
  using Wide = std::conditional_t<is_narrow_float<T>, float, int64_t>;
  Wide* out = static_cast<Wide*>(dst);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (is_narrow_float<T>)
      out[i * dst_stride] = to_f32(in[i * src_stride]);
    else
      out[i * dst_stride] = static_cast<Wide>(+in[i * src_stride]);
  }
}

template <class T>
void move(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t n) {
  T* out = static_cast<T*>(dst);
  const T* in = static_cast<const T*>(src);
  if (dst_stride == 1 && src_stride == 1) {
    std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(T));
  } else if (dst_stride == 1 && src_stride == 0) {
    const T value = *in;
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  } else if (dst_stride == 1) {
    gather(out, in, src_stride, n);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i * dst_stride] = in[i * src_stride];
  }
}

template <class From>
ConvertFunction narrow_from(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_bool: return convert<bool, From>;
    case EP_DTYPE_i8: return convert<int8_t, From>;
    case EP_DTYPE_i16: return convert<int16_t, From>;
    case EP_DTYPE_i32: return convert<int32_t, From>;
    case EP_DTYPE_i64: return convert<int64_t, From>;
    case EP_DTYPE_u8: return convert<uint8_t, From>;
    case EP_DTYPE_u16: return convert<uint16_t, From>;
    case EP_DTYPE_u32: return convert<uint32_t, From>;
    case EP_DTYPE_u64: return convert<uint64_t, From>;
    case EP_DTYPE_f16: return convert<F16Bits, From>;
    case EP_DTYPE_bf16: return convert<Bf16Bits, From>;
    case EP_DTYPE_f32: return convert<float, From>;
    case EP_DTYPE_f64: return convert<double, From>;
    case EP_DTYPE_f8e4m3fn: return convert<F8E4M3FNBits, From>;
    case EP_DTYPE_f8e5m2: return convert<F8E5M2Bits, From>;
    case EP_DTYPE_f8e4m3fnuz: return convert<F8E4M3FNUZBits, From>;
    case EP_DTYPE_f8e5m2fnuz: return convert<F8E5M2FNUZBits, From>;
    case EP_DTYPE_f8e8m0: return convert<F8E8M0Bits, From>;
    default: return nullptr;
  }
}

}  // namespace

ConvertFunction move_elements(int32_t size) {
  switch (size) {
    case 1: return move<uint8_t>;
    case 2: return move<uint16_t>;
    case 4: return move<uint32_t>;
    case 8: return move<uint64_t>;
    default: return nullptr;
  }
}

int32_t wide_dtype(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_bool:
    case EP_DTYPE_i8:
    case EP_DTYPE_i16:
    case EP_DTYPE_i32:
    case EP_DTYPE_i64:
    case EP_DTYPE_u8:
    case EP_DTYPE_u16:
    case EP_DTYPE_u32: return EP_DTYPE_i64;
    case EP_DTYPE_u64: return EP_DTYPE_u64;
    case EP_DTYPE_f64: return EP_DTYPE_f64;
    case EP_DTYPE_f16:
    case EP_DTYPE_bf16:
    case EP_DTYPE_f32:
    case EP_DTYPE_f8e4m3fn:
    case EP_DTYPE_f8e5m2:
    case EP_DTYPE_f8e4m3fnuz:
    case EP_DTYPE_f8e5m2fnuz:
    case EP_DTYPE_f8e8m0: return EP_DTYPE_f32;
    default: return 0;
  }
}

ConvertFunction widen(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_bool:
    case EP_DTYPE_u8: return to_wide<uint8_t>;
    case EP_DTYPE_i8: return to_wide<int8_t>;
    case EP_DTYPE_i16: return to_wide<int16_t>;
    case EP_DTYPE_i32: return to_wide<int32_t>;
    case EP_DTYPE_u16: return to_wide<uint16_t>;
    case EP_DTYPE_u32: return to_wide<uint32_t>;
    case EP_DTYPE_f16: return to_wide<F16Bits>;
    case EP_DTYPE_bf16: return to_wide<Bf16Bits>;
    case EP_DTYPE_f8e4m3fn: return to_wide<F8E4M3FNBits>;
    case EP_DTYPE_f8e5m2: return to_wide<F8E5M2Bits>;
    case EP_DTYPE_f8e4m3fnuz: return to_wide<F8E4M3FNUZBits>;
    case EP_DTYPE_f8e5m2fnuz: return to_wide<F8E5M2FNUZBits>;
    case EP_DTYPE_f8e8m0: return to_wide<F8E8M0Bits>;
    case EP_DTYPE_i64:
    case EP_DTYPE_u64:
    case EP_DTYPE_f64: return move<uint64_t>;
    case EP_DTYPE_f32: return move<uint32_t>;
    default: return nullptr;
  }
}

ConvertFunction narrow(int32_t wide, int32_t dtype) {
  switch (wide) {
    case EP_DTYPE_f32: return narrow_from<float>(dtype);
    case EP_DTYPE_f64: return narrow_from<double>(dtype);
    case EP_DTYPE_i64: return narrow_from<int64_t>(dtype);
    case EP_DTYPE_u64: return narrow_from<uint64_t>(dtype);
    default: return nullptr;
  }
}

int32_t compute_dtype(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_f16:
    case EP_DTYPE_bf16:
    case EP_DTYPE_f8e4m3fn:
    case EP_DTYPE_f8e5m2:
    case EP_DTYPE_f8e4m3fnuz:
    case EP_DTYPE_f8e5m2fnuz:
    case EP_DTYPE_f8e8m0: return EP_DTYPE_f32;
    default: return dtype;
  }
}

}  // namespace tenon::provider::cpu
