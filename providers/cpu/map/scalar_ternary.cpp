// The ternary rows over every type but f32; `where` only moves elements, so it goes by their size.
#include "ep_api/ep_api.h"
#include "providers/cpu/map/kernel.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::cpu {
namespace {

template <int32_t op, class X, class T>
void loop(void* dst, const void* const* src, int64_t n, MapContext&) {
  const X* x = static_cast<const X*>(src[0]);
  const T* y = static_cast<const T*>(src[1]);
  const T* z = static_cast<const T*>(src[2]);
  T* out = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i) out[i] = scalar::ternary_row(scalar::Op<op>(), x[i], y[i], z[i]);
}

template <int32_t op, class T>
constexpr MapFunction function_if_defined() {
  constexpr scalar::Domain domain = scalar::ternary_facts(op).domain;
  if constexpr (domain == scalar::Domain::COND) {
    if constexpr (std::is_unsigned_v<T>)
      return loop<op, bool, T>;
    else
      return nullptr;
  } else if constexpr (scalar::in_domain<T>(domain)) {
    return loop<op, T, T>;
  } else {
    return nullptr;
  }
}

template <class T>
MapFunction function_of(int32_t op) {
  switch (op) {
#define EP_TERNARY(name, id, domain, result, expression) \
  case id:                                               \
    return function_if_defined<id, T>();
#include "ep_api/scalar_ops.def"
#undef EP_TERNARY
    default: return nullptr;
  }
}

MapFunction function_of(int32_t op, int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_i8: return function_of<int8_t>(op);
    case EP_DTYPE_i16: return function_of<int16_t>(op);
    case EP_DTYPE_i32: return function_of<int32_t>(op);
    case EP_DTYPE_i64: return function_of<int64_t>(op);
    case EP_DTYPE_u8: return function_of<uint8_t>(op);
    case EP_DTYPE_u16: return function_of<uint16_t>(op);
    case EP_DTYPE_u32: return function_of<uint32_t>(op);
    case EP_DTYPE_u64: return function_of<uint64_t>(op);
    case EP_DTYPE_f64: return function_of<double>(op);
    default: return nullptr;
  }
}

}  // namespace

MapKernel scalar_ternary_kernel(int32_t op, int32_t dtype) {
  return {function_of(op, dtype), dtype, 600, "simd", false};
}

}  // namespace tenon::provider::cpu
