// Positions of keys in a short list by comparing each key with all, and the position of the least key; compiled once
// per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/order/few.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "hwy/highway.h"
#include "providers/cpu/order/few.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<int32_t>;
using V = hn::Vec<D>;

HWY_INLINE int64_t lanes_of() { return static_cast<int64_t>(hn::Lanes(D())); }

// counts[i] = the number of keys less than keys[i], for as many i as kVectors vectors have lanes.
template <int kVectors>
HWY_INLINE void count_less(const int32_t* mine, const int32_t* keys, int64_t n, int32_t* counts) {
  const D d;
  V one[kVectors], less[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    one[v] = hn::LoadU(d, mine + v * lanes_of());
    less[v] = hn::Zero(d);
  }
  for (int64_t j = 0; j < n; ++j) {
    const V other = hn::Set(d, keys[j]);
    for (int v = 0; v < kVectors; ++v) less[v] = hn::Sub(less[v], hn::VecFromMask(d, hn::Lt(other, one[v])));
  }
  for (int v = 0; v < kVectors; ++v) hn::StoreU(less[v], d, counts + v * lanes_of());
}

void find_places(const uint32_t* keys, int64_t n, uint32_t* places) {
  const int64_t lanes = lanes_of();
  const int64_t whole = (n + lanes - 1) / lanes * lanes;
  HWY_ALIGN int32_t signed_keys[few_keys];
  HWY_ALIGN int32_t counts[few_keys];
  for (int64_t i = 0; i < n; ++i) signed_keys[i] = static_cast<int32_t>(keys[i] ^ 0x80000000U);
  for (int64_t i = n; i < whole; ++i) signed_keys[i] = 0;
  int64_t at = 0;
  for (; at + 2 * lanes <= whole; at += 2 * lanes) count_less<2>(signed_keys + at, signed_keys, n, counts + at);
  for (; at < whole; at += lanes) count_less<1>(signed_keys + at, signed_keys, n, counts + at);
  int32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += counts[i];
  if (2 * sum == n * (n - 1)) {  // all keys differ
    for (int64_t i = 0; i < n; ++i) places[i] = static_cast<uint32_t>(counts[i]);
    return;
  }
  int32_t before[few_keys] = {};  // number of equal keys so far, by the number of lesser keys
  for (int64_t i = 0; i < n; ++i) places[i] = static_cast<uint32_t>(counts[i] + before[counts[i]]++);
}

int64_t find_least(const uint32_t* keys, int64_t n) {
  const hn::ScalableTag<uint32_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  uint32_t least = keys[n - 1];
  int64_t i = 0;
  if (n >= lanes) {
    auto some = hn::LoadU(d, keys), others = some;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
      some = hn::Min(some, hn::LoadU(d, keys + i));
      others = hn::Min(others, hn::LoadU(d, keys + i + lanes));
    }
    least = hn::GetLane(hn::MinOfLanes(d, hn::Min(some, others)));
  }
  for (; i < n; ++i) least = std::min(least, keys[i]);
  const auto wanted = hn::Set(d, least);
  for (i = 0; i + lanes <= n; i += lanes) {
    const auto found = hn::Eq(hn::LoadU(d, keys + i), wanted);
    if (!hn::AllFalse(d, found)) return i + static_cast<int64_t>(hn::FindFirstTrue(d, found));
  }
  while (keys[i] != least) ++i;
  return i;
}

}  // namespace

PlacesFunction places_of_target() { return find_places; }
LeastFunction least_of_target() { return find_least; }

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

PlacesFunction places_function(SimdLevel level) { return TENON_CPU_DISPATCH(level, places_of_target)(); }
LeastFunction least_function(SimdLevel level) { return TENON_CPU_DISPATCH(level, least_of_target)(); }

}  // namespace tenon::provider::cpu
#endif
