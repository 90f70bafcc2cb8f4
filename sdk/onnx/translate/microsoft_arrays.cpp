// Operators of com.microsoft that move, find or make elements, and operators of ai.onnx that ONNX has withdrawn but
// ONNX Runtime still runs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "primitives/text/format.h"
#include "sdk/onnx/translate/layers.h"
#include "sdk/onnx/translate/microsoft.h"
#include "sdk/onnx/translate/order.h"
#include "sdk/onnx/translate/sample.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 28;

TensorList expand_dims(NodeContext& n) {
  const int64_t axis = n.normalise_axis(n.scalar(1).to_int(), n.rank(0) + 1);
  if (n.rank(0) == EP_MAX_RANK) n.invalid(fmt::format("its input already has the greatest rank, {}", n.rank(0)));
  return {unsqueeze(n.input(0), axis)};
}

TensorList invert(NodeContext& n) {
  const Tensor& x = n.input(0);
  return {x.dtype() == DType::f16 ? cast(inverse(cast(x, DType::f32)), DType::f16) : inverse(x)};
}

std::string metric_why_not(const Node& node) {
  const auto metric = node.attributes.find("metric");
  if (metric == node.attributes.end() || metric->second.s == "euclidean" || metric->second.s == "sqeuclidean")
    return {};
  return fmt::format("its metric is '{}'; euclidean and sqeuclidean are known.", metric->second.s);
}

TensorList distances(NodeContext& n) {
  if (n.rank(0) != 2 || n.rank(1) != 2)
    n.invalid(fmt::format("A and B have shapes {} and {}; both must be matrices", n.sizes(0), n.sizes(1)));
  const Tensor result = cdist(n.input(0), n.input(1));
  return {n.text("metric", "sqeuclidean") == "euclidean" ? result : square(result)};
}

// `count` evenly spaced positions along an axis of `length`, from `low` to `high` of each box [r]: [r, count].
Tensor box_places(NodeContext& n, const Tensor& low, const Tensor& high, int64_t length, int64_t count) {
  const auto last = static_cast<double>(length - 1);
  if (count == 1) return unsqueeze(mul(add(low, high), Scalar(0.5 * last)), 1);
  const Tensor step = mul(sub(high, low), Scalar(last / static_cast<double>(count - 1)));
  const Tensor numbers = cast(n.positions(count), DType::f32);
  return add(unsqueeze(mul(low, Scalar(last)), 1), mul(unsqueeze(step, 1), numbers));
}

// Boxes are [y1, x1, y2, x2] in fractions of the image.
TensorList crop_and_resize(NodeContext& n) {
  const Tensor& x = n.input(0);
  const std::vector<int64_t> size = n.ints(3);
  if (x.rank() != 4 || n.rank(1) != 2 || n.dims(1)[1] != 4 || n.rank(2) != 1 || n.dims(2)[0] != n.dims(1)[0])
    n.invalid(
        fmt::format("X, rois and batch_indices have shapes {}, {} and {}; [n, c, h, w], [r, 4] and [r] are needed",
                    n.dims(0), n.dims(1), n.dims(2)));
  constexpr int64_t kLongest = 1 << 14;
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > kLongest || size[1] > kLongest)
    n.invalid("its crop_size must be two numbers from 1 to 16384");
  const int64_t boxes = n.dims(1)[0], points = size[0] * size[1];
  if (x.elements() == 0 || boxes == 0) n.unsupported("it has no elements or no boxes");
  if (boxes * x.dim(1) > kMostElements / points)
    n.unsupported(fmt::format("it samples {} points in each of {} boxes, which is too many", points, boxes));
  const Tensor corners = cast(n.input(1), DType::f32), images = gather_slices(x, 0, n.input(2));
  const auto places = [&](int64_t axis) {
    return box_places(n, select(corners, 1, axis), select(corners, 1, axis + 2), x.dim(axis + 2),
                      size[static_cast<size_t>(axis)]);
  };
  const Dims grid{boxes, size[0], size[1]};
  const Tensor y = reshape(expand(unsqueeze(places(0), 2), grid), {boxes, points});
  const Tensor across = reshape(expand(unsqueeze(places(1), 1), grid), {boxes, points});
  const auto within = [](const Tensor& place, int64_t length) {
    return logical_and(ge(place, Scalar(0.0)), le(place, Scalar(static_cast<double>(length - 1))));
  };
  const Tensor inside = logical_and(within(y, x.dim(2)), within(across, x.dim(3)));
  const Taps taps = n.text("mode", "bilinear") == "nearest" ? Taps::nearest : Taps::linear;
  const Tensor taken = sampled(images, {y, across}, taps, Border::edge, true);
  const Tensor kept = where(unsqueeze(inside, 1), taken, Scalar(n.number("extrapolation_value", 0.0)));
  return {reshape(cast(kept, x.dtype()), {boxes, x.dim(1), size[0], size[1]})};
}

std::string dynamic_pads_why_not(const Node& node) {
  const auto pads = node.attributes.find("auto_pad");
  if (pads == node.attributes.end() || pads->second.s == "NOTSET") return {};
  return fmt::format("its auto_pad is '{}'; its pads are an input.", pads->second.s);
}

TensorList conv_transpose_of_pads(NodeContext& n) {
  const auto axes = static_cast<size_t>(std::max(1, n.rank(0) - 2));
  using Ints = std::vector<int64_t>;
  const Ints strides = n.integers("strides").value_or(Ints(axes, 1));
  const Ints dilations = n.integers("dilations").value_or(Ints(axes, 1));
  const Ints extra = n.integers("output_padding").value_or(Ints(axes, 0));
  const Ints pads = n.has(2) ? n.ints(2) : Ints(2 * axes, 0);
  const bool fit =
      strides.size() == axes && dilations.size() == axes && extra.size() == axes && pads.size() == 2 * axes;
  if (!fit || !all_within(strides, 1) || !all_within(dilations, 1) || !all_within(extra, 0) || !all_within(pads, 0))
    n.invalid(fmt::format("its strides, dilations and pads do not fit an input of shape {}", n.sizes(0)));
  return {
      conv_transpose(n.input(0), n.input(1), n.optional(3), strides, pads, extra, n.integer("group", 1), dilations)};
}

// All slices of one axis, each as a new last axis.
TensorList unfold_axis(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int64_t axis = n.normalise_axis(n.integer("dim", -1), x.rank()), length = x.dim(axis);
  const int64_t size = n.require("size", Attribute::Kind::integer).i, step = n.integer("step", 1);
  if (size < 1 || step < 1 || size > length || x.rank() == EP_MAX_RANK)
    n.invalid(fmt::format("slices of {} elements at steps of {} cannot be taken from an axis of length {}", size, step,
                          length));
  const int64_t count = (length - size) / step + 1;
  if (count > kMostElements / size)
    n.unsupported(fmt::format("it takes {} slices of {} elements, which is too many", count, size));
  const Tensor starts = mul(n.positions(count), Scalar(step));
  const Tensor slices = gather_slices(x, axis, add(unsqueeze(starts, 1), n.positions(size)));
  return {movedim(slices, {axis + 1}, {x.rank()})};
}

TensorList identity(NodeContext& n) { return {n.input(0)}; }

// The distinct elements in order of first occurrence, the index of each input element among them, and the counts.
TensorList unique_in_order(NodeContext& n) {
  if (n.rank(0) != 1) n.invalid(fmt::format("its input has rank {}; it must be a list", n.rank(0)));
  const Tensor x = n.known_input(0).to(n.device());
  if (x.elements() == 0) {
    const Tensor none = full({0}, Scalar(0), DType::i64, n.device());
    return {x, none, none};
  }
  const TensorList padded = unique_padded(x, std::nullopt, "first", true, true, true);
  const int64_t count = padded[1].item().to_int();
  return {narrow(padded[0], 0, 0, count), padded[3], narrow(padded[4], 0, 0, count)};
}

// Sets the score of tokens that would repeat an earlier run of `ngram_size` tokens to -inf.
TensorList without_repeats(NodeContext& n) {
  const Tensor &ids = n.input(0), &scores = n.input(1);
  if (ids.rank() != 2 || scores.rank() != 2 || ids.dim(0) != scores.dim(0))
    n.invalid(
        fmt::format("input_ids and scores have shapes {} and {}; both must be matrices with the same number of rows",
                    ids.dims(), scores.dims()));
  const int64_t size = n.require("ngram_size", Attribute::Kind::integer).i, length = ids.dim(1), words = scores.dim(1);
  if (size < 1) n.invalid(fmt::format("its ngram_size is {}; it must be at least 1", size));
  if (size > length) return {scores};
  const int64_t starts = length - size + 1;
  Tensor same;
  for (int64_t i = 0; i + 1 < size; ++i) {
    const Tensor equal = eq(narrow(ids, 1, i, starts), narrow(ids, 1, length - size + 1 + i, 1));
    same = same.defined() ? logical_and(same, equal) : equal;
  }
  const Tensor tokens = narrow(ids, 1, size - 1, starts);
  // Other tokens go to an extra column that is cut off.
  const Tensor places = same.defined() ? where(same, tokens, Scalar(words)) : tokens;
  const Tensor marks =
      scatter(full({ids.dim(0), words + 1}, Scalar(0.0), DType::f32, n.device()), 1, places, Scalar(1.0));
  return {where(gt(narrow(marks, 1, 0, words), Scalar(0.0)), Scalar(-std::numeric_limits<double>::infinity()), scores)};
}

// ---- hashing ----

// MurmurHash3_x86_32 of Austin Appleby (https://github.com/aappleby/smhasher).
uint32_t murmur_hash(std::string_view bytes, uint32_t seed) {
  const auto rotated = [](uint32_t x, int by) { return x << by | x >> (32 - by); };
  const auto mixed = [&](uint32_t k) { return rotated(k * 0xcc9e2d51u, 15) * 0x1b873593u; };
  uint32_t hash = seed;
  size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    uint32_t k = 0;
    std::memcpy(&k, bytes.data() + at, 4);
    hash = rotated(hash ^ mixed(k), 13) * 5 + 0xe6546b64u;
  }
  uint32_t tail = 0;
  for (size_t i = bytes.size(); i-- > at;) tail = tail << 8 | static_cast<uint8_t>(bytes[i]);
  if (at != bytes.size()) hash ^= mixed(tail);
  hash ^= static_cast<uint32_t>(bytes.size());
  hash = (hash ^ hash >> 16) * 0x85ebca6bu;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
  return hash ^ hash >> 16;
}

ValueList hashes(NodeContext& n) {
  const auto seed = static_cast<uint32_t>(n.integer("seed", 0));
  std::vector<uint32_t> results;
  if (n.value(0).kind() == Value::Kind::strings) {
    for (const std::string& text : n.value(0).strings()) results.push_back(murmur_hash(text, seed));
  } else {
    const Tensor x = contiguous(n.known_input(0));
    std::string bytes(static_cast<size_t>(x.bytes()), '\0');
    x.copy_to_host(bytes.data());
    const auto each = static_cast<size_t>(dtype_size(x.dtype()));
    for (size_t at = 0; at < bytes.size(); at += each)
      results.push_back(murmur_hash(std::string_view(bytes).substr(at, each), seed));
  }
  const DType dtype = n.flag("positive", true) ? DType::u32 : DType::i32;
  return {Tensor::copy_from_host(results.data(), n.value(0).dims(), dtype, n.device())};
}

// ---- withdrawn operators of ai.onnx ----

// Applies the operator of that name with the attributes alpha and beta.
template <size_t Count>
TensorList as_activation(NodeContext& n, const double (&initial)[Count]) {
  constexpr const char* kNames[] = {"alpha", "beta"};
  std::vector<double> numbers;
  for (size_t i = 0; i < Count; ++i) numbers.push_back(n.number(kNames[i], initial[i]));
  return {activated(n, n.input(0), n.node().op_type, numbers)};
}
TensorList affine(NodeContext& n) { return as_activation(n, {1.0, 0.0}); }
TensorList parametric_softplus(NodeContext& n) { return as_activation(n, {1.0, 1.0}); }
TensorList scaled_tanh(NodeContext& n) { return as_activation(n, {1.0, 1.0}); }
TensorList scale(NodeContext& n) { return {mul(n.input(0), Scalar(n.number("scale", 1.0)))}; }

// The border is [left, top, right, bottom]; with a scale [height, width] only the low ends count.
TensorList crop(NodeContext& n) {
  const Tensor& x = n.input(0);
  const std::vector<int64_t> border = n.integers("border").value_or(std::vector<int64_t>());
  const std::optional<std::vector<int64_t>> size = n.integers("scale");
  if (x.rank() != 4 || border.size() != 4 || !all_within(border, 0) || (size && size->size() != 2))
    n.invalid(fmt::format("its border or scale does not fit an input of shape {}", x.dims()));
  const int64_t top = border[1], left = border[0];
  const int64_t height = size ? (*size)[0] : x.dim(2) - top - border[3];
  const int64_t width = size ? (*size)[1] : x.dim(3) - left - border[2];
  if (height < 0 || width < 0 || top + height > x.dim(2) || left + width > x.dim(3))
    n.invalid(fmt::format("a part of {} by {} from ({}, {}) is not in an input of shape {}", height, width, top, left,
                          x.dims()));
  return {narrow(narrow(x, 2, top, height), 3, left, width)};
}

TensorList image_scaler(NodeContext& n) {
  const Tensor& x = n.input(0);
  const Tensor scaled = mul(x, Scalar(n.number("scale", 1.0)));
  if (n.find("bias") == nullptr) return {scaled};
  const std::vector<float>& bias = n.require("bias", Attribute::Kind::numbers).floats;
  if (x.rank() != 4 || x.dim(1) != static_cast<int64_t>(bias.size()))
    n.invalid(fmt::format("its bias has {} numbers for an input of shape {}", bias.size(), x.dims()));
  const Tensor& by_channel = n.kept<Tensor>("bias", [&] {
    return Tensor::copy_from_host(bias.data(), {x.dim(1), 1, 1}, DType::f32, n.device());
  });
  return {add(scaled, cast(by_channel, x.dtype()))};
}

constexpr Translator kMicrosoftArraysRows[] = {
    {.domain = kMicrosoft, .op_type = "CDist", .since = 1, .translate = distances, .why_not = metric_why_not},
    {.domain = kMicrosoft,
     .op_type = "ConvTransposeWithDynamicPads",
     .since = 1,
     .translate = conv_transpose_of_pads,
     .why_not = dynamic_pads_why_not},
    {.domain = kMicrosoft, .op_type = "CropAndResize", .since = 1, .translate = crop_and_resize},
    {.domain = kMicrosoft, .op_type = "ExpandDims", .since = 1, .translate = expand_dims},
    {.domain = kMicrosoft, .op_type = "GatherND", .since = 1, .translate = translate_gather_nd},
    {.domain = kMicrosoft, .op_type = "Inverse", .since = 1, .translate = invert},
    {.domain = kMicrosoft, .op_type = "MurmurHash3", .since = 1, .translate_values = hashes},
    {.domain = kMicrosoft, .op_type = "NGramRepeatBlock", .since = 1, .translate = without_repeats},
    {.domain = kMicrosoft, .op_type = "SampleOp", .since = 1, .translate = identity},
    {.domain = kMicrosoft, .op_type = "UnfoldTensor", .since = 1, .translate = unfold_axis},
    {.domain = kMicrosoft, .op_type = "Unique", .since = 1, .translate = unique_in_order},
    {.op_type = "Affine", .since = 1, .translate = affine},
    {.op_type = "Crop", .since = 1, .translate = crop},
    {.op_type = "ImageScaler", .since = 1, .translate = image_scaler},
    {.op_type = "ParametricSoftplus", .since = 1, .translate = parametric_softplus},
    {.op_type = "Scale", .since = 1, .translate = scale},
    {.op_type = "ScaledTanh", .since = 1, .translate = scaled_tanh},
};

}  // namespace

std::span<const Translator> microsoft_array_translators() { return kMicrosoftArraysRows; }

}  // namespace tenon::onnx
