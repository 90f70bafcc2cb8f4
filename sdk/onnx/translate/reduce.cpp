// Reductions, softmax, and operators built on them.
#include <algorithm>
#include <limits>

#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

// The axes to reduce.
struct ReduceAxes {
  bool nothing = false;       // noop_with_empty_axes: each element is reduced alone, so ReduceLogSum is a logarithm
  std::vector<int64_t> axes;  // empty: all axes
  bool keep = true;
};

// `since_input`: the opset version from which the axes are an input.
ReduceAxes reduce_axes(NodeContext& n, int64_t since_input) {
  ReduceAxes result;
  result.keep = n.flag("keepdims", true);
  result.axes = n.axes(1, since_input).value_or(std::vector<int64_t>());
  for (int64_t& axis : result.axes) axis = n.normalise_axis(axis, n.rank(0));
  result.nothing = result.axes.empty() && n.flag("noop_with_empty_axes", false);
  return result;
}

using ReduceFunction = Tensor (*)(const Tensor& x, const std::vector<int64_t>& axes, bool keep);

template <ReduceFunction function, int64_t since_input = 18>
TensorList reduce(NodeContext& n) {
  const ReduceAxes r = reduce_axes(n, since_input);
  const Tensor& x = n.input(0);
  // ONNX permits a scalar here: it has no axis to reduce.
  if (r.nothing || (x.rank() == 0 && r.axes.empty()))
    return {reshape(function(reshape(x, {1, x.elements()}), {0}, false), x.dims())};
  return {function(x, r.axes, r.keep)};
}

// The dims of `x` without `axes` (all axes if empty); with `keep` they stay with length 1.
Dims reduced_dims(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  Dims dims;
  for (int64_t i = 0; i < x.rank(); ++i) {
    const bool gone = axes.empty() || std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!gone || keep) dims.push_back(gone ? 1 : x.dims()[i]);
  }
  return dims;
}

// The least or greatest value of a dtype; an infinity for floats.
Scalar end_of(DType dtype, bool highest) {
  const DTypeClass type_class = dtype_info(dtype).type_class;
  if (type_class == DTypeClass::FLOAT) {
    const double infinity = std::numeric_limits<double>::infinity();
    return Scalar(highest ? infinity : -infinity);
  }
  const bool is_signed = type_class == DTypeClass::INT;
  const auto bits = static_cast<unsigned>(8 * dtype_size(dtype));
  if (highest) return Scalar(std::numeric_limits<uint64_t>::max() >> (64 - bits + (is_signed ? 1 : 0)));
  return is_signed ? Scalar(std::numeric_limits<int64_t>::min() >> (64 - bits)) : Scalar(0);
}

// For no elements, the result is the least or greatest value of the type: an infinity for floats.
Tensor extreme(const Tensor& x, const std::vector<int64_t>& axes, bool keep, ReduceFunction function, bool greatest) {
  if (!is_empty(x)) return function(x, axes, keep);
  const Dims dims = reduced_dims(x, axes, keep);
  if (x.elements() != 0 || element_count(dims) == 0) return function(x, axes, keep);
  return full(dims, end_of(x.dtype(), !greatest), x.dtype(), x.device());
}

// A mean or norm of integers is computed in floats and truncated.
Tensor through_floats(const Tensor& x, const std::vector<int64_t>& axes, bool keep, ReduceFunction function) {
  if (is_floating(x.dtype())) return function(x, axes, keep);
  return cast(function(cast(x, DType::f64), axes, keep), x.dtype());
}

Tensor reduce_sum(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  return sum(x, axes, keep, x.dtype());
}
Tensor reduce_prod(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  return prod(x, axes, keep, x.dtype());
}
Tensor float_mean(const Tensor& x, const std::vector<int64_t>& axes, bool keep) { return mean(x, axes, keep); }
Tensor float_l2(const Tensor& x, const std::vector<int64_t>& axes, bool keep) { return l2_norm(x, axes, keep); }
Tensor float_log_sum(const Tensor& x, const std::vector<int64_t>& axes, bool keep) { return log_sum(x, axes, keep); }
Tensor float_log_sum_exp(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  return log_sum_exp(x, axes, keep);
}
Tensor reduce_mean(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  return through_floats(x, axes, keep, float_mean);
}
Tensor reduce_l2(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  return through_floats(x, axes, keep, float_l2);
}
Tensor reduce_log_sum(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  return through_floats(x, axes, keep, float_log_sum);
}
Tensor reduce_log_sum_exp(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  return through_floats(x, axes, keep, float_log_sum_exp);
}
// Keeps the type of the terms; Tenon's own sum would widen small integers.
Tensor reduce_l1(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  return cast(l1_norm(x, axes, keep), x.dtype());
}
Tensor reduce_sum_square(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  return cast(sum_square(x, axes, keep), x.dtype());
}
Tensor plain_max(const Tensor& x, const std::vector<int64_t>& axes, bool keep) { return amax(x, axes, keep); }
Tensor plain_min(const Tensor& x, const std::vector<int64_t>& axes, bool keep) { return amin(x, axes, keep); }
Tensor reduce_max(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  return x.dtype() == DType::boolean ? any(x, axes, keep) : extreme(x, axes, keep, plain_max, true);
}
Tensor reduce_min(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  return x.dtype() == DType::boolean ? all(x, axes, keep) : extreme(x, axes, keep, plain_min, false);
}

template <bool greatest>
TensorList arg_extreme(NodeContext& n) {
  const int64_t axis = n.axis(0, n.rank(0));
  const bool keep = n.flag("keepdims", true), last = n.flag("select_last_index", false);
  return {greatest ? argmax(n.input(0), axis, keep, last) : argmin(n.input(0), axis, keep, last)};
}

// Before opset 13, the axes from `axis` on count as one.
template <class Op>
Tensor along(NodeContext& n, int64_t initial_new, Op op) {
  const Tensor& x = n.input(0);
  if (n.version() >= 13) return op(x, n.axis(initial_new, x.rank()));
  const int64_t axis = n.axis(1, x.rank(), true);
  const SymDim rows = n.product(0, 0, axis), columns = n.product(0, axis, x.rank());
  return reshape(op(reshape(x, SizeList{rows, columns}), 1), SizeList(sizes(x)));
}

TensorList translate_softmax(NodeContext& n) {
  return {along(n, -1, [](const Tensor& x, int64_t axis) { return softmax(x, axis); })};
}
TensorList translate_log_softmax(NodeContext& n) {
  return {along(n, -1, [](const Tensor& x, int64_t axis) { return log_softmax(x, axis); })};
}

// 1 at the first maximum along the axis, 0 elsewhere.
TensorList hardmax(NodeContext& n) {
  return {along(n, -1, [&n](const Tensor& x, int64_t axis) {
    if (is_empty(x)) return x;
    const Tensor first = argmax(x, axis, true);
    SymDims shape = SymDims::filled(x.rank(), 1);
    shape[axis] = size_at(x, axis);
    const Tensor positions = reshape(n.positions(size_at(x, axis)), SizeList(shape));
    return cast(eq(positions, first), x.dtype());
  })};
}

TensorList mean_variance_normalization(NodeContext& n) {
  const std::vector<int64_t> axes = n.integers("axes").value_or(std::vector<int64_t>{0, 2, 3});
  const Tensor& x = n.input(0);
  const Tensor centred = sub(x, mean(x, axes, true));
  const Tensor deviation = sqrt(mean(square(centred), axes, true));
  return {div(centred, add(deviation, Scalar(1e-9)))};
}

constexpr Translator kReduceRows[] = {
    {.op_type = "ArgMax", .since = 1, .translate = arg_extreme<true>},
    {.op_type = "ArgMin", .since = 1, .translate = arg_extreme<false>},
    {.op_type = "Hardmax", .since = 1, .translate = hardmax},
    {.op_type = "LogSoftmax", .since = 1, .translate = translate_log_softmax},
    {.op_type = "MeanVarianceNormalization", .since = 9, .translate = mean_variance_normalization, .wide = true},
    {.op_type = "ReduceL1", .since = 1, .translate = reduce<reduce_l1>},
    {.op_type = "ReduceL2", .since = 1, .translate = reduce<reduce_l2>},
    {.op_type = "ReduceLogSum", .since = 1, .translate = reduce<reduce_log_sum>},
    {.op_type = "ReduceLogSumExp", .since = 1, .translate = reduce<reduce_log_sum_exp>},
    {.op_type = "ReduceMax", .since = 1, .translate = reduce<reduce_max>},
    {.op_type = "ReduceMean", .since = 1, .translate = reduce<reduce_mean>},
    {.op_type = "ReduceMin", .since = 1, .translate = reduce<reduce_min>},
    {.op_type = "ReduceProd", .since = 1, .translate = reduce<reduce_prod>},
    {.op_type = "ReduceSum", .since = 1, .translate = reduce<reduce_sum, 13>},
    {.op_type = "ReduceSumSquare", .since = 1, .translate = reduce<reduce_sum_square>},
    {.op_type = "Softmax", .since = 1, .translate = translate_softmax},
};

}  // namespace

std::span<const Translator> reduce_translators() { return kReduceRows; }

}  // namespace tenon::onnx
