// The binary scalar functions for every type except f32. Integer divisions report faults.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/elementwise/scalar_binary.cpp"
#include "hwy/foreach_target.h"
//
#include <type_traits>

#include "ep_api/ep_api.h"
#include "hwy/highway.h"
#include "providers/cpu/elementwise/kernel.h"
#include "providers/cpu/elementwise/scalar_types.h"
#include "sdk/provider/scalar_rows.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr bool fuses = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;

template <class T>
[[gnu::noinline]] void note_fault(const T* y, int64_t n, MapContext& context) {
  for (int64_t i = 0; i < n && context.fault_code == 0; ++i) {
    context.fault_code = scalar::divisor_fault(y[i]);
    context.fault_value = static_cast<int64_t>(+y[i]);
  }
}

// Greatest common divisors of `n` pairs, by Euclid's algorithm on all pairs at once. For integers of up to 32 bits, a
// quotient in double has the exact integral part.
constexpr int32_t gcd_block = 64;
template <class T>
inline void divisors(const T* x, const T* y, int32_t n, double (&a)[gcd_block]) {
  const hn::ScalableTag<double> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int32_t>(hn::Lanes(d));
  alignas(64) double b[gcd_block] = {};
  for (int32_t i = 0; i < n; ++i) {
    a[i] = static_cast<double>(static_cast<std::make_unsigned_t<T>>(scalar::ep_abs(x[i])));
    b[i] = static_cast<double>(static_cast<std::make_unsigned_t<T>>(scalar::ep_abs(y[i])));
  }
  for (bool left = true; left;) {
    V most = hn::Zero(d);
    for (int32_t i = 0; i < gcd_block; i += lanes) {
      const V greater = hn::Load(d, a + i), lesser = hn::Load(d, b + i);
      const auto done = hn::Eq(lesser, hn::Zero(d));
      const V by = hn::IfThenElse(done, hn::Set(d, 1), lesser);
      const V rest = hn::Sub(greater, hn::Mul(hn::Floor(hn::Div(greater, by)), by));
      const V next = hn::IfThenZeroElse(done, rest);
      hn::Store(hn::IfThenElse(done, greater, by), d, a + i);
      hn::Store(next, d, b + i);
      most = hn::Max(most, next);
    }
    left = !hn::AllTrue(d, hn::Eq(most, hn::Zero(d)));
  }
}

// gcd; and lcm, which is |x| / gcd * |y| with wrapping as in the row's expression.
template <int32_t op, class T>
void divisor_loop(T* out, const T* x, const T* y, int64_t n) {
  using Wrapped = std::make_unsigned_t<T>;
  alignas(64) double a[gcd_block] = {};
  for (int64_t begin = 0; begin < n; begin += gcd_block) {
    const auto count = static_cast<int32_t>(n - begin < gcd_block ? n - begin : gcd_block);
    divisors(x + begin, y + begin, count, a);
    for (int32_t i = 0; i < count; ++i) {
      const auto divisor = static_cast<T>(static_cast<Wrapped>(static_cast<int64_t>(a[i])));
      if constexpr (op == EP_BINARY_gcd) {
        out[begin + i] = divisor;
      } else {
        const T by = divisor == 0 ? T{1} : divisor;
        const auto part = static_cast<T>(static_cast<double>(scalar::ep_abs(x[begin + i])) / static_cast<double>(by));
        out[begin + i] = scalar::ep_mul(part, scalar::ep_abs(y[begin + i]));
      }
    }
  }
}

template <int32_t op, class T>
void loop(void* dst, const void* const* src, int64_t n, MapContext& context) {
  using R = decltype(scalar::binary_row(scalar::Op<op>(), T{}, T{}));
  const T* x = static_cast<const T*>(src[0]);
  const T* y = static_cast<const T*>(src[1]);
  R* out = static_cast<R*>(dst);
  if constexpr ((op == EP_BINARY_gcd || op == EP_BINARY_lcm) && scalar::is_int<T> && sizeof(T) <= 4) {
    return divisor_loop<op, T>(out, x, y, n);
  }
  if constexpr (scalar::binary_facts(op).checks_divisor && scalar::is_int<T>) {
    if (context.fault_code == 0) note_fault(y, n, context);
  }
  for (int64_t i = 0; i < n; ++i) out[i] = scalar::binary_row(scalar::Op<op>(), x[i], y[i]);
}

template <int32_t op, class T>
constexpr MapFunction function_if_defined() {
  if constexpr (scalar::in_domain<T>(scalar::binary_facts(op).domain))
    return loop<op, T>;
  else
    return nullptr;
}

template <class T>
MapFunction function_of(int32_t op) {
  switch (op) {
#define EP_BINARY(name, id, domain, result, check, expression) \
  case id:                                                     \
    return function_if_defined<id, T>();
#include "ep_api/scalar_ops.def"
#undef EP_BINARY
    default: return nullptr;
  }
}

}  // namespace

MapFunction scalar_binary_function(int32_t op, int32_t dtype) {
  return for_scalar_type<fuses>(dtype, [op](auto type) { return function_of<decltype(type)>(op); });
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

namespace {

MapFunction scalar_binary_function(SimdLevel level, int32_t op, int32_t dtype) {
  if (dtype == EP_DTYPE_f64) level = SimdLevel::baseline;
  return TENON_CPU_DISPATCH(level, scalar_binary_function)(op, dtype);
}

}  // namespace

MapKernel scalar_binary_kernel(SimdLevel level, int32_t op, int32_t dtype) {
  const scalar::RowFacts facts = scalar::binary_facts(op);
  const bool divides_often = op == EP_BINARY_gcd || op == EP_BINARY_lcm;
  // The compiler vectorises the other functions.
  const bool one_by_one = facts.checks_divisor || op == EP_BINARY_pow || divides_often;
  return {scalar_binary_function(level, op, dtype), facts.bool_result ? EP_DTYPE_bool : dtype,
          divides_often ? 10000
          : one_by_one  ? 5000
                        : 1000,
          one_by_one ? "plain" : "simd", false};
}

}  // namespace tenon::provider::cpu
#endif
