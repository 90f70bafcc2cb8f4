// resize: the weights of each axis, and their products.
#include <algorithm>
#include <cmath>
#include <vector>

#include "primitives/reference/call.h"

namespace tenon::reference {
namespace {

struct Tap {
  int64_t place;
  double weight;
};

// The elements that one index of DST reads along one axis.
struct Taps {
  std::vector<Tap> taps;
  bool outside = false;
};

double nearest(int32_t round, double x) {
  switch (round) {
    case EP_RESIZE_FLOOR: return std::floor(x);
    case EP_RESIZE_CEIL: return std::ceil(x);
    case EP_RESIZE_PREFER_FLOOR: return std::ceil(x - 0.5);
    default: return std::floor(x + 0.5);
  }
}

double weight_at(const ep_resize_attributes& at, double t) {
  t = std::abs(t);
  if (at.mode == EP_RESIZE_LINEAR) return std::max(0.0, 1 - t);
  const double a = at.cubic;
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

Taps taps_of(const ep_resize_attributes& at, int32_t axis, int64_t index, int64_t length) {
  const double half = at.flags & EP_RESIZE_FLAG_HALF ? 0.5 : 0;
  const double scale = at.scale[axis];
  const double x = scale == 0 ? at.offset[axis] : (static_cast<double>(index) + half) / scale + at.offset[axis];
  const auto edge = [&](int64_t place) { return std::clamp<int64_t>(place, 0, length - 1); };
  Taps result;
  result.outside = x < 0 || x > static_cast<double>(length - 1);
  if (at.mode == EP_RESIZE_NEAREST) {
    result.taps.push_back({edge(static_cast<int64_t>(nearest(at.round, x))), 1});
    return result;
  }
  const bool stretched = (at.flags & EP_RESIZE_FLAG_ANTIALIAS) != 0 && scale > 0 && scale < 1;
  const bool excluding = (at.flags & EP_RESIZE_FLAG_EXCLUDE_OUTSIDE) != 0;
  const double factor = stretched ? scale : 1;
  const auto reach = static_cast<int64_t>(std::ceil((at.mode == EP_RESIZE_LINEAR ? 1 : 2) / factor));
  const auto floor = static_cast<int64_t>(std::floor(x));
  double sum = 0;
  for (int64_t place = floor - reach; place <= floor + reach; ++place) {
    const double weight = weight_at(at, (static_cast<double>(place) - x) * factor);
    if (weight == 0 || (excluding && place != edge(place))) continue;
    result.taps.push_back({edge(place), weight});
    sum += weight;
  }
  for (Tap& tap : result.taps) {
    if (stretched || excluding) tap.weight /= sum;
  }
  return result;
}

// The sum over the taps of axes from `axis` on.
double blend(const Operand& src, const std::vector<const Taps*>& taps, size_t axis, int64_t* at) {
  if (axis == taps.size()) return src.get<double>(at);
  double sum = 0;
  for (const Tap& tap : taps[axis]->taps) {
    at[axis] = tap.place;
    sum += tap.weight * blend(src, taps, axis + 1, at);
  }
  return sum;
}

}  // namespace

void run_resize(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const ep_resize_attributes& at = call.desc.attributes.resize;
  std::vector<std::vector<Taps>> all(static_cast<size_t>(src.rank()));
  for (int32_t axis = 0; axis < src.rank(); ++axis) {
    for (int64_t i = 0; i < dst.dim(axis); ++i) {
      all[static_cast<size_t>(axis)].push_back(taps_of(at, axis, i, src.dim(axis)));
    }
  }
  const bool extrapolates = (at.flags & EP_RESIZE_FLAG_EXTRAPOLATE) != 0;
  with_compute_type(dst.dtype(), [&](auto type) {
    using T = decltype(type);
    for_each_index(dst.dims(), [&](const int64_t* out) {
      std::vector<const Taps*> taps;
      for (size_t axis = 0; axis < all.size(); ++axis) taps.push_back(&all[axis][static_cast<size_t>(out[axis])]);
      const bool outside = std::any_of(taps.begin(), taps.end(), [](const Taps* each) { return each->outside; });
      if (extrapolates && outside) return dst.set(out, call.parameter<T>(0));
      int64_t in[EP_MAX_RANK] = {};
      if (at.mode != EP_RESIZE_NEAREST) return dst.set(out, blend(src, taps, 0, in));
      for (size_t axis = 0; axis < taps.size(); ++axis) in[axis] = taps[axis]->taps[0].place;
      dst.set(out, src.get<T>(in));
    });
  });
}

}  // namespace tenon::reference
