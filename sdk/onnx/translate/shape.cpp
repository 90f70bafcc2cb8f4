// Operators that move elements, and operators that make tensors from shapes.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/ops/known_sizes.h"
#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "core/ops/sized_ops.h"
#include "core/ops/sizes.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/microsoft.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

using Ints = std::vector<int64_t>;
using Sizes = std::vector<SymDim>;

Dims checked_dims(NodeContext& n, const Ints& values) {
  if (values.size() > EP_MAX_RANK) {
    n.invalid(fmt::format("the result would have rank {}; at most {} is possible", values.size(), EP_MAX_RANK));
  }
  return Dims(values);
}

SymDims checked_sizes(NodeContext& n, const Sizes& values) {
  if (values.size() > EP_MAX_RANK) {
    n.invalid(fmt::format("the result would have rank {}; at most {} is possible", values.size(), EP_MAX_RANK));
  }
  return SymDims(std::span<const SymDim>(values));
}

Sizes saturated(const Ints& numbers) {
  Sizes sizes;
  for (const int64_t number : numbers) sizes.push_back(SymDim::saturated(number));
  return sizes;
}

bool all_numbers(const Sizes& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](SymDim size) { return size.is_number(); });
}

TensorList translate_reshape(NodeContext& n) {
  const Tensor& x = n.input(0);
  Sizes shape = n.version() < 5 ? saturated(n.integers("shape").value_or(Ints())) : n.size_list(1);
  const bool zero_is_zero = n.flag("allowzero", false);
  for (size_t i = 0; i < shape.size() && !zero_is_zero; ++i) {
    if (!(shape[i] == 0)) continue;
    if (static_cast<int32_t>(i) >= x.rank())
      n.invalid(fmt::format("dim {} of the new shape is 0, but the input has rank {}", i, x.rank()));
    shape[i] = size_at(x, static_cast<int64_t>(i));
  }
  return {reshape(x, SizeList(checked_sizes(n, shape)))};
}

TensorList translate_transpose(NodeContext& n) {
  const Tensor& x = n.input(0);
  Ints axes(static_cast<size_t>(x.rank()));
  std::iota(axes.rbegin(), axes.rend(), 0);
  return {permute(x, n.integers("perm").value_or(axes))};
}

TensorList translate_squeeze(NodeContext& n) {
  const Tensor& x = n.input(0);
  const std::optional<Ints> axes = n.axes(1, 13);
  if (!axes || axes->empty()) return {squeeze(x)};  // no axes means all, as in ONNX Runtime
  for (int64_t axis : *axes) {
    if (!(size_at(x, n.normalise_axis(axis, x.rank())) == 1)) {
      n.invalid(fmt::format("axis {} of shape {} is not 1", axis, sizes(x)));
    }
  }
  return {squeeze(x, *axes)};
}

TensorList translate_unsqueeze(NodeContext& n) {
  Ints axes = n.axes(1, 13).value_or(Ints());
  const int64_t rank = n.rank(0) + static_cast<int64_t>(axes.size());
  if (rank > EP_MAX_RANK)
    n.invalid(fmt::format("the result would have rank {}; at most {} is possible", rank, EP_MAX_RANK));
  for (int64_t& axis : axes) axis = n.normalise_axis(axis, rank);
  std::sort(axes.begin(), axes.end());
  return {unsqueeze(n.input(0), axes)};
}

TensorList translate_flatten(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int64_t axis = n.axis(1, x.rank(), true);
  return {reshape(x, SizeList{n.product(0, 0, axis), n.product(0, axis, x.rank())})};
}

// Broadcasts in both directions, as NumPy does: a 1 in the requested shape keeps the dim of the input.
TensorList translate_expand(NodeContext& n) {
  const Tensor& x = n.input(0);
  const SymDims wanted = checked_sizes(n, n.size_list(1));
  SymDims dims = SymDims::filled(std::max(wanted.rank(), x.rank()), 1);
  for (int32_t i = 0; i < dims.rank(); ++i) {
    const int32_t a = i - (dims.rank() - x.rank()), b = i - (dims.rank() - wanted.rank());
    const SymDim have = a < 0 ? SymDim(1) : size_at(x, a), want = b < 0 ? SymDim(1) : wanted[b];
    if (!broadcast_size(have, want, &dims[i])) {
      n.invalid(fmt::format("shape {} does not broadcast to {}", sizes(x), wanted));
    }
  }
  return {expand(x, SizeList(dims))};
}

// Repeats axis by axis: [before, 1, length, after] is expanded along the 1.
TensorList translate_tile(NodeContext& n) {
  Tensor x = n.input(0);
  const Sizes counts = n.size_list(1);
  const bool open = is_open(x) || !all_numbers(counts);
  if (open && x.rank() < EP_MAX_RANK && static_cast<int32_t>(counts.size()) == x.rank()) {
    return {sized::tile(x, counts)};
  }
  const Ints repeats = n.ints(1);
  if (static_cast<int32_t>(repeats.size()) != x.rank()) {
    n.invalid(fmt::format("{} repeats are given for an input of rank {}", repeats.size(), x.rank()));
  }
  Dims dims = x.dims();
  for (int32_t i = 0; i < x.rank(); ++i) {
    const int64_t repeat = repeats[static_cast<size_t>(i)];
    if (repeat < 0 || __builtin_mul_overflow(dims[i], repeat, &dims[i]) || !checked_count(dims)) {
      n.invalid(fmt::format("shape {} cannot be repeated {} times along axis {}", n.dims(0), repeat, i));
    }
  }
  if (element_count(dims) == 0) return {reshape(x.elements() == 0 ? x : slice(reshape(x, {-1}), 0, 0, 0), dims)};
  for (int32_t i = 0; i < dims.rank(); ++i) {
    const int64_t repeat = repeats[static_cast<size_t>(i)], length = x.dims()[i];
    if (repeat == 1) continue;
    const int64_t before = element_count(Dims(std::span<const int64_t>(x.dims().begin(), x.dims().begin() + i)));
    const int64_t after = x.elements() / (before * length);
    Dims longer = x.dims();
    longer[i] = length * repeat;
    x = reshape(expand(reshape(x, {before, 1, length, after}), {before, repeat, length, after}), longer);
  }
  return {x};
}

TensorList shape_of(NodeContext& n) {
  const SymDims dims = n.sizes(0);
  const auto clip = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + dims.rank() : at, 0, dims.rank()); };
  const int64_t start = clip(n.integer("start", 0)), end = clip(n.integer("end", dims.rank()));
  const int64_t count = std::max<int64_t>(0, end - start);
  return {sized::ints({dims.begin() + start, static_cast<size_t>(count)}, {count})};
}

TensorList size_of(NodeContext& n) {
  const SymDim elements = element_count(n.sizes(0));
  return {sized::ints({&elements, 1}, Dims())};
}

std::string constant_why_not(const Node& node) {
  if (node.attributes.size() > 1) {
    return fmt::format("it holds {} values, {} and {} among them; a Constant holds one.", node.attributes.size(),
                       node.attributes.begin()->first, node.attributes.rbegin()->first);
  }
  for (const char* name : {"value", "value_float", "value_floats", "value_int", "value_ints"}) {
    if (node.attributes.find(name) != node.attributes.end()) return {};
  }
  return "it holds no tensor and no numbers (strings and sparse tensors have no place in Tenon).";
}

TensorList constant(NodeContext& n) {
  const auto put = [&](const Tensor& host) {
    return stays_on_host(host.dtype(), host.elements()) ? host : host.to(n.device());
  };
  if (n.find("value") != nullptr) return {put(n.require("value", Attribute::Kind::tensor).tensor)};
  if (const Attribute* value = n.find("value_float"))
    return {put(Tensor::copy_from_host(&value->f, Dims(), DType::f32, Device::host()))};
  if (const Attribute* value = n.find("value_int"))
    return {put(Tensor::copy_from_host(&value->i, Dims(), DType::i64, Device::host()))};
  if (const Attribute* value = n.find("value_ints")) return {put(NodeContext::host_ints(value->ints))};
  const std::vector<float>& floats = n.require("value_floats", Attribute::Kind::numbers).floats;
  return {put(Tensor::from<float>(floats, Dims{static_cast<int64_t>(floats.size())}, Device::host()))};
}

TensorList constant_of_shape(NodeContext& n) {
  const Sizes wanted = n.size_list(0);
  if (!all_numbers(wanted)) {
    const SizeList sizes(checked_sizes(n, wanted));
    if (n.find("value") == nullptr) return {full(sizes, Scalar(0.0), DType::f32, n.device())};
    const Tensor& element = n.require("value", Attribute::Kind::tensor).tensor;
    return {full(sizes, element.item(), element.dtype(), n.device())};
  }
  const Dims dims = checked_dims(n, n.ints(0));
  if (!checked_count(dims)) n.invalid(fmt::format("shape {} has more elements than can be numbered", dims));
  const Attribute* value = n.find("value");
  if (value == nullptr) return {full(dims, Scalar(0.0), DType::f32, n.device())};
  const Tensor& element = n.require("value", Attribute::Kind::tensor).tensor;
  const Device where = stays_on_host(element.dtype(), element_count(dims)) ? Device::host() : n.device();
  return {full(dims, element.item(), element.dtype(), where)};
}

// start, start + delta, .. if all are integers and their number is open; else nothing.
std::optional<Tensor> open_range(NodeContext& n) {
  if (!is_integer(n.dtype(0))) return std::nullopt;
  std::array<SymDim, 3> given;  // start, limit, delta
  for (size_t i = 0; i < given.size(); ++i) {
    const std::vector<SymDim> list = n.has(i) ? n.size_list(i) : std::vector<SymDim>{1};
    if (list.size() != 1) return std::nullopt;  // range() reports the error
    given[i] = list[0];
  }
  const auto [start, limit, delta] = given;
  if (limit.is_number() || !start.is_number() || !delta.is_number() || delta.number() < 1) return std::nullopt;
  const SymDim count = max_size(ceil_div(limit - start, delta), 0);
  Tensor numbers = n.positions(count);
  if (delta.number() != 1) numbers = mul(numbers, Scalar(delta.number()));
  if (start.number() != 0) numbers = add(numbers, Scalar(start.number()));
  return cast(numbers, n.dtype(0));
}

TensorList range(NodeContext& n) {
  if (const std::optional<Tensor> numbers = open_range(n)) return {*numbers};
  const Scalar start = n.scalar(0), limit = n.scalar(1), delta = n.has(2) ? n.scalar(2) : Scalar(1);
  const DType dtype = n.dtype(0);
  if (delta.to_double() == 0) n.invalid("its delta is 0");
  const double count = std::ceil((limit.to_double() - start.to_double()) / delta.to_double());
  if (!(count < 1 << 24))
    n.unsupported(fmt::format("its result would have {} elements; at most 2^24 are possible", count));
  if (count <= 0) return {full({0}, Scalar(0), dtype, n.device())};
  return {arange(start, limit, delta, dtype, n.device())};
}

TensorList translate_concat(NodeContext& n) {
  const int64_t axis = n.axis(1, n.rank(0));
  if (n.input_count() == 1) return {n.input(0)};
  return {concat(n.inputs(), axis)};
}

// Splits `length` into `parts` equal lengths; the last one may be shorter.
Ints even_parts(int64_t length, int64_t parts) {
  const int64_t each = parts == 0 ? 0 : (length + parts - 1) / parts;
  Ints sizes;
  for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(length - i * each, 0, each));
  return sizes;
}

TensorList translate_split(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int64_t axis = n.axis(0, x.rank());
  if (!size_at(x, axis).is_number() && n.version() >= 13 && n.has(1)) return sized::split(x, n.size_list(1), axis);
  const int64_t length = x.dim(axis);
  std::optional<Ints> sizes = n.version() < 13 ? n.integers("split")
                              : n.has(1)       ? std::optional(n.ints(1))
                                               : std::nullopt;
  const auto parts = static_cast<int64_t>(n.output_count());
  if (n.version() >= 18 && sizes.has_value() == (n.find("num_outputs") != nullptr))
    n.invalid("it must have either the input 'split' or the attribute 'num_outputs'");
  if (!sizes && n.integer("num_outputs", parts) != parts)
    n.invalid("its attribute num_outputs does not say how many outputs it has");
  if (!sizes && n.version() < 18 && length % parts != 0) {
    n.invalid(fmt::format("an axis of length {} cannot be cut into {} equal parts, as versions before 18 require",
                          length, parts));
  }
  if (!sizes) sizes = even_parts(length, parts);
  if (sizes->size() < n.output_count())
    n.invalid(fmt::format("it has {} outputs, but {} lengths", n.output_count(), sizes->size()));
  int64_t sum = 0;
  for (int64_t size : *sizes) {
    if (size < 0 || size > length)
      n.invalid(fmt::format("a part of length {} does not fit an axis of length {}", size, length));
    sum += size;
  }
  if (sum != length) n.invalid(fmt::format("the parts have {} elements together, but the axis has {}", sum, length));
  return split(x, *sizes, axis);
}

Tensor slice_axis(NodeContext& n, const Tensor& x, int64_t axis, SymDim from, SymDim to, int64_t step) {
  if (step == 0) n.invalid("a step is 0");
  if (step > 0) return sized::slice(x, axis, from, to, step);
  const int64_t given = bound(from, "Slice"), end = bound(to, "Slice");
  const int64_t length = x.dim(axis);
  // Unlike in Python, a start before element 0 counts as element 0.
  const int64_t start = length != 0 && given < -length ? 0 : given;
  // A negative step reaches element 0 only if the end lies before element 0, which Python writes as None.
  const bool to_first = step < 0 && end < 0 && end + length < 0;
  return slice(x, axis, start, to_first ? std::nullopt : std::optional(end), step);
}

TensorList translate_slice(NodeContext& n) {
  Tensor x = n.input(0);
  Sizes starts, ends;
  Ints steps;
  std::optional<Ints> axes;
  if (n.version() < 10) {
    starts = saturated(n.require("starts", Attribute::Kind::integers).ints);
    ends = saturated(n.require("ends", Attribute::Kind::integers).ints);
    axes = n.integers("axes");
  } else {
    starts = n.size_list(1);
    ends = n.size_list(2);
    if (n.has(3)) axes = n.ints(3);
    if (n.has(4)) steps = n.ints(4);
  }
  if (!axes) {
    axes = Ints(starts.size());
    std::iota(axes->begin(), axes->end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes->size() != starts.size() || steps.size() != starts.size()) {
    n.invalid("starts, ends, axes and steps have different lengths");
  }
  std::vector<bool> cut(static_cast<size_t>(x.rank()), false);
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = n.normalise_axis((*axes)[i], x.rank());
    if (cut[static_cast<size_t>(axis)]) n.invalid(fmt::format("it names axis {} twice", axis));
    cut[static_cast<size_t>(axis)] = true;
    x = slice_axis(n, x, axis, starts[i], ends[i], steps[i]);
  }
  return {x};
}

std::string pad_why_not(const Node& node) {
  const auto mode = node.attributes.find("mode");
  if (mode == node.attributes.end()) return {};
  const std::string& text = mode->second.s;
  return text == "constant" || text == "reflect" || text == "edge" || text == "wrap"
             ? std::string()
             : fmt::format("its mode is '{}'; constant, reflect, edge and wrap are known.", text);
}

// Crops `x` by the negative pads and sets them to 0. Every mode but `constant` fills from the cropped tensor.
Tensor cropped(NodeContext& n, Tensor x, Ints* by_axis) {
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const auto at = 2 * static_cast<size_t>(x.rank() - 1 - axis);
    int64_t &low = (*by_axis)[at], &high = (*by_axis)[at + 1];
    const int64_t length = x.dim(axis);
    if (low >= 0 && high >= 0) continue;
    if (low < -length || high < -length || std::min<int64_t>(low, 0) + std::min<int64_t>(high, 0) < -length)
      n.invalid(fmt::format("pads of {} and {} remove more elements than an axis of length {} has", low, high, length));
    const int64_t begin = std::max<int64_t>(0, -low), end = length - std::max<int64_t>(0, -high);
    x = narrow(x, axis, begin, end - begin);
    low = std::max<int64_t>(0, low);
    high = std::max<int64_t>(0, high);
  }
  return x;
}

// Pads with the elements from the other end of each axis.
Tensor padded_around(NodeContext& n, Tensor x, const Ints& by_axis) {
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const auto at = 2 * static_cast<size_t>(x.rank() - 1 - axis);
    const int64_t low = by_axis[at], high = by_axis[at + 1], length = x.dim(axis);
    constexpr int64_t kMost = int64_t{1} << 31;
    if (low == 0 && high == 0) continue;
    if (length == 0 || low < -kMost || low > kMost || high < -kMost || high > kMost || low + length + high < 0)
      n.invalid(
          fmt::format("an axis of length {} is too short to wrap around for pads of {} and {}", length, low, high));
    const Tensor places = sub(n.positions(low + length + high), Scalar(low));
    x = index_select(x, axis, remainder(places, Scalar(length)));
  }
  return x;
}

TensorList translate_pad(NodeContext& n) {
  Tensor x = n.input(0);
  const Ints pads =
      n.version() < 11 ? n.require(n.version() < 2 ? "paddings" : "pads", Attribute::Kind::integers).ints : n.ints(1);
  Ints axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  if (n.has(3)) axes = n.ints(3);
  if (pads.size() != 2 * axes.size()) n.invalid(fmt::format("{} pads are given for {} axes", pads.size(), axes.size()));
  Ints by_axis(2 * static_cast<size_t>(x.rank()), 0);  // low and high of each axis, the last axis first
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto at = static_cast<size_t>(x.rank() - 1 - n.normalise_axis(axes[i], x.rank()));
    by_axis[2 * at] = pads[i];
    by_axis[2 * at + 1] = pads[axes.size() + i];
  }
  const std::string mode = n.text("mode", "constant");
  const bool takes = std::any_of(by_axis.begin(), by_axis.end(), [](int64_t pad) { return pad < 0; });
  if (takes && mode != "constant") x = cropped(n, x, &by_axis);
  if (mode == "wrap") return {padded_around(n, x, by_axis)};
  const Scalar value = n.version() < 11 ? Scalar(n.number("value", 0.0)) : n.has(2) ? n.scalar(2) : Scalar(0);
  return {pad(x, by_axis, mode == "edge" ? "replicate" : mode, value)};
}

// The row and column number of each element of an [.., rows, columns] tensor.
struct Grid {
  Tensor rows, columns;
};

// The offset of a diagonal. Offsets beyond all axes are clamped, so that sums with positions do not overflow.
Scalar diagonal_offset(int64_t k) {
  constexpr int64_t kBeyond = int64_t{1} << 48;
  return Scalar(std::clamp(k, -kBeyond, kBeyond));
}

Grid grid(NodeContext& n, const Tensor& x) {
  const SymDim rows = size_at(x, x.rank() - 2), columns = size_at(x, x.rank() - 1);
  return {reshape(n.positions(rows), SizeList{rows, 1}), reshape(n.positions(columns), SizeList{1, columns})};
}

TensorList eye_like(NodeContext& n) {
  const Tensor& x = n.input(0);
  DType dtype = x.dtype();
  if (n.find("dtype") != nullptr)
    dtype = dtype_of_onnx(static_cast<int32_t>(n.require("dtype", Attribute::Kind::integer).i));
  if (dtype == DType::none) n.unsupported("its dtype is one that Tenon does not have");
  const Grid positions = grid(n, x);
  return {cast(eq(positions.columns, add(positions.rows, diagonal_offset(n.integer("k", 0)))), dtype)};
}

TensorList trilu(NodeContext& n) {
  const Tensor& x = n.input(0);
  if (x.rank() < 2) n.invalid(fmt::format("its input has rank {}, not 2 or more", x.rank()));
  const Scalar k = diagonal_offset(n.has(1) ? n.scalar(1).to_int() : 0);
  const Grid positions = grid(n, x);
  const Tensor diagonal = add(positions.rows, k);
  const Tensor kept = n.flag("upper", true) ? ge(positions.columns, diagonal) : le(positions.columns, diagonal);
  return {where(kept, x, x.dtype() == DType::boolean ? Scalar(false) : Scalar(0))};
}

// Moves blocks of channels of x [n, c, h, w] into its spatial axes.
TensorList depth_to_space(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int64_t b = n.require("blocksize", Attribute::Kind::integer).i;
  const SymDim batch = size_at(x, 0), c = floor_div(size_at(x, 1), b * b), h = size_at(x, 2), w = size_at(x, 3);
  const bool column_row_depth = n.text("mode", "DCR") == "CRD";
  const Tensor blocks = column_row_depth ? permute(reshape(x, SizeList{batch, c, b, b, h, w}), {0, 1, 4, 2, 5, 3})
                                         : permute(reshape(x, SizeList{batch, b, b, c, h, w}), {0, 3, 4, 1, 5, 2});
  return {reshape(blocks, SizeList{batch, c, h * b, w * b})};
}

TensorList space_to_depth(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int64_t b = n.require("blocksize", Attribute::Kind::integer).i;
  const SymDim batch = size_at(x, 0), c = size_at(x, 1);
  const SymDim h = floor_div(size_at(x, 2), b), w = floor_div(size_at(x, 3), b);
  const Tensor blocks = reshape(x, SizeList{batch, c, h, b, w, b});
  const bool channels_first = n.text("mode", "DCR") == "CRD";
  return {reshape(channels_first ? permute(blocks, {0, 1, 3, 5, 2, 4}) : permute(blocks, {0, 3, 5, 1, 2, 4}),
                  SizeList{batch, c * b * b, h, w})};
}

constexpr Translator kShapeRows[] = {
    {.op_type = "Concat", .since = 4, .translate = translate_concat},
    {.op_type = "Constant", .since = 1, .translate = constant, .why_not = constant_why_not},
    {.op_type = "ConstantOfShape", .since = 9, .translate = constant_of_shape},
    {.op_type = "DepthToSpace", .since = 1, .translate = depth_to_space},
    {.op_type = "Expand", .since = 8, .translate = translate_expand},
    {.op_type = "EyeLike", .since = 9, .translate = eye_like, .reads_shapes_only = true},
    {.op_type = "Flatten", .since = 1, .translate = translate_flatten},
    {.op_type = "Pad", .since = 1, .translate = translate_pad, .why_not = pad_why_not},
    {.op_type = "Range", .since = 11, .translate = range},
    {.op_type = "Reshape", .since = 1, .translate = translate_reshape},
    {.op_type = "Shape", .since = 1, .translate = shape_of, .reads_shapes_only = true},
    {.op_type = "Size", .since = 1, .translate = size_of, .reads_shapes_only = true},
    {.op_type = "Slice", .since = 1, .translate = translate_slice},
    {.op_type = "SpaceToDepth", .since = 1, .translate = space_to_depth},
    {.op_type = "Split", .since = 2, .translate = translate_split},
    {.op_type = "Squeeze", .since = 1, .translate = translate_squeeze},
    {.op_type = "Tile", .since = 6, .translate = translate_tile},
    {.op_type = "Transpose", .since = 1, .translate = translate_transpose},
    {.op_type = "Trilu", .since = 14, .translate = trilu},
    {.op_type = "Unsqueeze", .since = 1, .translate = translate_unsqueeze},
    {.domain = kMicrosoft, .op_type = "Pad", .since = 1, .translate = translate_pad, .why_not = pad_why_not},
    {.domain = kMicrosoft, .op_type = "Range", .since = 1, .translate = range},
    {.domain = kMicrosoft, .op_type = "Trilu", .since = 1, .translate = trilu},
};

}  // namespace

std::span<const Translator> shape_translators() { return kShapeRows; }

}  // namespace tenon::onnx
