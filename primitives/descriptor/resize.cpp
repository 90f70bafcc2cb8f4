// The rules of resize, as stated in ep_api.h above its attributes.
#include <cmath>

#include "primitives/descriptor/check.h"

namespace tenon::descriptor {
namespace {

Status check_grid(const Desc& desc, const ep_resize_attributes& at, int32_t rank) {
  for (int32_t axis = 0; axis < EP_MAX_RANK; ++axis) {
    const bool used = axis < rank;
    if (!std::isfinite(at.scale[axis]) || !std::isfinite(at.offset[axis]) || at.scale[axis] < 0) {
      return wrong(desc, "scale {} and offset {} of axis {} must be finite, the scale at least 0.", at.scale[axis],
                   at.offset[axis], axis);
    }
    if (!used && (at.scale[axis] != 0 || at.offset[axis] != 0)) {
      return wrong(desc, "has scale {} and offset {} of axis {}, beyond rank {}.", at.scale[axis], at.offset[axis],
                   axis, rank);
    }
  }
  return {};
}

}  // namespace

Status check_resize(const Desc& desc) {
  const ep_resize_attributes& at = desc.attributes.resize;
  const Operand& src = get(desc, EP_ROLE_SRC);
  const Operand& dst = get(desc, EP_ROLE_DST);
  constexpr int32_t known =
      EP_RESIZE_FLAG_HALF | EP_RESIZE_FLAG_ANTIALIAS | EP_RESIZE_FLAG_EXCLUDE_OUTSIDE | EP_RESIZE_FLAG_EXTRAPOLATE;
  if ((at.flags & ~known) != 0 || at.reserved != 0) {
    return unsupported(desc, "has flags {}, of which some are unknown.", at.flags);
  }
  const bool nearest = at.mode == EP_RESIZE_NEAREST;
  if (nearest ? at.round < EP_RESIZE_FLOOR || at.round > EP_RESIZE_PREFER_CEIL : at.round != 0) {
    return wrong(desc, "round is {}; it must be {}.", at.round, nearest ? "1 to 4" : "0 but for nearest");
  }
  if (nearest && (at.flags & (EP_RESIZE_FLAG_ANTIALIAS | EP_RESIZE_FLAG_EXCLUDE_OUTSIDE)) != 0) {
    return wrong(desc, "has flags {}, of which nearest takes neither antialias nor exclude_outside.", at.flags);
  }
  if (!std::isfinite(at.cubic) || (at.mode != EP_RESIZE_CUBIC && at.cubic != 0)) {
    return wrong(desc, "cubic is {}; it must be finite, and 0 but for cubic.", at.cubic);
  }
  if (dst.rank != src.rank) return wrong(desc, "'dst' has rank {} but 'src' has {}.", dst.rank, src.rank);
  TENON_RETURN_IF_ERROR(check_grid(desc, at, src.rank));
  if (!nearest) TENON_RETURN_IF_ERROR(is_float(desc, src));
  return same_type(desc, dst, src);
}

}  // namespace tenon::descriptor
