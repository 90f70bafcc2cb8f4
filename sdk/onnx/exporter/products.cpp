// Products, convolutions and pooling.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/attributes.h"
#include "primitives/text/format.h"
#include "sdk/onnx/exporter/operators.h"

namespace tenon::onnx {
namespace {

using Ints = std::vector<int64_t>;

Ints first(const int64_t* values, int32_t count) { return Ints(values, values + count); }

Ints numbers(const NodeWriter& n, const int64_t* fields, int32_t count) {
  Ints list;
  for (int32_t i = 0; i < count; ++i) list.push_back(n.number_of(fields[i]));
  return list;
}

Ints pads_of(const NodeWriter& n, const int64_t* low, const int64_t* high, int32_t count) {
  Ints pads = numbers(n, low, count);
  const Ints ends = numbers(n, high, count);
  pads.insert(pads.end(), ends.begin(), ends.end());
  return pads;
}

WrittenAttributes convolution(const NodeWriter& n) {
  const ep_convolution_attributes& at = n.attributes<ConvolutionAttributes>().window;
  const int32_t spatial = at.spatial_rank;
  return {{"strides", first(at.stride, spatial)},
          {"dilations", first(at.dilation, spatial)},
          {"pads", pads_of(n, at.pad_low, at.pad_high, spatial)},
          {"group", at.groups}};
}

// Source, weight, and the bias if there is one.
std::vector<std::string> factors(NodeWriter& n) { return {n.in(0), n.in(1), n.has(2) ? n.in(2) : std::string()}; }

void matmul(NodeWriter& n) { n.give(n.add("MatMul", {n.in(0), n.in(1)})); }
void conv(NodeWriter& n) { n.give(n.add("Conv", factors(n), convolution(n))); }
void conv_transpose(NodeWriter& n) {
  WrittenAttributes attributes = convolution(n);
  const auto& at = n.attributes<ConvolutionAttributes>();
  attributes.emplace_back("output_padding", first(at.output_padding, at.window.spatial_rank));
  n.give(n.add("ConvTranspose", factors(n), std::move(attributes)));
}

// Attributes of a pooling window. ONNX's ceil_mode has windows that begin beyond the input and its padding; Tenon's has
// none. Where such windows could occur, the padding is chosen to end with the last window.
WrittenAttributes pooling(const NodeWriter& n) {
  const auto& attributes = n.attributes<PoolingAttributes>();
  const ep_pooling_attributes& at = attributes.window;
  const int32_t spatial = at.spatial_rank;
  Ints pads = pads_of(n, at.pad_low, at.pad_high, spatial);
  bool begins_inside = std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; });
  for (int32_t i = 0; i < spatial; ++i) begins_inside = begins_inside && at.stride[i] <= at.kernel[i];
  if (attributes.ceil_mode != 0 && !begins_inside) {
    const Ints from = n.fixed_dims(n.input(0)), to = n.fixed_dims(n.result());
    for (int32_t i = 0; i < spatial; ++i) {
      const auto axis = static_cast<size_t>(i);
      const int64_t reach = (to[axis + 2] - 1) * at.stride[i] + (at.kernel[i] - 1) * at.dilation[i] + 1;
      const int64_t more = reach - (from[axis + 2] + pads[axis] + pads[axis + static_cast<size_t>(spatial)]);
      if (more > 0 && at.op != EP_POOLING_MAX) n.refuse("its last window extends beyond its padding.");
      pads[axis + static_cast<size_t>(spatial)] += std::max<int64_t>(more, 0);
    }
  }
  WrittenAttributes window{
      {"kernel_shape", first(at.kernel, spatial)}, {"strides", first(at.stride, spatial)}, {"pads", pads}};
  if (attributes.ceil_mode != 0 && begins_inside) window.emplace_back("ceil_mode", int64_t{1});
  return window;
}

void refuse_dilation(const NodeWriter& n) {
  const ep_pooling_attributes& at = n.attributes<PoolingAttributes>().window;
  for (int32_t i = 0; i < at.spatial_rank; ++i) {
    if (at.dilation[i] != 1) n.refuse("ONNX's operator has no dilation before opset 19.");
  }
}

WrittenAttributes max_pooling(const NodeWriter& n) {
  WrittenAttributes attributes = pooling(n);
  const ep_pooling_attributes& at = n.attributes<PoolingAttributes>().window;
  attributes.emplace_back("dilations", first(at.dilation, at.spatial_rank));
  return attributes;
}

void max_pool(NodeWriter& n) { n.give(n.add("MaxPool", {n.in(0)}, max_pooling(n))); }

// ONNX counts positions in the whole tensor; Tenon counts them in each plane.
void max_pool_with_indices(NodeWriter& n) {
  const std::vector<std::string> made = n.model().nodes("MaxPool", {n.in(0)}, max_pooling(n), 2);
  std::string plane = n.model().integers({1});
  for (int32_t axis = 2; axis < n.rank(); ++axis) {
    plane = n.add("Mul", {plane, n.model().size(n.input(0).dims[axis])});
  }
  n.give(made[0]);
  n.give(n.add("Mod", {made[1], plane}), 1);
}

void avg_pool(NodeWriter& n) {
  refuse_dilation(n);
  WrittenAttributes attributes = pooling(n);
  // The part of the last window beyond the input is not padding and must not count in the mean.
  const bool beyond = attributes.back().first == "ceil_mode";
  const bool counts = !beyond && n.attributes<PoolingAttributes>().window.op == EP_POOLING_AVERAGE_INCLUDE_PAD;
  attributes.emplace_back("count_include_pad", int64_t{counts ? 1 : 0});
  n.give(n.add("AveragePool", {n.in(0)}, std::move(attributes)));
}

void lp_pool(NodeWriter& n) {
  refuse_dilation(n);
  if (n.attributes<PoolingAttributes>().ceil_mode != 0) n.refuse("ONNX's operator has no ceil_mode before opset 18.");
  const double p = n.attributes<PoolingAttributes>().window.p;
  if (p != std::floor(p) || p > 1e6) n.refuse("ONNX's operator only has integer norms.");
  WrittenAttributes attributes = pooling(n);
  attributes.emplace_back("p", static_cast<int64_t>(p));
  n.give(n.add("LpPool", {n.in(0)}, std::move(attributes)));
}

// softmax(query @ key^T * scale + bias) @ value, in f32 at least.
class Attention {
 public:
  explicit Attention(NodeWriter& n) : n_(n), at_(n.attributes<AttentionAttributes>().attention) {
    if (n.has(4)) n.refuse("no ONNX operator takes lengths of keys.");
    const SymDims query = n.dims(n.input(0)), key = n.dims(n.input(1));
    grouped_ = !identical(query[1], key[1]);
    if (grouped_) {
      heads_ = n.model().sizes().fix(query[1]);
      groups_ = n.model().sizes().fix(key[1]);
    }
    keys_ = key[2];
    queries_ = query[2];
    wide_ = n.dtype() == DType::f64 ? DType::f64 : DType::f32;
  }

  void write() {
    std::string query = wide(0), key = wide(1), value = wide(2);
    if (grouped_) {
      query = by_group(query, n_.dims(n_.input(0)));
      key = n_.add("Unsqueeze", {key, n_.model().integers({2})});
      value = n_.add("Unsqueeze", {value, n_.model().integers({2})});
    }
    const int64_t rank = grouped_ ? 5 : 4;
    Ints order{0, 1, 3, 2};
    if (rank == 5) order = {0, 1, 2, 4, 3};
    const std::string scaled = n_.add("Mul", {query, number(n_.scalar(0).to_double())});
    std::string scores = n_.add("MatMul", {scaled, n_.add("Transpose", {key}, {{"perm", order}})});
    if (const double cap = n_.scalar(1).to_double(); cap > 0) {
      scores = n_.add("Mul", {n_.add("Tanh", {n_.add("Div", {scores, number(cap)})}), number(cap)});
    }
    if (n_.has(3)) scores = biased(scores, rank);
    scores = within(scores);
    const std::string result = n_.add("MatMul", {shares(scores, rank), value});
    const std::string narrow = n_.cast(result, wide_, n_.dtype());
    n_.give(grouped_ ? n_.add("Reshape", {narrow, n_.model().shape(n_.result().dims)}) : narrow);
  }

 private:
  std::string wide(size_t i) { return n_.cast(n_.in(i), n_.dtype(i), wide_); }
  std::string number(double value) { return n_.model().number(Scalar(value), wide_); }
  std::string nothing() { return number(-std::numeric_limits<double>::infinity()); }

  // [b, h, ..] as [b, g, h / g, ..].
  std::string by_group(const std::string& x, SymDims dims) {
    dims[1] = groups_;
    dims.insert(2, heads_ / groups_);
    return n_.add("Reshape", {x, n_.model().shape(dims)});
  }

  std::string biased(const std::string& scores, int64_t rank) {
    const DType dtype = n_.dtype(3);
    std::string bias = dtype == DType::boolean ? n_.in(3) : wide(3);
    SymDims dims = n_.dims(n_.input(3));
    if (rank == 5 && dims.rank() >= 3) {
      while (dims.rank() < 4) dims.insert(0, 1);
      const bool one = dims[1].is_number() && dims[1].number() == 1;
      dims.insert(2, one ? 1 : heads_ / groups_);
      if (!one) dims[1] = groups_;
      bias = n_.add("Reshape", {bias, n_.model().shape(dims)});
    }
    can_be_empty_ = true;
    if (dtype == DType::boolean) return n_.add("Where", {bias, scores, nothing()});
    return n_.add("Add", {scores, bias});
  }

  std::string positions(SymDim count, const Ints& shape) {
    const std::string end = n_.add("Squeeze", {n_.model().size(count), n_.model().integers({0})});
    const std::string list = n_.add("Range", {n_.model().integer(0), end, n_.model().integer(1)});
    return n_.add("Reshape", {list, n_.model().integers(shape)});
  }

  // Masks the keys that are too far before or after their query.
  std::string within(const std::string& scores) {
    if (at_.before < 0 && at_.after < 0) return scores;
    const std::string column = positions(keys_, {1, -1});
    std::string row = positions(queries_, {-1, 1});
    const bool from_end = at_.align == EP_ATTENTION_END;
    if (from_end) row = n_.add("Add", {row, n_.add("Sub", {n_.model().size(keys_), n_.model().size(queries_)})});
    std::string takes;
    const auto require = [&](const std::string& condition) {
      takes = takes.empty() ? condition : n_.add("And", {takes, condition});
    };
    const auto moved = [&](int64_t by) { return n_.add("Add", {row, n_.model().integer(by)}); };
    if (at_.before >= 0) require(n_.add("GreaterOrEqual", {column, moved(-at_.before)}));
    if (at_.after >= 0) require(n_.add("LessOrEqual", {column, moved(at_.after)}));
    // Counted from the start, each query reads at least key 0 unless `before` limits it.
    can_be_empty_ = can_be_empty_ || from_end || at_.before >= 0;
    return n_.add("Where", {takes, scores, nothing()});
  }

  // The softmax of the scores; 0 in rows where all scores are -inf.
  std::string shares(const std::string& scores, int64_t rank) {
    const Ints last{rank - 1};
    if (!can_be_empty_) return n_.add("Softmax", {scores}, {{"axis", rank - 1}});
    const std::string greatest = n_.add("ReduceMax", {scores}, {{"axes", last}, {"keepdims", int64_t{1}}});
    const std::string none = n_.add("Equal", {greatest, nothing()});
    const std::string most = n_.add("Where", {none, number(0), greatest});
    const std::string powers = n_.add("Exp", {n_.add("Sub", {scores, most})});
    const std::string total = n_.add("ReduceSum", {powers, n_.model().integers(last)}, {{"keepdims", int64_t{1}}});
    return n_.add("Div", {powers, n_.add("Where", {none, number(1), total})});
  }

  NodeWriter& n_;
  const ep_attention_attributes& at_;
  bool grouped_ = false;  // several heads read the same keys
  int64_t heads_ = 0, groups_ = 0;
  SymDim keys_ = 0, queries_ = 0;
  DType wide_ = DType::f32;
  bool can_be_empty_ = false;  // a query may have no key to read
};

void attention(NodeWriter& n) { Attention(n).write(); }

// Refuses dtypes that ONNX cannot quantise to before opset 21.
void check_quantised(const NodeWriter& n, DType dtype, bool more) {
  if (dtype == DType::u8 || dtype == DType::i8 || (more && dtype == DType::i32)) return;
  n.refuse(fmt::format("ONNX has no quantised {} before opset 21.", dtype_name(dtype)));
}

WrittenAttributes axis_of_scales(const NodeWriter& n) {
  const auto& at = n.attributes<QuantisationAttributes>();
  if (at.block != 0) n.refuse("ONNX has a scale for each block from opset 21 on.");
  return {{"axis", int64_t{at.axis}}};
}

// The zero point decides the dtype of the result.
void quantize_linear(NodeWriter& n) {
  const DType dtype = n.attributes<QuantisationAttributes>().dtype;
  check_quantised(n, dtype, false);
  std::string zero = n.has(2) ? n.in(2) : n.model().number(Scalar(0), dtype);
  if (!n.has(2) && n.rank(1) != 0) zero = n.add("Expand", {zero, n.model().shape(n.input(1).dims)});
  n.give(n.add("QuantizeLinear", {n.in(0), n.in(1), zero}, axis_of_scales(n)));
}

void dequantize_linear(NodeWriter& n) {
  check_quantised(n, n.dtype(), true);
  const std::string made = n.add("DequantizeLinear", {n.in(0), n.in(1), n.has(2) ? n.in(2) : ""}, axis_of_scales(n));
  n.give(n.cast(made, DType::f32, n.attributes<QuantisationAttributes>().dtype));
}

constexpr OperatorRow kProductsRows[] = {
    {.op = "attention", .onnx = "Softmax", .write = attention},
    {.op = "avg_pool", .onnx = "AveragePool", .write = avg_pool},
    {.op = "conv", .onnx = "Conv", .write = conv},
    {.op = "conv_transpose", .onnx = "ConvTranspose", .write = conv_transpose},
    {.op = "dequantize_linear", .onnx = "DequantizeLinear", .write = dequantize_linear},
    {.op = "linalg_det", .onnx = "Det"},
    {.op = "lp_pool", .onnx = "LpPool", .write = lp_pool},
    {.op = "matmul", .onnx = "MatMul", .write = matmul},
    {.op = "max_pool", .onnx = "MaxPool", .write = max_pool},
    {.op = "max_pool_with_indices", .onnx = "MaxPool", .write = max_pool_with_indices},
    {.op = "quantize_linear", .onnx = "QuantizeLinear", .write = quantize_linear},
};

}  // namespace

std::span<const OperatorRow> product_rows() { return kProductsRows; }

}  // namespace tenon::onnx
