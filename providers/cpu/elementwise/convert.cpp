#include "providers/cpu/elementwise/convert.h"

#include <cstring>
#include <type_traits>

#include "ep_api/ep_api.h"
#include "providers/cpu/elementwise/cast.h"
#include "providers/cpu/elementwise/vector_cast.h"
#include "providers/cpu/simd/copy_bytes.h"

namespace tenon::provider::cpu {
namespace {

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
    copy_bytes(dst, src, static_cast<size_t>(n) * sizeof(T));
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

namespace {

ConvertFunction scalar_widen(int32_t dtype) {
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

ConvertFunction scalar_narrow(int32_t from, int32_t dtype) {
  switch (from) {
    case EP_DTYPE_f32: return narrow_from<float>(dtype);
    case EP_DTYPE_f64: return narrow_from<double>(dtype);
    case EP_DTYPE_i64: return narrow_from<int64_t>(dtype);
    case EP_DTYPE_u64: return narrow_from<uint64_t>(dtype);
    case EP_DTYPE_i32: return narrow_from<int32_t>(dtype);
    case EP_DTYPE_bool:
    case EP_DTYPE_u8: return narrow_from<uint8_t>(dtype);
    case EP_DTYPE_i8: return narrow_from<int8_t>(dtype);
    default: return nullptr;
  }
}

}  // namespace

ConvertFunction widen(int32_t dtype, SimdLevel level) {
  const ConvertFunction vectors = vector_cast(level, dtype, wide_dtype(dtype)).convert;
  return vectors != nullptr ? vectors : scalar_widen(dtype);
}

ConvertFunction narrow(int32_t from, int32_t dtype, SimdLevel level) {
  const ConvertFunction vectors = vector_cast(level, from, dtype).convert;
  return vectors != nullptr ? vectors : scalar_narrow(from, dtype);
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
