#include "providers/cpu/resize/taps.h"

#include <algorithm>
#include <cmath>

namespace tenon::provider::cpu {
namespace {

int64_t nearest(int32_t round, double x) {
  switch (round) {
    case EP_RESIZE_FLOOR: return static_cast<int64_t>(std::floor(x));
    case EP_RESIZE_CEIL: return static_cast<int64_t>(std::ceil(x));
    case EP_RESIZE_PREFER_FLOOR: return static_cast<int64_t>(std::ceil(x - 0.5));
    default: return static_cast<int64_t>(std::floor(x + 0.5));
  }
}

double weight_at(const ep_resize_attributes& at, double t) {
  const double d = std::abs(t);
  if (at.mode == EP_RESIZE_LINEAR) return std::max(0.0, 1 - d);
  if (d <= 1) return ((at.cubic + 2) * d - (at.cubic + 3)) * d * d + 1;
  return d < 2 ? at.cubic * (((d - 5) * d + 8) * d - 4) : 0;
}

}  // namespace

Taps taps_of(const ep_resize_attributes& at, int32_t axis, int64_t from, int64_t to) {
  const double half = (at.flags & EP_RESIZE_FLAG_HALF) != 0 ? 0.5 : 0;
  const double scale = at.scale[axis];
  const bool stretched = (at.flags & EP_RESIZE_FLAG_ANTIALIAS) != 0 && scale > 0 && scale < 1;
  const bool excluding = (at.flags & EP_RESIZE_FLAG_EXCLUDE_OUTSIDE) != 0;
  const double factor = stretched ? scale : 1;
  const int64_t reach = at.mode == EP_RESIZE_LINEAR ? 1 : 2;
  const auto span = static_cast<int64_t>(std::ceil(static_cast<double>(reach) / factor));
  Taps taps;
  taps.count = at.mode == EP_RESIZE_NEAREST ? 1 : 2 * span;
  taps.identity = from == to;
  for (int64_t i = 0; i < to; ++i) {
    const double x = scale == 0 ? at.offset[axis] : (static_cast<double>(i) + half) / scale + at.offset[axis];
    taps.outside.push_back(x < 0 || x > static_cast<double>(from - 1));
    taps.identity = taps.identity && x == static_cast<double>(i);
    if (at.mode == EP_RESIZE_NEAREST) {
      taps.places.push_back(std::clamp<int64_t>(nearest(at.round, x), 0, from - 1));
      continue;
    }
    // Elements floor(x) - span + 1 to floor(x) + span: the ones within distance span.
    double sum = 0;
    const size_t begin = taps.weights.size();
    for (int64_t k = 0; k < taps.count; ++k) {
      const int64_t place = static_cast<int64_t>(std::floor(x)) - span + 1 + k;
      const bool inside = place >= 0 && place < from;
      const double weight = excluding && !inside ? 0 : weight_at(at, (static_cast<double>(place) - x) * factor);
      taps.places.push_back(std::clamp<int64_t>(place, 0, from - 1));
      taps.weights.push_back(weight);
      sum += weight;
    }
    for (size_t k = begin; (stretched || excluding) && k < taps.weights.size(); ++k) taps.weights[k] /= sum;
  }
  return taps;
}

}  // namespace tenon::provider::cpu
