// Interpolation of tensors to another grid of points.
#include <cmath>
#include <limits>

#include "core/ops/functors/apply.h"
#include "core/ops/functors/window.h"
#include "core/ops/sizes.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

int32_t choice(std::string_view what, std::string_view given, std::initializer_list<std::string_view> names) {
  int32_t value = 0;
  std::string all;
  for (const std::string_view name : names) {
    ++value;
    if (name == given) return value;
    all.append(all.empty() ? "" : ", ").append(name);
  }
  refuse("resize", "{} is '{}'; it may be {}.", what, given, all);
}

// For axes that are not resized: point i is at element i.
ResizeAttributes unchanged(const Tensor& input, bool half) {
  ResizeAttributes attributes{};
  attributes.grid.flags = half ? EP_RESIZE_FLAG_HALF : 0;
  const Dims& dims = input.dims();
  attributes.dims = DimsAttribute::of({dims.data(), dims.size()});
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    attributes.grid.scale[axis] = 1;
    attributes.grid.offset[axis] = half ? -0.5 : 0;
  }
  return attributes;
}

Tensor resized(std::string_view op, const Tensor& input, const ResizeAttributes& attributes, Scalar fill = 0.0) {
  if (!is_empty(input)) return apply(OpId::resize, {&input}, &attributes, {&fill, 1});
  const Dims dims = attributes.dims.dims();
  if (element_count(dims) != 0) {
    refuse(op, "input of shape {} has no elements, but the result would.", input.dims());
  }
  return with_history_of(input, tenon::zeros(dims, input.dtype(), input.device()));
}

}  // namespace

Tensor resize(const Tensor& input, int64_t dim, int64_t size, double scale, double offset, std::string_view mode,
              std::string_view rounding, bool half_pixel, double cubic, bool antialias, bool exclude_outside,
              std::optional<double> fill) {
  require_defined("resize", "input", input);
  if (input.rank() < 1) refuse("resize", "input has rank 0; it must have at least 1.");
  const int32_t axis = axis_of("resize", dim, input.rank());
  if (size < 0) refuse("resize", "size is {}; it must not be negative.", size);
  if (!(scale >= 0) || !std::isfinite(scale) || !std::isfinite(offset)) {
    refuse("resize", "scale {} and offset {} must be finite, scale at least 0.", scale, offset);
  }
  ResizeAttributes attributes = unchanged(input, half_pixel);
  ep_resize_attributes& grid = attributes.grid;
  grid.mode = choice("mode", mode, {"nearest", "linear", "cubic"});
  const bool nearest = grid.mode == EP_RESIZE_NEAREST;
  if (nearest) grid.round = choice("rounding", rounding, {"floor", "ceil", "prefer_floor", "prefer_ceil"});
  if (!nearest && !is_floating(input.dtype())) {
    refuse("resize", "mode {} takes floating-point elements, not {}.", mode, dtype_name(input.dtype()));
  }
  if (grid.mode == EP_RESIZE_CUBIC) grid.cubic = cubic;
  if (antialias && !nearest) grid.flags |= EP_RESIZE_FLAG_ANTIALIAS;
  if (exclude_outside && !nearest) grid.flags |= EP_RESIZE_FLAG_EXCLUDE_OUTSIDE;
  if (fill) grid.flags |= EP_RESIZE_FLAG_EXTRAPOLATE;
  attributes.dims.values[axis] = size;
  grid.scale[axis] = scale;
  grid.offset[axis] = offset;
  return resized("resize", input, attributes, Scalar(fill.value_or(0)));
}

namespace {

// `input` of integers, resized along one axis after another, the last one first, and rounded to integers each time,
// like u8 in PyTorch.
Tensor resized_integers(const Tensor& input, const ResizeAttributes& attributes) {
  const double end = std::numeric_limits<double>::infinity();
  const Scalar least = in_dtype(Scalar(-end), input.dtype()), most = in_dtype(Scalar(end), input.dtype());
  Tensor result = tenon::cast(input, dtype_size(input.dtype()) > 2 ? DType::f64 : DType::f32);
  for (int32_t axis = input.rank(); axis-- > 2;) {
    ResizeAttributes along = unchanged(result, false);
    along.grid.mode = attributes.grid.mode;
    along.grid.flags = attributes.grid.flags & ~EP_RESIZE_FLAG_HALF;
    along.grid.cubic = attributes.grid.cubic;
    along.grid.scale[axis] = attributes.grid.scale[axis];
    along.grid.offset[axis] = attributes.grid.offset[axis];
    if ((attributes.grid.flags & EP_RESIZE_FLAG_HALF) != 0 && along.grid.scale[axis] != 0)
      along.grid.offset[axis] += 0.5 / along.grid.scale[axis];
    along.dims.values[axis] = attributes.dims.values[axis];
    result = tenon::floor(tenon::add(resized("interpolate", result, along), Scalar(0.5)));
    result = tenon::clamp(result, Scalar(least.to_double()), Scalar(most.to_double()));
  }
  return tenon::cast(result, input.dtype());
}

}  // namespace

Tensor interpolate(const Tensor& input, IntList size, std::optional<double> scale_factor, std::string_view mode,
                   bool align_corners, bool recompute_scale_factor, bool antialias) {
  constexpr std::string_view op = "interpolate";
  require_defined(op, "input", input);
  const int32_t spatial = window::spatial_rank(op, input);
  if (size.empty() == !scale_factor.has_value()) refuse("interpolate", "give either size or scale_factor.");
  int64_t sizes[window::kMaxSpatialRank];
  if (!size.empty()) {
    window::per_axis(op, "size", size, spatial, sizes);
  } else {
    if (!(*scale_factor > 0) || !std::isfinite(*scale_factor)) {
      refuse("interpolate", "scale_factor is {}; it must be above 0 and finite.", *scale_factor);
    }
    for (int32_t i = 0; i < spatial; ++i) {
      sizes[i] = static_cast<int64_t>(std::floor(static_cast<double>(input.dims()[i + 2]) * *scale_factor));
    }
  }
  if (mode == "area")
    return tenon::adaptive_avg_pool(input,
                                    IntList(Dims(std::span<const int64_t>(sizes, static_cast<size_t>(spatial)))));
  const bool exact = mode == "nearest-exact";
  const bool nearest = mode == "nearest" || exact;
  const bool linear = mode == (spatial == 1 ? "linear" : spatial == 2 ? "bilinear" : "trilinear");
  const bool cubic = mode == "bicubic" && spatial == 2;
  if (!nearest && !linear && !cubic) {
    refuse("interpolate", "mode is '{}', which is not possible for input {} with {} spatial axes.", mode, input.dims(),
           spatial);
  }
  if (align_corners && nearest) refuse("interpolate", "mode {} takes no align_corners.", mode);
  // With antialias, positions refer to the centres of elements, even if corners are aligned.
  const bool half = exact || (!nearest && (antialias || !align_corners));
  ResizeAttributes attributes = unchanged(input, half);
  ep_resize_attributes& grid = attributes.grid;
  grid.mode = nearest ? EP_RESIZE_NEAREST : cubic ? EP_RESIZE_CUBIC : EP_RESIZE_LINEAR;
  grid.round = nearest ? EP_RESIZE_FLOOR : 0;
  grid.cubic = !cubic ? 0 : antialias ? -0.5 : -0.75;
  if (antialias && !nearest) grid.flags |= EP_RESIZE_FLAG_ANTIALIAS | EP_RESIZE_FLAG_EXCLUDE_OUTSIDE;
  for (int32_t i = 0; i < spatial; ++i) {
    const auto from = static_cast<double>(input.dims()[i + 2]);
    const auto to = static_cast<double>(sizes[i]);
    attributes.dims.values[i + 2] = sizes[i];
    double& scale = grid.scale[i + 2];
    double& offset = grid.offset[i + 2];
    if (align_corners) {
      scale = sizes[i] > 1 && from > 1 ? (to - 1) / (from - 1) : 0;
      offset = half ? -0.5 : 0;
      continue;
    }
    scale = scale_factor && !recompute_scale_factor ? *scale_factor : from > 0 ? to / from : 1;
    // A position that is an integer except for rounding of the scale counts as an integer.
    offset = nearest ? 1e-9 : -0.5;
    if (nearest && from == to) {
      scale = 1;
      offset = half ? -0.5 : 0;
    }
  }
  if (!nearest && !is_floating(input.dtype())) return resized_integers(input, attributes);
  return resized(op, input, attributes);
}

}  // namespace tenon::functors
