// Kernels over rows of quantised bytes, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/quantised/rows.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "hwy/highway.h"
#include "providers/cpu/quantised/rows.h"
#include "providers/cpu/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using I = hn::RebindToSigned<D>;
using V = hn::Vec<D>;

template <class T>
HWY_INLINE V real(const uint8_t* from, const Number& number) {
  const D d;
  const hn::Rebind<T, D> narrow;
  const auto bytes = hn::LoadU(narrow, reinterpret_cast<const T*>(from));
  const V value = hn::ConvertTo(d, hn::PromoteTo(I(), bytes));
  return hn::Mul(hn::Sub(value, hn::Set(d, number.zero)), hn::Set(d, number.scale));
}

template <class T>
HWY_INLINE void store(uint8_t* to, V value, const Number& number) {
  const D d;
  const hn::Rebind<T, D> narrow;
  const float low = (number.is_signed ? -128.0f : 0.0f) - number.zero;
  const V quotient = hn::Div(value, hn::Set(d, number.scale));
  const V ordered = hn::IfThenElse(hn::Eq(quotient, quotient), quotient, hn::Set(d, low));
  const V bounded = hn::Min(hn::Max(ordered, hn::Set(d, low)), hn::Set(d, low + 255));
  const auto moved = hn::Add(hn::NearestInt(bounded), hn::Set(I(), static_cast<int32_t>(number.zero)));
  hn::StoreU(hn::DemoteTo(narrow, moved), narrow, reinterpret_cast<T*>(to));
}

template <class T>
HWY_INLINE void read_row(float* out, const uint8_t* in, int64_t n, const Number& number) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(real<T>(in + i, number), d, out + i);
  if (i >= n) return;
  HWY_ALIGN uint8_t bytes[HWY_MAX_BYTES] = {};
  HWY_ALIGN float numbers[HWY_MAX_BYTES / sizeof(float)];
  std::copy(in + i, in + n, bytes);
  hn::StoreU(real<T>(bytes, number), d, numbers);
  std::copy_n(numbers, n - i, out + i);
}
void read_any(float* out, const uint8_t* in, int64_t n, const Number& number) {
  number.is_signed ? read_row<int8_t>(out, in, n, number) : read_row<uint8_t>(out, in, n, number);
}

template <class T>
HWY_INLINE void write_row(uint8_t* out, const float* in, int64_t n, const Number& number) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store<T>(out + i, hn::LoadU(d, in + i), number);
  if (i >= n) return;
  HWY_ALIGN uint8_t bytes[HWY_MAX_BYTES];
  HWY_ALIGN float numbers[HWY_MAX_BYTES / sizeof(float)] = {};
  std::copy(in + i, in + n, numbers);
  store<T>(bytes, hn::LoadU(d, numbers), number);
  std::copy_n(bytes, n - i, out + i);
}
void write_any(uint8_t* out, const float* in, int64_t n, const Number& number) {
  number.is_signed ? write_row<int8_t>(out, in, n, number) : write_row<uint8_t>(out, in, n, number);
}

struct Sum {
  HWY_INLINE V operator()(V a, V b) const { return hn::Add(a, b); }
};
struct Times {
  HWY_INLINE V operator()(V a, V b) const { return hn::Mul(a, b); }
};

template <class A, class B, class T, class Function>
HWY_INLINE void combine_row(uint8_t* out, const uint8_t* a, const uint8_t* b, int64_t n, const Number (&numbers)[3]) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Number left = numbers[0], right = numbers[1], to = numbers[2];
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store<T>(out + i, Function()(real<A>(a + i, left), real<B>(b + i, right)), to);
  if (i >= n) return;
  HWY_ALIGN uint8_t bytes[3][HWY_MAX_BYTES] = {};
  std::copy(a + i, a + n, bytes[0]);
  std::copy(b + i, b + n, bytes[1]);
  store<T>(bytes[2], Function()(real<A>(bytes[0], left), real<B>(bytes[1], right)), to);
  std::copy_n(bytes[2], n - i, out + i);
}

// Both arguments and the result have the same type.
template <class Function>
void combine_any(uint8_t* out, const uint8_t* a, const uint8_t* b, int64_t n, const Number (&numbers)[3]) {
  if (numbers[0].is_signed)
    combine_row<int8_t, int8_t, int8_t, Function>(out, a, b, n, numbers);
  else
    combine_row<uint8_t, uint8_t, uint8_t, Function>(out, a, b, n, numbers);
}

constexpr ByteRows rows = {read_any, write_any, combine_any<Sum>, combine_any<Times>};

}  // namespace

const ByteRows* byte_rows_of() { return &rows; }

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::provider::cpu {

const ByteRows& byte_rows(SimdLevel level) { return *TENON_CPU_DISPATCH(level, byte_rows_of)(); }

}  // namespace tenon::provider::cpu
#endif
