// Resize and Upsample. Every mode is linear and separable: along each axis the result is a matrix of weights times the
// input (for nearest: a selection of elements). Shapes and attributes alone give the matrix.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
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
  bool exclude_outside = false;
};

// The position of element i of the result in the input, in elements.
double source_of(const Axis& axis, const Method& method, int64_t i) {
  const auto x = static_cast<double>(i);
  const double result = axis.scale * static_cast<double>(axis.length), last = static_cast<double>(axis.length - 1);
  if (method.transform == "asymmetric") return x / axis.scale;
  if (method.transform == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (method.transform == "align_corners") return result == 1 ? 0 : x * last / (result - 1);
  if (method.transform == "pytorch_half_pixel" && axis.result == 1) return 0;
  if (method.transform == "half_pixel_symmetric") {
    // Input and result share their centre. The result was truncated to whole elements.
    const double cut = static_cast<double>(axis.result) / result;
    return static_cast<double>(axis.length) / 2 * (1 - cut) + (x + 0.5) / axis.scale - 0.5;
  }
  if (method.transform != "tf_crop_and_resize") return (x + 0.5) / axis.scale - 0.5;
  const double extent = (axis.roi_end - axis.roi_begin) * last;
  return axis.roi_begin * last + (result == 1 ? extent / 2 : x * extent / (result - 1));
}

int64_t nearest_index(double x, const std::string& rounding, int64_t length) {
  const double below = std::floor(x);
  double chosen = below;
  if (rounding == "ceil") chosen = std::ceil(x);
  if (rounding == "round_prefer_floor") chosen = x - below > 0.5 ? below + 1 : below;
  if (rounding == "round_prefer_ceil") chosen = x - below >= 0.5 ? below + 1 : below;
  return static_cast<int64_t>(std::clamp(chosen, 0.0, static_cast<double>(length - 1)));
}

// Keys' cubic convolution: weights of the elements at distances 1 + t, t, 1 - t, 2 - t.
// R. Keys, Cubic convolution interpolation for digital image processing, 1981.
void cubic_weights(double t, double a, double* weights) {
  const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  weights[0] = far(1 + t);
  weights[1] = near(t);
  weights[2] = near(1 - t);
  weights[3] = far(2 - t);
}

// Adds to `row` the weights of the input's elements for the result at position `x`.
void add_weights(double x, const Method& method, int64_t length, float* row) {
  const double below = std::floor(x), t = x - below;
  double weights[4] = {0, 1 - t, t, 0};
  if (method.mode == "cubic") cubic_weights(t, method.cubic_a, weights);
  double sum = 0;
  for (int64_t tap = 0; tap < 4; ++tap) {
    const int64_t at = static_cast<int64_t>(below) - 1 + tap;
    if (method.exclude_outside && (at < 0 || at >= length)) weights[tap] = 0;
    sum += weights[tap];
  }
  for (int64_t tap = 0; tap < 4; ++tap) {
    const int64_t at = std::clamp<int64_t>(static_cast<int64_t>(below) - 1 + tap, 0, length - 1);
    row[at] += static_cast<float>(method.exclude_outside && sum != 0 ? weights[tap] / sum : weights[tap]);
  }
}

Tensor resize_axis(const Tensor& x, int64_t number, const Axis& axis, const Method& method) {
  if (method.mode == "nearest") {
    std::vector<int64_t> picks;
    for (int64_t i = 0; i < axis.result; ++i)
      picks.push_back(nearest_index(source_of(axis, method, i), method.nearest, axis.length));
    return gather_slices(x, number, Tensor::from<int64_t>(picks, {axis.result}, x.device()));
  }
  std::vector<float> weights(static_cast<size_t>(axis.length * axis.result), 0.0f);
  for (int64_t i = 0; i < axis.result; ++i)
    add_weights(source_of(axis, method, i), method, axis.length, weights.data() + i * axis.length);
  const Tensor matrix = cast(Tensor::from<float>(weights, {axis.result, axis.length}, x.device()), x.dtype());
  return transpose(matmul(transpose(x, number, -1), t(matrix)), number, -1);
}

// True where the result lies inside the input. Undefined if it lies inside everywhere.
Tensor inside(const Tensor& x, int64_t number, const Axis& axis, const Method& method) {
  std::vector<uint8_t> flags;
  for (int64_t i = 0; i < axis.result; ++i) {
    const double at = source_of(axis, method, i);
    flags.push_back(at >= 0 && at <= static_cast<double>(axis.length - 1));
  }
  if (std::find(flags.begin(), flags.end(), 0) == flags.end()) return Tensor();
  Dims shape = Dims::filled(x.rank(), 1);
  shape[number] = axis.result;
  return Tensor::copy_from_host(flags.data(), shape, DType::boolean, x.device());
}

void check_axis(NodeContext& n, const Axis& axis) {
  if (!(axis.scale > 0) || axis.result < 0 || (axis.length == 0 && axis.result != 0)) {
    n.invalid(fmt::format("an axis of length {} cannot become {} long", axis.length, axis.result));
  }
  const int64_t limit = int64_t{1} << 26;
  if (axis.result > limit || (axis.result != 0 && axis.length > limit / axis.result))
    n.invalid("the axes are too long to be resized");
}

TensorList resize(NodeContext& n, const std::vector<Axis>& axes, const Method& method) {
  Tensor x = n.input(0);
  if (method.mode != "nearest" && !is_floating(x.dtype()))
    n.unsupported(fmt::format("it interpolates {}", dtype_name(x.dtype())));
  for (size_t i = 0; i < axes.size(); ++i) {
    check_axis(n, axes[i]);
    const bool crops = method.transform == "tf_crop_and_resize" && (axes[i].roi_begin != 0 || axes[i].roi_end != 1);
    if (axes[i].length != axes[i].result || axes[i].scale != 1 || crops)
      x = resize_axis(x, static_cast<int64_t>(i), axes[i], method);
  }
  if (method.transform != "tf_crop_and_resize") return {x};
  for (size_t i = 0; i < axes.size(); ++i) {
    const Tensor mask = inside(x, static_cast<int64_t>(i), axes[i], method);
    if (mask.defined())
      x = where(mask, x, full({}, Scalar(n.number("extrapolation_value", 0.0)), x.dtype(), x.device()));
  }
  return {x};
}

std::vector<Axis> scaled_axes(NodeContext& n, const std::vector<double>& scales) {
  const Dims& dims = n.dims(0);
  if (static_cast<int32_t>(scales.size()) != dims.rank())
    n.invalid(fmt::format("there are {} scales for an input of rank {}", scales.size(), dims.rank()));
  std::vector<Axis> axes;
  for (int32_t i = 0; i < dims.rank(); ++i) {
    const double scale = scales[static_cast<size_t>(i)], result = std::floor(static_cast<double>(dims[i]) * scale);
    if (!(result >= 0 && result < 1e9))
      n.invalid(fmt::format("the scale {} makes an axis of {} of length {}", scale, dims[i], result));
    axes.push_back({dims[i], static_cast<int64_t>(result), scale});
  }
  return axes;
}

std::vector<Axis> sized_axes(NodeContext& n, const std::vector<int64_t>& sizes) {
  const Dims& dims = n.dims(0);
  if (static_cast<int32_t>(sizes.size()) != dims.rank())
    n.invalid(fmt::format("there are {} sizes for an input of rank {}", sizes.size(), dims.rank()));
  std::vector<Axis> axes;
  for (int32_t i = 0; i < dims.rank(); ++i) {
    const int64_t size = sizes[static_cast<size_t>(i)];
    axes.push_back({dims[i], size, dims[i] == 0 ? 1 : static_cast<double>(size) / static_cast<double>(dims[i])});
  }
  return axes;
}

std::string resize_why_not(const Node& node) {
  for (const char* name : {"antialias", "axes", "keep_aspect_ratio_policy"}) {
    const auto found = node.attributes.find(name);
    const bool set = found != node.attributes.end() && (found->second.i != 0 || !found->second.ints.empty() ||
                                                        (!found->second.s.empty() && found->second.s != "stretch"));
    if (set) return fmt::format("its attribute '{}' is not translated.", name);
  }
  return {};
}

TensorList translate_resize(NodeContext& n) {
  const Method method{n.text("mode", "nearest"), n.text("coordinate_transformation_mode", "half_pixel"),
                      n.text("nearest_mode", "round_prefer_floor"), n.number("cubic_coeff_a", -0.75),
                      n.flag("exclude_outside", false)};
  const bool scaled = n.has(2) && n.rank(2) == 1 && n.dims(2)[0] != 0;
  std::vector<Axis> axes = scaled ? scaled_axes(n, n.numbers(2)) : sized_axes(n, n.ints(3));
  if (method.transform == "tf_crop_and_resize") {
    const std::vector<double> roi = n.numbers(1);
    if (roi.size() != 2 * axes.size())
      n.invalid(fmt::format("its roi has {} numbers; it needs {}", roi.size(), 2 * axes.size()));
    for (size_t i = 0; i < axes.size(); ++i) {
      axes[i].roi_begin = roi[i];
      axes[i].roi_end = roi[axes.size() + i];
    }
  }
  return resize(n, axes, method);
}

// Before opset 11: element i of the result is at i / scale, rounded down.
TensorList upsample(NodeContext& n) {
  std::vector<double> scales;
  if (n.version() < 9) {
    for (float scale : n.require("scales", Attribute::Kind::numbers).floats)
      scales.push_back(static_cast<double>(scale));
  } else {
    scales = n.numbers(1);
  }
  return resize(n, scaled_axes(n, scales), {n.text("mode", "nearest"), "asymmetric", "floor"});
}

constexpr Translator kRows[] = {
    {"Resize", 10, upsample, nullptr, false, 10},
    {"Resize", 11, translate_resize, resize_why_not},
    {"Upsample", 7, upsample, nullptr, false, 9},
};

}  // namespace

std::span<const Translator> resize_translators() { return kRows; }

}  // namespace tenon::onnx
