// The unary rows over every type but f32, through the scalar dialect.
#include <cstring>

#include "ep_api/ep_api.h"
#include "providers/cpu/map/kernel.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::cpu {
namespace {

template <int32_t op, class T>
void loop(void* dst, const void* const* src, int64_t n, MapContext& context) {
  T a;
  T b;
  std::memcpy(&a, context.a, sizeof a);
  std::memcpy(&b, context.b, sizeof b);
  using R = decltype(scalar::unary_row(scalar::Op<op>(), a, a, b));
  const T* x = static_cast<const T*>(src[0]);
  R* out = static_cast<R*>(dst);
  for (int64_t i = 0; i < n; ++i) out[i] = scalar::unary_row(scalar::Op<op>(), x[i], a, b);
}

template <int32_t op, class T>
constexpr MapFunction function_if_defined() {
  if constexpr (scalar::in_domain<T>(scalar::unary_facts(op).domain))
    return loop<op, T>;
  else
    return nullptr;
}

template <class T>
MapFunction function_of(int32_t op) {
  switch (op) {
#define EP_UNARY(name, id, domain, result, expression) \
  case id:                                             \
    return function_if_defined<id, T>();
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
    default: return nullptr;
  }
}

MapFunction function_of(int32_t op, int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_bool: return function_of<bool>(op);
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

MapKernel scalar_unary_kernel(int32_t op, int32_t dtype) {
  const scalar::RowFacts facts = scalar::unary_facts(op);
  const bool library_calls = facts.domain == scalar::Domain::FLOAT;  // the rest the compiler turns into vectors
  return {function_of(op, dtype), facts.bool_result ? EP_DTYPE_bool : dtype, library_calls ? 8000 : 1000,
          library_calls ? "plain" : "simd", false};
}

}  // namespace tenon::provider::cpu
