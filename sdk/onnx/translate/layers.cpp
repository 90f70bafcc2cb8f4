// Products, convolutions, pooling and normalisation.
#include <algorithm>
#include <numeric>

#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/layers.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {

bool all_within(const std::vector<int64_t>& values, int64_t least) {
  return std::all_of(values.begin(), values.end(), [least](int64_t v) { return v >= least && v < kTooLong; });
}

namespace {

using Ints = std::vector<int64_t>;

TensorList translate_matmul(NodeContext& n) { return {matmul(n.input(0), n.input(1))}; }

TensorList translate_einsum(NodeContext& n) {
  return {einsum(n.require("equation", Attribute::Kind::text).s, n.inputs())};
}

TensorList gemm(NodeContext& n) {
  const Tensor a = n.flag("transA", false) ? t(n.input(0)) : n.input(0);
  const Tensor b = n.flag("transB", false) ? t(n.input(1)) : n.input(1);
  const double alpha = n.number("alpha", 1.0), beta = n.number("beta", 1.0);
  Tensor c = beta == 0.0 ? Tensor() : n.optional(2);
  // Rounds once, after the addition.
  if (c.defined() && (a.dtype() == DType::f16 || a.dtype() == DType::bf16))
    return {addmm(c, a, b, Scalar(beta), Scalar(alpha))};
  // Integers that are multiplied by alpha or beta are computed in floats.
  const auto scaled = [](const Tensor& x, double by) {
    if (by == 1.0) return x;
    return mul(is_floating(x.dtype()) ? x : cast(x, DType::f64), Scalar(by));
  };
  if (c.defined()) c = scaled(c, beta);
  const Tensor product = scaled(matmul(a, b), alpha);
  return {cast(c.defined() ? add(product, c) : product, a.dtype())};
}

// A window over the spatial axes, with one number per axis. `pads` has all low ends first, then all high ends.
struct Window {
  Ints kernel, strides, dilations, pads;
  std::string auto_pad;
};

int64_t reach(const Window& w, size_t i) { return (w.kernel[i] - 1) * w.dilations[i] + 1; }

void check_window(NodeContext& n, const Window& w, size_t axes) {
  if (axes < 1 || axes > 3) n.unsupported(fmt::format("it has {} spatial axes; 1 to 3 are possible", axes));
  if (w.kernel.size() != axes)
    n.invalid(fmt::format("its kernel has {} axes, but its input has {} spatial axes", w.kernel.size(), axes));
  if (!all_within(w.kernel, 1)) n.invalid("its kernel must be positive and below 2^31");
  // Operators without a row in schema/constraints.def need this check.
  if (w.strides.size() != axes || w.dilations.size() != axes || w.pads.size() != 2 * axes)
    n.invalid(fmt::format("its strides, dilations and pads do not fit {} spatial axes", axes));
  if (!all_within(w.strides, 1) || !all_within(w.dilations, 1) || !all_within(w.pads, 0))
    n.invalid("its strides and dilations must be positive, its pads not negative, and all below 2^31");
}

// Reads the window over x [n, c, d1..]. `weights` are the spatial dims of the weights; empty if the node has no
// weights.
Window read_window(NodeContext& n, const Tensor& x, const Ints& weights) {
  Window w;
  w.kernel = weights.empty() ? n.integers("kernel_shape").value_or(Ints()) : weights;
  const auto axes = static_cast<size_t>(std::max(0, x.rank() - 2));
  w.strides = n.integers("strides").value_or(Ints(axes, 1));
  w.dilations = n.integers("dilations").value_or(Ints(axes, 1));
  w.pads = n.integers("pads").value_or(Ints(2 * axes, 0));
  w.auto_pad = n.text("auto_pad", "NOTSET");
  for (const SymDim dim : sizes(x)) {
    if (dim >= kTooLong)
      n.unsupported(fmt::format("its input has the shape {}; dims must be below {}", sizes(x), kTooLong));
  }
  check_window(n, w, axes);
  for (size_t i = 0; i < axes; ++i) {
    const SymDim length = size_at(x, static_cast<int64_t>(i) + 2);
    // Padding would permit windows of any size, and a file of a few bytes could demand years of work.
    if (w.kernel[i] > 2 * length + 64) {
      n.unsupported(
          fmt::format("its window of length {} is far longer than its input of length {}", w.kernel[i], length));
    }
  }
  return w;
}

// SAME_UPPER and SAME_LOWER: pads so that there are ceil(length / stride) windows.
void resolve_same(const Tensor& x, Window* w) {
  if (w->auto_pad == "VALID") w->pads.assign(w->pads.size(), 0);
  if (w->auto_pad != "SAME_UPPER" && w->auto_pad != "SAME_LOWER") return;
  const size_t axes = w->kernel.size();
  for (size_t i = 0; i < axes; ++i) {
    const int64_t length = bound(size_at(x, static_cast<int64_t>(i) + 2), "auto_pad");
    const int64_t windows = (length + w->strides[i] - 1) / w->strides[i];
    const int64_t total = std::max<int64_t>(0, (windows - 1) * w->strides[i] + reach(*w, i) - length);
    const int64_t less = total / 2;
    w->pads[i] = w->auto_pad == "SAME_UPPER" ? less : total - less;
    w->pads[axes + i] = total - w->pads[i];
  }
}

// auto_pad decides the number of windows if the node sets it; otherwise ceil_mode does.
bool rounds_up(NodeContext& n, const Window& w) { return w.auto_pad == "NOTSET" && n.flag("ceil_mode", false); }

Ints spatial_dims(const Tensor& x) { return Ints(x.dims().begin() + std::min(2, x.rank()), x.dims().end()); }

TensorList translate_conv(NodeContext& n) { return {conv_of_node(n, n.input(0), n.input(1), n.optional(2))}; }

TensorList translate_conv_transpose(NodeContext& n) {
  Window w = read_window(n, n.input(0), spatial_dims(n.input(1)));
  const size_t axes = w.kernel.size();
  Ints extra = n.integers("output_padding").value_or(Ints(axes, 0));
  const std::optional<Ints> shape = n.integers("output_shape");
  const bool same = w.auto_pad == "SAME_UPPER" || w.auto_pad == "SAME_LOWER";
  for (size_t i = 0; i < axes && (shape || same); ++i) {
    const int64_t length = bound(n.sizes(0)[static_cast<int64_t>(i) + 2], "auto_pad");
    const int64_t wanted = shape ? (*shape)[i] : length * w.strides[i];
    int64_t total = (length - 1) * w.strides[i] + extra[i] + reach(w, i) - wanted;
    if (total < 0) {  // the requested output is larger than the windows reach
      extra[i] -= total;
      total = 0;
    }
    const int64_t low = w.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.pads[i] = low;
    w.pads[axes + i] = total - low;
  }
  return {conv_transpose(n.input(0), n.input(1), n.optional(2), w.strides, w.pads, extra, n.integer("group", 1),
                         w.dilations)};
}

TensorList average_pool(NodeContext& n) { return {average_pool_of_node(n, n.input(0))}; }

// Converts positions in a plane [.., h, w] to positions in the whole tensor, in row-major order or with the axes of the
// plane reversed.
Tensor whole_positions(NodeContext& n, const Tensor& positions, const Tensor& x, bool column_major) {
  const Ints plane = spatial_dims(x);
  const int64_t size = std::accumulate(plane.begin(), plane.end(), int64_t{1}, std::multiplies<>());
  Tensor in_plane = positions;
  if (column_major) {
    Tensor rest = positions, result;
    for (size_t i = plane.size(); i-- > 0;) {
      int64_t stride = 1;
      for (size_t j = 0; j < i; ++j) stride *= plane[j];
      const Tensor part = mul(remainder(rest, Scalar(plane[i])), Scalar(stride));
      result = result.defined() ? add(result, part) : part;
      rest = floor_divide(rest, Scalar(plane[i]));
    }
    in_plane = result;
  }
  SymDims shape = SymDims::filled(x.rank(), 1);
  shape[0] = size_at(x, 0);
  shape[1] = size_at(x, 1);
  const Tensor planes = reshape(n.positions(n.product(0, 0, 2)), SizeList(shape));
  return add(in_plane, mul(planes, Scalar(size)));
}

TensorList translate_max_pool(NodeContext& n) {
  const Tensor& x = n.input(0);
  if (!n.wants(1)) return {max_pool_of_node(n, x)};
  Window w = read_window(n, x, {});
  resolve_same(x, &w);
  const bool ceil = rounds_up(n, w);
  auto [values, positions] = max_pool_with_indices(x, w.kernel, w.strides, w.pads, w.dilations, ceil);
  return {values, whole_positions(n, positions, x, n.integer("storage_order", 0) == 1)};
}

TensorList translate_lp_pool(NodeContext& n) {
  Window w = read_window(n, n.input(0), {});
  resolve_same(n.input(0), &w);
  const bool ceil = rounds_up(n, w);
  const double p = n.version() < 2 ? n.number("p", 2) : static_cast<double>(n.integer("p", 2));
  return {lp_pool(n.input(0), p, w.kernel, w.strides, ceil, w.pads, w.dilations)};
}

Ints spatial_axes(NodeContext& n) {
  if (n.rank(0) < 3) n.invalid(fmt::format("its input has shape {}, without spatial axes", n.dims(0)));
  Ints axes(static_cast<size_t>(n.rank(0)) - 2);
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

TensorList global_average_pool(NodeContext& n) { return {mean(n.input(0), spatial_axes(n), true)}; }
TensorList global_max_pool(NodeContext& n) { return {amax(n.input(0), spatial_axes(n), true)}; }
TensorList global_lp_pool(NodeContext& n) { return {l2_norm(n.input(0), spatial_axes(n), true)}; }
std::string lp_why_not(const Node& node) {
  const auto p = node.attributes.find("p");
  return p == node.attributes.end() || p->second.i == 2
             ? std::string()
             : fmt::format("its p is {}; only 2 is translated.", p->second.i);
}

std::string batch_norm_why_not(const Node& node) {
  const auto value = [&](const char* name, int64_t initial) {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? initial : found->second.i;
  };
  if (node.version < 7 && value("is_test", 0) == 0) return "it works in training mode.";
  if (node.version < 9 && value("spatial", 1) == 0) return "it has a mean for each element (spatial = 0).";
  if (node.version < 14 && node.outputs.size() > 1)
    return "it works in training mode: not only its first output is used.";
  return {};
}

// Normalises with the statistics of the batch and updates the running statistics.
TensorList batch_norm_training(NodeContext& n) {
  const Tensor& x = n.input(0);
  Ints axes;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != 1) axes.push_back(i);
  }
  const Tensor batch_mean = mean(x, axes), batch_var = var(x, axes, 0);
  const double momentum = n.number("momentum", 0.9);
  const auto moved = [&](const Tensor& running, const Tensor& batch) {
    return add(mul(running, Scalar(momentum)), mul(batch, Scalar(1.0 - momentum)));
  };
  return {batch_norm(x, batch_mean, batch_var, n.input(1), n.input(2), n.number("epsilon", 1e-5)),
          moved(n.input(3), batch_mean), moved(n.input(4), batch_var)};
}

TensorList batch_normalization(NodeContext& n) {
  if (n.flag("training_mode", false)) return batch_norm_training(n);
  return {batch_norm(n.input(0), n.input(3), n.input(4), n.input(1), n.input(2), n.number("epsilon", 1e-5))};
}

TensorList instance_normalization(NodeContext& n) {
  return {instance_norm(n.input(0), n.input(1), n.input(2), n.number("epsilon", 1e-5))};
}

TensorList layer_normalization(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int64_t axis = n.axis(-1, x.rank());
  const SymDims dims = sizes(x);
  const SymDims inner(std::span<const SymDim>(dims.begin() + axis, dims.end()));
  const double epsilon = n.number("epsilon", 1e-5);
  const DType common = promote(x.dtype(), n.dtype(1));  // before version 17 the scale may have another type
  const Tensor given = cast(x, common), scale = cast(n.input(1), common);
  const Tensor bias = n.has(2) ? cast(n.input(2), common) : Tensor();
  const bool fits = same_sizes(sizes(scale), inner) && (!bias.defined() || same_sizes(sizes(bias), inner));
  Tensor y = fits ? layer_norm(given, SizeList(inner), scale, bias, epsilon)
                  : mul(layer_norm(given, SizeList(inner), Tensor(), Tensor(), epsilon), scale);
  if (!fits && bias.defined()) y = add(y, bias);
  y = cast(y, n.dtype(1));
  if (!n.wants(1) && !n.wants(2)) return {y};
  Ints axes(static_cast<size_t>(x.rank() - axis));
  std::iota(axes.begin(), axes.end(), axis);
  // The statistics have the type stash_type, whatever the type of x.
  const auto stash_type = static_cast<int32_t>(n.integer("stash_type", 1));
  const DType stash = dtype_of_onnx(stash_type);
  if (stash != DType::f32 && stash != DType::bf16)
    n.invalid(fmt::format("its stash_type is {}; it may be float or bfloat16", onnx_type_name(stash_type)));
  const Tensor wide = promote(x.dtype(), stash) == x.dtype() ? x : cast(x, stash);
  const Tensor deviation = sqrt(add(var(wide, axes, 0, true), Scalar(epsilon)));
  return {y, cast(mean(wide, axes, true), stash), cast(reciprocal(deviation), stash)};
}

// Divides each element by a power of the sum of squares over neighbouring channels.
TensorList local_response_normalization(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int64_t size = n.require("size", Attribute::Kind::integer).i;
  if (size > 4096) n.unsupported(fmt::format("its size is {}; 1 to 4096 is possible", size));
  Ints padding(2 * static_cast<size_t>(x.rank()), 0);
  padding[2 * static_cast<size_t>(x.rank() - 2)] = (size - 1) / 2;
  padding[2 * static_cast<size_t>(x.rank() - 2) + 1] = size - 1 - (size - 1) / 2;
  const Tensor squares = pad(square(x), padding);
  Tensor total;
  for (int64_t i = 0; i < size; ++i) {
    const Tensor part = narrow(squares, 1, i, x.dim(1));
    total = total.defined() ? add(total, part) : part;
  }
  const Tensor scaled =
      add(mul(total, Scalar(n.number("alpha", 1e-4) / static_cast<double>(size))), Scalar(n.number("bias", 1.0)));
  return {div(x, tenon::pow(scaled, Scalar(n.number("beta", 0.75))))};
}

TensorList lp_normalization(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int64_t axis = n.axis(-1, x.rank());
  const Tensor norm = n.integer("p", 2) == 1 ? l1_norm(x, axis, true) : l2_norm(x, axis, true);
  return {where(eq(norm, Scalar(0.0)), Scalar(0.0), div(x, norm))};  // a row of zeros stays zero
}

constexpr Translator kLayersRows[] = {
    {.op_type = "AveragePool", .since = 1, .translate = average_pool},
    {.op_type = "BatchNormalization", .since = 1, .translate = batch_normalization, .why_not = batch_norm_why_not},
    {.op_type = "Conv", .since = 1, .translate = translate_conv},
    {.op_type = "ConvTranspose", .since = 1, .translate = translate_conv_transpose},
    {.op_type = "Einsum", .since = 12, .translate = translate_einsum},
    {.op_type = "Gemm", .since = 7, .translate = gemm},
    {.op_type = "GlobalAveragePool", .since = 1, .translate = global_average_pool},
    {.op_type = "GlobalLpPool", .since = 2, .translate = global_lp_pool, .why_not = lp_why_not},
    {.op_type = "GlobalMaxPool", .since = 1, .translate = global_max_pool},
    {.op_type = "InstanceNormalization", .since = 6, .translate = instance_normalization},
    {.op_type = "LRN", .since = 1, .translate = local_response_normalization, .wide = true},
    {.op_type = "LayerNormalization", .since = 1, .translate = layer_normalization},
    {.op_type = "LpNormalization", .since = 1, .translate = lp_normalization, .wide = true},
    {.op_type = "LpPool", .since = 2, .translate = translate_lp_pool},
    {.op_type = "MatMul", .since = 1, .translate = translate_matmul},
    {.op_type = "MaxPool", .since = 1, .translate = translate_max_pool},
};

}  // namespace

Tensor gemm_of_node(NodeContext& n) { return gemm(n)[0]; }

Tensor conv_of_node(NodeContext& n, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Window w = read_window(n, x, spatial_dims(weight));
  resolve_same(x, &w);
  return conv(x, weight, bias, w.strides, w.pads, w.dilations, n.integer("group", 1));
}

Tensor average_pool_of_node(NodeContext& n, const Tensor& x) {
  Window w = read_window(n, x, {});
  resolve_same(x, &w);
  return avg_pool(x, w.kernel, w.strides, w.pads, rounds_up(n, w), n.flag("count_include_pad", false), w.dilations);
}

Tensor max_pool_of_node(NodeContext& n, const Tensor& x) {
  Window w = read_window(n, x, {});
  resolve_same(x, &w);
  return max_pool(x, w.kernel, w.strides, w.pads, w.dilations, rounds_up(n, w));
}

Tensor quantized_conv_of_node(NodeContext& n, const QuantizedTensor& x, const QuantizedTensor& weight,
                              const Tensor& bias, const QuantizedTensor& result, DType dtype) {
  Window w = read_window(n, x.value, spatial_dims(weight.value));
  resolve_same(x.value, &w);
  return quantized_conv(x.value, x.scale, x.zero_point, weight.value, weight.scale, weight.zero_point, bias,
                        result.scale, result.zero_point, w.strides, w.pads, w.dilations, n.integer("group", 1), dtype);
}

std::span<const Translator> layer_translators() { return kLayersRows; }

}  // namespace tenon::onnx
