// Selection of updates, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/movement/pick.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
#include "providers/cpu/movement/pick.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<int64_t, most_lanes>;

HWY_INLINE hn::Vec<D> load(const int64_t* from) { return hn::LoadU(D(), from); }
HWY_INLINE hn::Vec<D> load(const int32_t* from) {
  return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<int32_t, D>(), from));
}

// Highway 1.0 uses a table of 2 KiB for 64-bit numbers, which gcc copies to the stack on each call.
HWY_INLINE hn::Vec<D> compress(hn::Vec<D> numbers, hn::Mask<D> fits) {
#if HWY_TARGET == HWY_AVX3
  return hn::Vec<D>{_mm512_maskz_compress_epi64(fits.raw, numbers.raw)};
#else
  return hn::Compress(numbers, fits);
#endif
}

template <class Index>
void pick_of(const Index* indices, int64_t n, int64_t length, int64_t low, int64_t high, Picked* out) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d), past = hn::Set(d, length), first = hn::Set(d, low), end = hn::Set(d, high);
  auto number = hn::Iota(d, 0);
  auto outside = hn::Lt(zero, zero);
  int64_t count = 0, i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto given = load(indices + i);
    const auto position = hn::Add(given, hn::IfThenElseZero(hn::Lt(given, zero), past));
    outside = hn::Or(outside, hn::Or(hn::Lt(position, zero), hn::Not(hn::Lt(position, past))));
    const auto fits = hn::AndNot(hn::Lt(position, first), hn::Lt(position, end));
    hn::StoreU(compress(number, fits), d, out->numbers + count);
    hn::StoreU(compress(position, fits), d, out->positions + count);
    count += static_cast<int64_t>(hn::CountTrue(d, fits));
    number = hn::Add(number, hn::Set(d, lanes));
  }
  out->is_outside = !hn::AllFalse(d, outside);
  for (; i < n; ++i) {
    const int64_t position = indices[i] < 0 ? indices[i] + length : indices[i];
    out->is_outside |= position < 0 || position >= length;
    out->numbers[count] = i;
    out->positions[count] = position;
    count += static_cast<int64_t>(position >= low && position < high);
  }
  out->count = count;
}

}  // namespace

Pick<int64_t> wide_pick() { return pick_of<int64_t>; }
Pick<int32_t> narrow_pick() { return pick_of<int32_t>; }

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

template <>
Pick<int64_t> pick(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, wide_pick)();
}
template <>
Pick<int32_t> pick(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, narrow_pick)();
}

}  // namespace tenon::provider::cpu
#endif
