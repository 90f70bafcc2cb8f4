// Copies of short rows, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/elementwise/short_rows.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "hwy/highway.h"
#include "providers/cpu/elementwise/short_rows.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// The number of rows, of n that are `stride` apart, at which a vector of `lanes` elements does not pass the end of the
// last row. `length` < lanes.
HWY_INLINE int64_t whole_rows(int64_t n, int64_t stride, int64_t length, int64_t lanes) {
  return stride == 0 ? 0 : std::max<int64_t>(n - (lanes - length + stride - 1) / stride, 0);
}

// Moves n rows of vectors of D and of one last vector that overlaps them. Rows that are shorter than D have shorter
// vectors.
template <class D, class T>
HWY_INLINE void move_exactly(D d, T* out, int64_t dst_stride, const T* in, int64_t src_stride, int64_t n,
                             int64_t length) {
  constexpr auto lanes = static_cast<int64_t>(hn::MaxLanes(D()));
  if constexpr (lanes > 1) {
    if (length < lanes) return move_exactly(hn::Half<D>(), out, dst_stride, in, src_stride, n, length);
  }
  const int64_t last = length - lanes;
  for (int64_t i = 0; i < n; ++i, out += dst_stride, in += src_stride) {
    for (int64_t j = 0; j < last; j += lanes) hn::StoreU(hn::LoadU(d, in + j), d, out + j);
    hn::StoreU(hn::LoadU(d, in + last), d, out + last);
  }
}

// If rows are shorter than a vector and follow each other, each row is written by one vector; the next row overwrites
// the elements beyond its end.
template <class T>
void move(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t n, int64_t length) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  T* out = static_cast<T*>(dst);
  const T* in = static_cast<const T*>(src);
  int64_t i = 0;
  if (length < lanes && dst_stride == length) {
    const int64_t whole = std::min(whole_rows(n, length, length, lanes), whole_rows(n, src_stride, length, lanes));
    for (; i < whole; ++i, out += length, in += src_stride) hn::StoreU(hn::LoadU(d, in), d, out);
  }
  move_exactly(d, out, dst_stride, in, src_stride, n - i, length);
}

template <class T>
void repeat(void* dst, const void* src, int64_t src_stride, int64_t n, int64_t length) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  T* out = static_cast<T*>(dst);
  const T* in = static_cast<const T*>(src);
  int64_t i = 0;
  if (length >= lanes) {
    const int64_t last = length - lanes;
    for (; i < n; ++i, out += length, in += src_stride) {
      const auto all = hn::Set(d, *in);
      for (int64_t j = 0; j < last; j += lanes) hn::StoreU(all, d, out + j);
      hn::StoreU(all, d, out + last);
    }
    return;
  }
  const int64_t whole = whole_rows(n, length, length, lanes);
  for (; i < whole; ++i, out += length, in += src_stride) hn::StoreU(hn::Set(d, *in), d, out);
  for (; i < n; ++i, out += length, in += src_stride) std::fill_n(out, length, *in);
}

}  // namespace

ShortRows chosen_short_rows(int32_t size) {
  switch (size) {
    case 1: return {repeat<uint8_t>, move<uint8_t>};
    case 2: return {repeat<uint16_t>, move<uint16_t>};
    case 4: return {repeat<uint32_t>, move<uint32_t>};
    default: return {repeat<uint64_t>, move<uint64_t>};
  }
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

ShortRows short_rows(SimdLevel level, int32_t size) { return TENON_CPU_DISPATCH(level, chosen_short_rows)(size); }

}  // namespace tenon::provider::cpu
#endif
