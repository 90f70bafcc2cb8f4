// Images: grids, regions of interest, windows as columns.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/layers.h"
#include "sdk/onnx/translate/microsoft.h"
#include "sdk/onnx/translate/sample.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

using Ints = std::vector<int64_t>;

// ---- grids ----

TensorList grid_sample(NodeContext& n) {
  const Tensor &x = n.input(0), &grid = n.input(1);
  const int32_t axes = x.rank() - 2;
  if (axes < 1 || axes > 3 || grid.rank() != x.rank() || grid.dim(-1) != axes || grid.dim(0) != x.dim(0))
    n.invalid(fmt::format("a grid of shape {} does not fit an input of shape {}", grid.dims(), x.dims()));
  const std::string mode = n.text("mode", n.version() < 20 ? "bilinear" : "linear");
  const Taps taps = mode == "nearest"                        ? Taps::nearest
                    : mode == "bilinear" || mode == "linear" ? Taps::linear
                                                             : Taps::cubic;
  const std::string padding = n.text("padding_mode", "zeros");
  const Border border = padding == "zeros" ? Border::zeros : padding == "border" ? Border::edge : Border::reflect;
  const bool corners = n.flag("align_corners", false);
  Dims result{x.dim(0), x.dim(1)};
  int64_t points = 1;
  for (int32_t i = 1; i + 1 < grid.rank(); ++i) {
    result.push_back(grid.dims()[i]);
    points *= grid.dims()[i];
  }
  if (x.elements() == 0) n.unsupported("its input has no elements");
  const Tensor flat = reshape(grid.dtype() == DType::f64 ? grid : cast(grid, DType::f32), {x.dim(0), points, axes});
  std::vector<Tensor> positions;
  for (int32_t axis = 0; axis < axes; ++axis) {
    const auto length = static_cast<double>(x.dim(axis + 2));
    const Tensor given = select(flat, 2, axes - 1 - axis);  // the grid lists the last axis first
    const Tensor from_0 = mul(add(given, Scalar(1.0)), Scalar(corners ? (length - 1) / 2 : length / 2));
    positions.push_back(corners ? from_0 : sub(from_0, Scalar(0.5)));
  }
  return {reshape(sampled(x, positions, taps, border, corners), result)};
}

TensorList affine_grid(NodeContext& n) {
  const Tensor& theta = n.input(0);
  const Ints size = n.ints(1);
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  if (axes < 2 || axes > 3 || theta.dims() != Dims{size[0], axes, axes + 1})
    n.invalid(fmt::format("theta of shape {} does not fit a size of {} numbers", theta.dims(), size.size()));
  const bool corners = n.flag("align_corners", false);
  int64_t points = 1;
  for (int64_t axis = 0; axis < axes; ++axis) {
    const int64_t length = size[static_cast<size_t>(axis) + 2];
    if (length < 0 || length > 1 << 16 || points * std::max<int64_t>(1, length) > 1 << 28)
      n.invalid(fmt::format("its size {} is not possible", length));
    points *= length;
  }
  Tensor rows;  // [points, axes + 1]: the last axis first, then ones
  TensorList columns;
  for (int64_t axis = axes - 1; axis >= 0; --axis) {
    const int64_t length = size[static_cast<size_t>(axis) + 2];
    const Tensor at = arange(Scalar(length), DType::i64, n.device());
    const Tensor numbers = cast(at, theta.dtype());
    const double last = static_cast<double>(std::max<int64_t>(1, corners ? length - 1 : length));
    const Tensor line = corners ? sub(mul(numbers, Scalar(2.0 / last)), Scalar(1.0))
                                : sub(mul(add(numbers, Scalar(0.5)), Scalar(2.0 / last)), Scalar(1.0));
    Dims shape = Dims::filled(static_cast<int32_t>(axes), 1), whole;
    shape[axis] = length;
    for (int64_t i = 0; i < axes; ++i) whole.push_back(size[static_cast<size_t>(i) + 2]);
    columns.push_back(reshape(expand(reshape(line, shape), whole), {points, 1}));
  }
  columns.push_back(ones_like(columns[0]));
  const Tensor grid = matmul(unsqueeze(concat(columns, 1), 0), permute(theta, {0, 2, 1}));
  Dims result{size[0]};
  for (int64_t i = 0; i < axes; ++i) result.push_back(size[static_cast<size_t>(i) + 2]);
  result.push_back(axes);
  return {reshape(grid, result)};
}

TensorList center_crop_pad(NodeContext& n) {
  Tensor x = n.input(0);
  const Ints shape = n.ints(1);
  Ints axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  axes = n.integers("axes").value_or(axes);
  if (shape.size() != axes.size())
    n.invalid(fmt::format("{} lengths are given for {} axes", shape.size(), axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = n.normalise_axis(axes[i], x.rank()), length = x.dim(axis), wanted = shape[i];
    if (wanted < 0) n.invalid(fmt::format("a requested length is {}; it must be at least 0", wanted));
    if (wanted <= length) {
      x = narrow(x, axis, (length - wanted) / 2, wanted);
      continue;
    }
    Ints padding(2 * static_cast<size_t>(x.rank()), 0);
    const auto at = 2 * static_cast<size_t>(x.rank() - 1 - axis);
    padding[at] = (wanted - length) / 2;
    padding[at + 1] = wanted - length - padding[at];
    x = pad(x, padding);
  }
  return {x};
}

// ---- windows ----

// Sums columns into an image: a transposed convolution with a one at each element of the window.
TensorList col2im(NodeContext& n) {
  const Tensor& x = n.input(0);
  const Ints image = n.ints(1), block = n.ints(2);
  const size_t axes = image.size();
  const Ints dilations = n.integers("dilations").value_or(Ints(axes, 1));
  const Ints strides = n.integers("strides").value_or(Ints(axes, 1));
  const Ints pads = n.integers("pads").value_or(Ints(2 * axes, 0));
  if (axes < 1 || axes > 3 || block.size() != axes || dilations.size() != axes || strides.size() != axes ||
      pads.size() != 2 * axes || x.rank() != 3)
    n.invalid(fmt::format("its numbers do not fit an image of {} axes, or its input is not [n, c, l]", axes));
  int64_t elements = 1, windows = 1;
  Dims counts, kernel, result{x.dim(0), 0};
  Ints extra;
  for (size_t i = 0; i < axes; ++i) {
    constexpr int64_t kMost = 1 << 20;
    for (const int64_t value : {image[i], block[i], dilations[i], strides[i]}) {
      if (value < 1 || value > kMost)
        n.invalid(fmt::format("a length, dilation or stride is {}; it must be from 1 to 2^20", value));
    }
    if (pads[i] < 0 || pads[axes + i] < 0 || pads[i] > kMost || pads[axes + i] > kMost)
      n.invalid("a pad is not from 0 to 2^20");
    const int64_t room = image[i] + pads[i] + pads[axes + i] - dilations[i] * (block[i] - 1) - 1;
    if (room < 0) n.invalid(fmt::format("a block of length {} does not fit an image of length {}", block[i], image[i]));
    counts.push_back(room / strides[i] + 1);
    kernel.push_back(block[i]);
    extra.push_back(room % strides[i]);
    result.push_back(image[i]);
    elements *= block[i];
    if (__builtin_mul_overflow(windows, counts.back(), &windows)) n.invalid("it has more windows than can be counted");
  }
  if (elements > 1 << 12 || x.dim(1) % elements != 0 || x.dim(2) != windows)
    n.invalid(fmt::format("columns of shape {} are not {} windows of {} elements", x.dims(), windows, elements));
  const int64_t channels = x.dim(1) / elements;
  result[1] = channels;
  Dims planes{x.dim(0) * channels, elements}, ones{elements, 1};
  for (int64_t count : counts) planes.push_back(count);
  for (int64_t length : kernel) ones.push_back(length);
  const Tensor numbers = n.positions(elements);
  const Tensor unit = cast(eq(reshape(numbers, {elements, 1}), reshape(numbers, {1, elements})), x.dtype());
  return {reshape(conv_transpose(reshape(x, planes), reshape(unit, ones), Tensor(), strides, pads, extra, 1, dilations),
                  result)};
}

TensorList max_unpool(NodeContext& n) {
  const Tensor &x = n.input(0), &positions = n.input(1);
  const int32_t axes = x.rank() - 2;
  if (axes < 1) n.invalid(fmt::format("its input has the shape {}, without spatial axes", x.dims()));
  const Ints kernel = n.require("kernel_shape", Attribute::Kind::integers).ints;
  const Ints strides = n.integers("strides").value_or(Ints(static_cast<size_t>(axes), 1));
  const Ints pads = n.integers("pads").value_or(Ints(2 * static_cast<size_t>(axes), 0));
  if (!all_within({x.dims().begin(), x.dims().end()}, 0))
    n.unsupported(fmt::format("its input has the shape {}; dims must be below {}", x.dims(), kTooLong));
  // The node's attributes decide the size of the image that positions refer to. output_shape may be larger; the image
  // then lies at its low ends.
  Dims image{x.dim(0), x.dim(1)};
  for (int32_t i = 0; i < axes; ++i) {
    const auto at = static_cast<size_t>(i);
    image.push_back((x.dim(i + 2) - 1) * strides[at] + kernel[at] - pads[at] - pads[at + static_cast<size_t>(axes)]);
  }
  if (!checked_count(image) || element_count(image) < 1)
    n.invalid(fmt::format("its result would have the impossible shape {}", image));
  const Tensor flat = zeros(element_count(image), x.dtype(), n.device());
  Tensor y = reshape(scatter(flat, 0, reshape(cast(positions, DType::i64), {-1}), reshape(x, {-1})), image);
  if (!n.has(2)) return {y};
  const Ints wanted = n.ints(2);
  if (wanted.size() != static_cast<size_t>(x.rank())) n.invalid("its output_shape does not fit the rank of its input");
  Ints padding;
  for (int32_t i = x.rank(); i-- > 0;) {
    const int64_t more = wanted[static_cast<size_t>(i)] - image[i];
    if (more < 0 || more > 1 << 24 || (i < 2 && more != 0))
      n.invalid(fmt::format("an axis of its output_shape is {}, but the result has {} there",
                            wanted[static_cast<size_t>(i)], image[i]));
    padding.insert(padding.end(), {0, more});
  }
  return {pad(y, padding)};
}

TensorList deform_conv(NodeContext& n) {
  const Tensor &x = n.input(0), &weight = n.input(1), &offset = n.input(2);
  const int64_t batch = x.dim(0), channels = x.dim(1), kh = weight.dim(2), kw = weight.dim(3);
  const int64_t groups = n.integer("group", 1), regions = n.integer("offset_group", 1);
  const int64_t oh = offset.dim(2), ow = offset.dim(3);
  const Ints strides = n.integers("strides").value_or(Ints{1, 1}), pads = n.integers("pads").value_or(Ints{0, 0, 0, 0});
  const Ints dilations = n.integers("dilations").value_or(Ints{1, 1});
  // Empty tensors may have dims of any size.
  Dims sampled_points{regions, kh, kw, oh, ow};
  for (int64_t& dim : sampled_points) dim = std::max<int64_t>(1, dim);
  constexpr int64_t kMostPoints = int64_t{1} << 28;
  if (const auto count = checked_count(sampled_points); !count || *count > kMostPoints)
    n.unsupported(fmt::format("weights of shape {} and offsets of shape {} sample more than {} points", weight.dims(),
                              offset.dims(), kMostPoints));
  const int64_t taps = kh * kw, points = taps * oh * ow;
  if (channels % regions != 0 || !all_within({batch, channels, weight.dim(1), weight.dim(0)}, 0))
    n.invalid(fmt::format("offsets of shape {} and weights of shape {} do not fit an input of shape {}", offset.dims(),
                          weight.dims(), x.dims()));
  const Tensor shifts = reshape(offset, {batch * regions, taps, 2, oh * ow});
  std::vector<Tensor> positions;
  for (size_t axis = 0; axis < 2; ++axis) {
    const bool rows = axis == 0;
    const Tensor out = reshape(n.positions(rows ? oh : ow), rows ? Dims{1, 1, oh, 1} : Dims{1, 1, 1, ow});
    const Tensor in = reshape(n.positions(rows ? kh : kw), rows ? Dims{kh, 1, 1, 1} : Dims{1, kw, 1, 1});
    const Tensor base = add(sub(mul(out, Scalar(strides[axis])), Scalar(pads[axis])), mul(in, Scalar(dilations[axis])));
    const Tensor grid = cast(cast(reshape(expand(base, {kh, kw, oh, ow}), {1, points}), DType::f32), offset.dtype());
    positions.push_back(add(reshape(select(shifts, 2, static_cast<int64_t>(axis)), {batch * regions, points}), grid));
  }
  const Tensor parts = reshape(x, {batch * regions, channels / regions, x.dim(2), x.dim(3)});
  Tensor columns = reshape(sampled(parts, positions, Taps::linear, Border::zeros, false),
                           {batch, regions, channels / regions, points});
  if (n.has(4)) columns = mul(columns, reshape(n.input(4), {batch, regions, 1, points}));
  const int64_t inner = channels / groups * taps, rows = weight.dim(0) / groups;
  const Tensor product =
      matmul(reshape(weight, {1, groups, rows, inner}), reshape(columns, {batch, groups, inner, oh * ow}));
  const Tensor y = reshape(product, {batch, weight.dim(0), oh, ow});
  return {n.has(3) ? add(y, reshape(n.input(3), {1, weight.dim(0), 1, 1})) : y};
}

// ---- regions of interest, on the host: the number of samples of a region depends on its size ----

struct Image {
  const float* data;
  int64_t height, width;
  float at(int64_t y, int64_t x) const { return data[y * width + x]; }
};

// The four elements around a position and their weights.
struct Corners {
  float value[4];
};
Corners corners_at(const Image& image, double y, double x) {
  if (y < -1 || y > static_cast<double>(image.height) || x < -1 || x > static_cast<double>(image.width)) return {};
  y = std::max(y, 0.0), x = std::max(x, 0.0);
  auto y0 = static_cast<int64_t>(y), x0 = static_cast<int64_t>(x);
  int64_t y1 = y0 + 1, x1 = x0 + 1;
  if (y0 >= image.height - 1) y = static_cast<double>(y0 = y1 = image.height - 1);
  if (x0 >= image.width - 1) x = static_cast<double>(x0 = x1 = image.width - 1);
  const double fy = y - static_cast<double>(y0), fx = x - static_cast<double>(x0);
  return {{static_cast<float>((1 - fy) * (1 - fx)) * image.at(y0, x0),
           static_cast<float>((1 - fy) * fx) * image.at(y0, x1), static_cast<float>(fy * (1 - fx)) * image.at(y1, x0),
           static_cast<float>(fy * fx) * image.at(y1, x1)}};
}

constexpr int64_t kMostSamples = 1 << 12;  // limit of samples along one side of a result element

// The position of a region in its image, and its number of samples per result element.
struct Region {
  int64_t batch, rows, columns;
  double top, left, step_y, step_x;
};

// The attributes of RoiAlign.
struct Align {
  explicit Align(NodeContext& n)
      : height(n.integer("output_height", 1)),
        width(n.integer("output_width", 1)),
        ratio(n.integer("sampling_ratio", 0)),
        scale(n.number("spatial_scale", 1.0)),
        greatest(n.text("mode", "avg") == "max"),
        half(n.version() >= 16 && n.text("coordinate_transformation_mode", "half_pixel") == "half_pixel") {}

  Region region(NodeContext& n, int64_t batch, const float* corners) const {
    double side[4];
    for (int i = 0; i < 4; ++i) {
      side[i] = static_cast<double>(corners[i]) * scale - (half ? 0.5 : 0.0);
      if (!(std::abs(side[i]) < 1e9)) n.invalid("a corner of a region is not finite, or far away");
    }
    double w = side[2] - side[0], h = side[3] - side[1];
    if (!half) w = std::max(w, 1.0), h = std::max(h, 1.0);
    const double step_y = h / static_cast<double>(height), step_x = w / static_cast<double>(width);
    const auto samples = [&](double step) {
      const double each = ratio > 0 ? static_cast<double>(ratio) : std::ceil(step);
      return static_cast<int64_t>(std::clamp(each, 0.0, static_cast<double>(kMostSamples)));
    };
    return {batch, samples(step_y), samples(step_x), side[1], side[0], step_y, step_x};
  }

  // Computes element `bin` of the result for `region`.
  float pooled(const Image& image, const Region& region, int64_t bin) const {
    double sum = 0;
    float most = -std::numeric_limits<float>::infinity();
    const int64_t count = region.rows * region.columns;
    const auto place = [](int64_t of, int64_t i, int64_t samples) {
      return static_cast<double>(of) + (static_cast<double>(i) + 0.5) / static_cast<double>(samples);
    };
    for (int64_t i = 0; i < count; ++i) {
      const double y = region.top + place(bin / width, i / region.columns, region.rows) * region.step_y;
      const double x = region.left + place(bin % width, i % region.columns, region.columns) * region.step_x;
      for (float value : corners_at(image, y, x).value) {
        sum += static_cast<double>(value);
        most = std::max(most, value);
      }
    }
    if (greatest) return count == 0 ? 0.0f : most;
    return static_cast<float>(sum / static_cast<double>(std::max<int64_t>(1, count)));
  }

  int64_t height, width, ratio;
  double scale;
  bool greatest, half;
};

TensorList roi_align(NodeContext& n) {
  const Dims& dims = n.dims(0);
  const int64_t count = n.dims(1)[0];
  if (element_count(dims) == 0) n.invalid(fmt::format("its images have the shape {}, without elements", dims));
  const Align align(n);
  const std::vector<float> rois = n.elements<float>(1);
  const std::vector<int64_t> batches = n.elements<int64_t>(2);
  const double bins = static_cast<double>(dims[1]) * static_cast<double>(align.height * align.width);
  double samples = 0;
  std::vector<Region> regions;
  for (int64_t roi = 0; roi < count; ++roi) {
    const int64_t batch = batches[static_cast<size_t>(roi)];
    if (batch < 0 || batch >= dims[0])
      n.invalid(fmt::format("a region is in image {}, but there are {} images", batch, dims[0]));
    regions.push_back(align.region(n, batch, rois.data() + 4 * roi));
    samples += bins * static_cast<double>(regions.back().rows * regions.back().columns);
  }
  const double made = bins * static_cast<double>(count);
  n.require_host_work(made * sizeof(float), made + samples);
  const std::vector<float> x = n.elements<float>(0);
  std::vector<float> result;
  result.reserve(static_cast<size_t>(made));
  for (const Region& region : regions) {
    for (int64_t channel = 0; channel < dims[1]; ++channel) {
      const Image image{x.data() + (region.batch * dims[1] + channel) * dims[2] * dims[3], dims[2], dims[3]};
      for (int64_t bin = 0; bin < align.height * align.width; ++bin) {
        result.push_back(align.pooled(image, region, bin));
      }
    }
  }
  const Tensor pooled =
      Tensor::copy_from_host(result.data(), {count, dims[1], align.height, align.width}, DType::f32, n.device());
  return {cast(pooled, n.dtype(0))};
}

TensorList max_roi_pool(NodeContext& n) {
  const Dims& dims = n.dims(0);
  const Ints shape = n.require("pooled_shape", Attribute::Kind::integers).ints;
  const double scale = n.number("spatial_scale", 1.0);
  const int64_t count = n.dims(1)[0];
  const auto real = [](int64_t size) { return static_cast<double>(size); };
  const double maps = real(count) * real(dims[1]);
  // Neighbouring bins overlap in their first and last row and column.
  n.require_host_work(maps * real(shape[0] * shape[1]) * sizeof(float),
                      maps * real(dims[2] + 2 * shape[0]) * real(dims[3] + 2 * shape[1]));
  const std::vector<float> x = n.elements<float>(0), rois = n.elements<float>(1);
  std::vector<float> result;
  for (int64_t roi = 0; roi < count; ++roi) {
    const float* given = rois.data() + 5 * roi;
    if (!(given[0] >= 0 && given[0] < static_cast<float>(dims[0])))
      n.invalid(fmt::format("a region is in image {}, but there are {} images", given[0], dims[0]));
    int64_t side[4];
    for (int i = 0; i < 4; ++i) {
      const double at = std::round(static_cast<double>(given[i + 1]) * scale);
      if (!(std::abs(at) < 1e9)) n.invalid("a corner of a region is not finite, or far away");
      side[i] = static_cast<int64_t>(at);
    }
    const auto h = static_cast<double>(std::max<int64_t>(1, side[3] - side[1] + 1));
    const auto w = static_cast<double>(std::max<int64_t>(1, side[2] - side[0] + 1));
    const auto edge = [](double at, int64_t from, int64_t most) {
      return std::clamp<int64_t>(static_cast<int64_t>(at) + from, 0, most);
    };
    for (int64_t channel = 0; channel < dims[1]; ++channel) {
      const Image image{x.data() + (static_cast<int64_t>(given[0]) * dims[1] + channel) * dims[2] * dims[3], dims[2],
                        dims[3]};
      for (int64_t bin = 0; bin < shape[0] * shape[1]; ++bin) {
        const auto by = static_cast<double>(bin / shape[1]), bx = static_cast<double>(bin % shape[1]);
        const auto rows = static_cast<double>(shape[0]), columns = static_cast<double>(shape[1]);
        const int64_t top = edge(std::floor(by * h / rows), side[1], dims[2]);
        const int64_t bottom = edge(std::ceil((by + 1) * h / rows), side[1], dims[2]);
        const int64_t left = edge(std::floor(bx * w / columns), side[0], dims[3]);
        const int64_t right = edge(std::ceil((bx + 1) * w / columns), side[0], dims[3]);
        float most = top >= bottom || left >= right ? 0.0f : -std::numeric_limits<float>::infinity();
        for (int64_t y = top; y < bottom; ++y) {
          for (int64_t at = left; at < right; ++at) most = std::max(most, image.at(y, at));
        }
        result.push_back(most);
      }
    }
  }
  const Tensor pooled =
      Tensor::copy_from_host(result.data(), {count, dims[1], shape[0], shape[1]}, DType::f32, n.device());
  return {cast(pooled, n.dtype(0))};
}

std::string image_why_not(const Node&) {
  return "it decodes images, and Tenon only reads tensors. Decode the image before the model runs.";
}
TensorList image_decoder(NodeContext& n) { n.unsupported(image_why_not(n.node())); }

constexpr Translator kVisionRows[] = {
    {.op_type = "AffineGrid", .since = 20, .translate = affine_grid},
    {.op_type = "CenterCropPad", .since = 18, .translate = center_crop_pad},
    {.op_type = "Col2Im", .since = 18, .translate = col2im},
    {.op_type = "DeformConv", .since = 19, .translate = deform_conv},
    {.op_type = "GridSample", .since = 16, .translate = grid_sample},
    {.op_type = "ImageDecoder", .since = 20, .translate = image_decoder, .why_not = image_why_not},
    {.op_type = "MaxRoiPool", .since = 1, .translate = max_roi_pool},
    {.op_type = "MaxUnpool", .since = 9, .translate = max_unpool},
    {.op_type = "RoiAlign", .since = 10, .translate = roi_align},
    {.domain = kMicrosoft, .op_type = "GridSample", .since = 1, .translate = grid_sample},
};

}  // namespace

std::span<const Translator> vision_translators() { return kVisionRows; }

}  // namespace tenon::onnx
