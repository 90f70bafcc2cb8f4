// Resize and Upsample, axis by axis.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/layers.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

struct Axis {
  int64_t length = 0, result = 0;
  double scale = 1, roi_begin = 0, roi_end = 1;
};

struct Method {
  std::string mode, transform, nearest;
  double cubic_a = -0.75;
  bool exclude_outside = false, antialias = false;
};

// Element i of the result lies at (i + 1/2) / scale + offset of the input (if `half`), or at i / scale + offset. If the
// scale is 0, it lies at `offset`.
struct Grid {
  double scale, offset;
  bool half = false;
};

// The first element of the result lies at `begin`, the last at `end`, with equal steps between.
Grid between(double begin, double end, double result) {
  if (result == 1) return {0, (begin + end) / 2};
  return end == begin ? Grid{0, begin} : Grid{(result - 1) / (end - begin), begin};
}

Grid grid_of(const Axis& axis, const Method& method) {
  const double result = axis.scale * static_cast<double>(axis.length), last = static_cast<double>(axis.length - 1);
  if (method.transform == "asymmetric") return {axis.scale, 0};
  if (method.transform == "tf_half_pixel_for_nn") return {axis.scale, 0, true};
  if (method.transform == "align_corners") return result == 1 ? Grid{0, 0} : between(0, last, result);
  if (method.transform == "pytorch_half_pixel" && axis.result == 1) return {0, 0};
  if (method.transform == "half_pixel_symmetric") {
    // Input and result have the same centre. The result length was truncated to an integer.
    const double cut = static_cast<double>(axis.result) / result;
    return {axis.scale, static_cast<double>(axis.length) / 2 * (1 - cut) - 0.5, true};
  }
  if (method.transform == "tf_crop_and_resize") return between(axis.roi_begin * last, axis.roi_end * last, result);
  return {axis.scale, -0.5, true};
}

void check_axis(NodeContext& n, const Axis& axis) {
  if (!(axis.scale > 0) || axis.result < 0 || (axis.length == 0 && axis.result != 0)) {
    n.invalid(fmt::format("an axis of length {} cannot be resized to length {}", axis.length, axis.result));
  }
  const int64_t limit = int64_t{1} << 26;
  if (axis.result > limit || (axis.result != 0 && axis.length > limit / axis.result))
    n.invalid(fmt::format("an axis of length {} cannot be resized to length {}, which is too long", axis.length,
                          axis.result));
}

double weight_at(const Method& method, double t) {
  t = std::abs(t);
  if (method.mode == "linear") return std::max(0.0, 1 - t);
  const double a = method.cubic_a;
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? a * (((t - 5) * t + 8) * t - 4) : 0;
}

// With antialias, the weights are as wide as the scale demands. The op derives the width from the distance of result
// elements, which differs if corners are aligned, so here the axis is multiplied by a matrix of weights.
Tensor antialiased(NodeContext& n, const Tensor& x, int64_t dim, const Axis& axis, const Method& method,
                   const Grid& grid) {
  const double factor = std::min(axis.scale, 1.0);
  const auto reach = static_cast<int64_t>(std::ceil((method.mode == "linear" ? 1 : 2) / factor));
  std::vector<double> weights(static_cast<size_t>(axis.length * axis.result), 0.0);
  for (int64_t i = 0; i < axis.result; ++i) {
    const double at = static_cast<double>(i) + (grid.half ? 0.5 : 0);
    const double position = grid.scale == 0 ? grid.offset : at / grid.scale + grid.offset;
    double* row = weights.data() + i * axis.length;
    double sum = 0;
    const auto middle = static_cast<int64_t>(std::floor(position));
    for (int64_t place = middle - reach; place <= middle + reach; ++place) {
      const int64_t inside = std::clamp<int64_t>(place, 0, axis.length - 1);
      if (method.exclude_outside && inside != place) continue;
      const double weight = weight_at(method, (static_cast<double>(place) - position) * factor);
      row[inside] += weight;
      sum += weight;
    }
    std::for_each(row, row + axis.length, [sum](double& weight) { weight /= sum; });
  }
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor matrix = Tensor::copy_from_host(weights.data(), Dims{axis.result, axis.length}, DType::f64, n.device());
  const Tensor product = matmul(movedim(cast(x, dtype), dim, -1), t(cast(matrix, dtype)));
  return cast(movedim(product, -1, dim), x.dtype());
}

// True if interpolated integers are truncated, as in ONNX Runtime; else they are rounded, ties away from 0.
bool truncates(const Method& method) { return method.mode == "linear" && !method.antialias; }

// The type for interpolation, chosen so that rounding happens only after the last axis.
DType interpolated_as(DType dtype) {
  if (!is_floating(dtype)) return dtype_info(dtype).bits <= 16 ? DType::f32 : DType::f64;
  return dtype_info(dtype).bits < 32 ? DType::f32 : dtype;
}

TensorList resize(NodeContext& n, const std::vector<Axis>& axes, const Method& method) {
  Tensor x = n.input(0);
  const bool crops = method.transform == "tf_crop_and_resize";
  std::optional<double> fill;
  if (crops) fill = n.number("extrapolation_value", 0.0);
  const DType dtype = x.dtype();
  if (method.mode != "nearest") x = cast(x, interpolated_as(dtype));
  const std::string rounding = method.nearest.substr(method.nearest.rfind("round_", 0) == 0 ? 6 : 0);
  Dims result;
  for (const Axis& axis : axes) {
    check_axis(n, axis);
    result.push_back(axis.result);
  }
  if (checked_count(result) == 0) return {full(result, Scalar(0), dtype, x.device())};
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool cut = crops && (axes[i].roi_begin != 0 || axes[i].roi_end != 1);
    if (axes[i].length == axes[i].result && axes[i].scale == 1 && !cut) continue;
    const Grid grid = grid_of(axes[i], method);
    if (!(grid.scale >= 0)) n.unsupported("its roi ends before it begins along an axis");
    const bool stretched = method.antialias && method.mode != "nearest" && axes[i].scale < 1;
    if (stretched && !crops && grid.scale != axes[i].scale) {
      x = antialiased(n, x, static_cast<int64_t>(i), axes[i], method, grid);
      continue;
    }
    x = tenon::resize(x, static_cast<int64_t>(i), axes[i].result, grid.scale, grid.offset, method.mode, rounding,
                      grid.half, method.cubic_a, method.antialias, method.exclude_outside, fill);
  }
  if (is_floating(dtype) || x.dtype() == dtype || truncates(method)) return {cast(x, dtype)};
  return {cast(where(lt(x, Scalar(0.0)), ceil(sub(x, Scalar(0.5))), floor(add(x, Scalar(0.5)))), dtype)};
}

// The axes that the node names, or all axes.
std::vector<int64_t> named_axes(NodeContext& n) {
  std::vector<int64_t> named = n.integers("axes").value_or(std::vector<int64_t>());
  std::vector<bool> seen(static_cast<size_t>(n.rank(0)), false);
  for (int64_t& axis : named) {
    axis = n.normalise_axis(axis, n.rank(0));
    if (seen[static_cast<size_t>(axis)]) n.invalid(fmt::format("it names axis {} twice", axis));
    seen[static_cast<size_t>(axis)] = true;
  }
  for (int64_t axis = 0; axis < n.rank(0) && n.find("axes") == nullptr; ++axis) named.push_back(axis);
  return named;
}

std::vector<Axis> kept_axes(NodeContext& n) {
  std::vector<Axis> axes;
  for (const int64_t dim : n.dims(0)) axes.push_back({dim, dim, 1});
  return axes;
}

void check_count(NodeContext& n, std::string_view what, size_t count, const std::vector<int64_t>& named) {
  if (count == named.size()) return;
  n.invalid(fmt::format("there are {} {} for {} axes of an input of rank {}", count, what, named.size(), n.rank(0)));
}

std::vector<Axis> scaled_axes(NodeContext& n, const std::vector<double>& scales, const std::vector<int64_t>& named) {
  check_count(n, "scales", scales.size(), named);
  std::vector<Axis> axes = kept_axes(n);
  for (size_t i = 0; i < named.size(); ++i) {
    Axis& axis = axes[static_cast<size_t>(named[i])];
    const double result = std::floor(static_cast<double>(axis.length) * scales[i]);
    if (!(result >= 0 && result < 1e9))
      n.invalid(fmt::format("the scale {} would resize an axis of {} to length {}", scales[i], axis.length, result));
    axis.result = static_cast<int64_t>(result);
    axis.scale = scales[i];
  }
  return axes;
}

// With a policy, all axes share one scale, so that no axis is larger (or none is smaller) than requested.
std::vector<Axis> sized_axes(NodeContext& n, const std::vector<int64_t>& wanted, const std::vector<int64_t>& named) {
  check_count(n, "sizes", wanted.size(), named);
  std::vector<Axis> axes = kept_axes(n);
  const std::string policy = n.text("keep_aspect_ratio_policy", "stretch");
  const bool least = policy == "not_larger", common = least || policy == "not_smaller";
  double one = least ? std::numeric_limits<double>::infinity() : 0;
  for (size_t i = 0; i < named.size(); ++i) {
    Axis& axis = axes[static_cast<size_t>(named[i])];
    axis.result = wanted[i];
    axis.scale = axis.length == 0 ? 1 : static_cast<double>(axis.result) / static_cast<double>(axis.length);
    one = least ? std::min(one, axis.scale) : std::max(one, axis.scale);
  }
  for (size_t i = 0; common && i < named.size(); ++i) {
    Axis& axis = axes[static_cast<size_t>(named[i])];
    const double result = std::floor(one * static_cast<double>(axis.length) + 0.5);
    if (!(result >= 0 && result < 1e9)) n.invalid(fmt::format("the scale {} is too large", one));
    axis.scale = one;
    axis.result = static_cast<int64_t>(result);
  }
  return axes;
}

TensorList translate_resize(NodeContext& n) {
  const Method method{n.text("mode", "nearest"),
                      n.text("coordinate_transformation_mode", "half_pixel"),
                      n.text("nearest_mode", "round_prefer_floor"),
                      n.number("cubic_coeff_a", -0.75),
                      n.flag("exclude_outside", false),
                      n.flag("antialias", false)};
  const bool scaled = n.has(2) && n.rank(2) == 1 && n.dims(2)[0] != 0;
  if (scaled && n.has(3) && n.dims(3)[0] != 0) n.invalid("it has both scales and sizes; it may have one of them");
  const std::vector<int64_t> named = named_axes(n);
  std::vector<Axis> axes = scaled ? scaled_axes(n, n.numbers(2), named) : sized_axes(n, n.ints(3), named);
  if (method.transform == "tf_crop_and_resize") {
    const std::vector<double> roi = n.numbers(1);
    if (roi.size() != 2 * named.size())
      n.invalid(fmt::format("its roi has {} numbers; it needs {}", roi.size(), 2 * named.size()));
    for (size_t i = 0; i < named.size(); ++i) {
      axes[static_cast<size_t>(named[i])].roi_begin = roi[i];
      axes[static_cast<size_t>(named[i])].roi_end = roi[named.size() + i];
    }
  }
  return resize(n, axes, method);
}

// Before opset 11, element i of the result is element floor(i / scale) of the input.
TensorList upsample(NodeContext& n) {
  std::vector<double> scales;
  if (n.version() < 9) {
    for (float scale : n.require("scales", Attribute::Kind::numbers).floats)
      scales.push_back(static_cast<double>(scale));
  } else {
    scales = n.numbers(1);
  }
  return resize(n, scaled_axes(n, scales, named_axes(n)), {n.text("mode", "nearest"), "asymmetric", "floor"});
}

}  // namespace

// An attribute has the integer scales.
TensorList translate_blocked_upsample(NodeContext& n) {
  std::vector<double> scales;
  for (const int64_t scale : n.integers("scales").value_or(std::vector<int64_t>()))
    scales.push_back(static_cast<double>(scale));
  const std::string mode = n.text("mode", "nearest");
  const std::string transform =
      mode == "nearest" ? "asymmetric" : n.text("coordinate_transformation_mode", "asymmetric");
  return resize(n, scaled_axes(n, scales, named_axes(n)), {mode, transform, "floor"});
}

namespace {

constexpr Translator kResizeRows[] = {
    {.op_type = "Resize", .since = 10, .until = 10, .translate = upsample},
    {.op_type = "Resize", .since = 11, .translate = translate_resize},
    {.op_type = "Upsample", .since = 7, .until = 9, .translate = upsample},
};

}  // namespace

std::span<const Translator> resize_translators() { return kResizeRows; }

}  // namespace tenon::onnx
