// Products of a few long columns with vectors, included once per dispatch target. Columns are stored as in columns.h;
// row ranges begin and end at whole vectors.
#if defined(TENON_CPU_THIN_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_THIN_INL_H
#undef TENON_CPU_THIN_INL_H
#else
#define TENON_CPU_THIN_INL_H
#endif

#include "providers/cpu/linear_algebra/reflect-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

template <int count>
HWY_INLINE void measure_some(const float* columns, int64_t stride, const float* v, int64_t begin, int64_t end,
                             float* lengths) {
  const D d;
  V sums[count];
  for (int c = 0; c < count; ++c) sums[c] = hn::Zero(d);
  for (int64_t i = begin; i < end; i += static_cast<int64_t>(hn::Lanes(d))) {
    const V x = hn::Load(d, v + i);
    for (int c = 0; c < count; ++c) sums[c] = hn::MulAdd(x, hn::Load(d, columns + c * stride + i), sums[c]);
  }
  for (int c = 0; c < count; ++c) lengths[c] = hn::GetLane(hn::SumOfLanes(d, sums[c]));
}

// lengths[c] = dot product of column c and v.
HWY_MAYBE_UNUSED void measure(const float* columns, int64_t stride, int count, const float* v, int64_t begin,
                              int64_t end, float* lengths) {
  int c = 0;
  for (; c + 8 <= count; c += 8) measure_some<8>(columns + c * stride, stride, v, begin, end, lengths + c);
  for (; c < count; ++c) measure_some<1>(columns + c * stride, stride, v, begin, end, lengths + c);
}

template <int count>
HWY_INLINE void subtract_some(const float* columns, int64_t stride, const float* factors, float* HWY_RESTRICT from,
                              int64_t begin, int64_t end) {
  const D d;
  V by[count];
  for (int c = 0; c < count; ++c) by[c] = hn::Set(d, factors[c]);
  for (int64_t i = begin; i < end; i += static_cast<int64_t>(hn::Lanes(d))) {
    V x = hn::Load(d, from + i);
    for (int c = 0; c < count; ++c) x = hn::NegMulAdd(hn::Load(d, columns + c * stride + i), by[c], x);
    hn::Store(x, d, from + i);
  }
}

// Subtracts factors[c] times column c from `from`, for every c.
HWY_MAYBE_UNUSED void subtract(const float* columns, int64_t stride, int count, const float* factors, float* from,
                               int64_t begin, int64_t end) {
  int c = 0;
  for (; c + 8 <= count; c += 8) subtract_some<8>(columns + c * stride, stride, factors + c, from, begin, end);
  for (; c < count; ++c) subtract_some<1>(columns + c * stride, stride, factors + c, from, begin, end);
}

// to = the sum of `count` columns.
HWY_MAYBE_UNUSED void add_up(const float* columns, int64_t stride, int count, float* to, int64_t begin, int64_t end) {
  const D d;
  for (int64_t i = begin; i < end; i += static_cast<int64_t>(hn::Lanes(d))) {
    V x = hn::Load(d, columns + i);
    for (int c = 1; c < count; ++c) x = hn::Add(x, hn::Load(d, columns + c * stride + i));
    hn::Store(x, d, to + i);
  }
}

// y = a y + b x.
HWY_MAYBE_UNUSED void scale_and_add(float a, float* y, float b, const float* x, int64_t begin, int64_t end) {
  const D d;
  for (int64_t i = begin; i < end; i += static_cast<int64_t>(hn::Lanes(d))) {
    const V scaled = hn::Mul(hn::Load(d, y + i), hn::Set(d, a));
    hn::Store(hn::MulAdd(hn::Load(d, x + i), hn::Set(d, b), scaled), d, y + i);
  }
}

}  // namespace
}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
