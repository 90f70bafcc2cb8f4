// Reductions, softmax and what is made of them.
#include "core/ops/ops.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

// The axes to reduce; no value: none at all (noop_with_empty_axes).
struct ReduceAxes {
  bool nothing = false;
  std::vector<int64_t> axes;  // empty: all
  bool keep = true;
};

// `since_input`: the opset version from which the axes are an input.
ReduceAxes reduce_axes(NodeContext& n, int64_t since_input) {
  ReduceAxes result;
  result.keep = n.flag("keepdims", true);
  result.axes = n.axes(1, since_input).value_or(std::vector<int64_t>());
  for (int64_t& axis : result.axes) axis = n.normalise_axis(axis, n.dims(0).rank());
  result.nothing = result.axes.empty() && n.flag("noop_with_empty_axes", false);
  return result;
}

using ReduceFunction = Tensor (*)(const Tensor& x, const std::vector<int64_t>& axes, bool keep);

template <ReduceFunction function, int64_t since_input = 18>
TensorList reduce(NodeContext& n) {
  const ReduceAxes r = reduce_axes(n, since_input);
  if (r.nothing) return {n.input(0)};
  const Tensor& x = n.input(0);
  // ONNX lets a scalar pass: there is nothing to reduce.
  return {x.rank() == 0 && r.axes.empty() ? function(unsqueeze(x, 0), {0}, false) : function(x, r.axes, r.keep)};
}

// A mean or norm of integers is computed in floats and cut.
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
Tensor reduce_l1(const Tensor& x, const std::vector<int64_t>& axes, bool keep) { return l1_norm(x, axes, keep); }
Tensor reduce_sum_square(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  return sum_square(x, axes, keep);
}
Tensor reduce_max(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  return x.dtype() == DType::boolean ? any(x, axes, keep) : amax(x, axes, keep);
}
Tensor reduce_min(const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  return x.dtype() == DType::boolean ? all(x, axes, keep) : amin(x, axes, keep);
}

template <bool greatest>
TensorList arg_extreme(NodeContext& n) {
  const int64_t axis = n.axis(0, n.dims(0).rank());
  const bool keep = n.flag("keepdims", true), last = n.flag("select_last_index", false);
  return {greatest ? argmax(n.input(0), axis, keep, last) : argmin(n.input(0), axis, keep, last)};
}

// Before opset 13 the axes from `axis` on are taken together.
template <class Op>
Tensor along(NodeContext& n, int64_t initial_new, Op op) {
  const Tensor& x = n.input(0);
  if (n.version() >= 13) return op(x, n.axis(initial_new, x.rank()));
  const int64_t axis = n.axis(1, x.rank(), true);
  const int64_t rows = n.product(0, 0, axis), columns = n.product(0, axis, x.rank());
  return reshape(op(reshape(x, {rows, columns}), 1), x.dims());
}

TensorList translate_softmax(NodeContext& n) {
  return {along(n, -1, [](const Tensor& x, int64_t axis) { return softmax(x, axis); })};
}
TensorList translate_log_softmax(NodeContext& n) {
  return {along(n, -1, [](const Tensor& x, int64_t axis) { return log_softmax(x, axis); })};
}

// 1 at the first greatest element along the axis, else 0.
TensorList hardmax(NodeContext& n) {
  return {along(n, -1, [&n](const Tensor& x, int64_t axis) {
    const Tensor first = argmax(x, axis, true);
    Dims shape = Dims::filled(x.rank(), 1);
    shape[axis] = x.dims()[axis];
    const Tensor positions = reshape(n.positions(x.dims()[axis]), shape);
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

constexpr Translator kRows[] = {
    {"ArgMax", 1, arg_extreme<true>},
    {"ArgMin", 1, arg_extreme<false>},
    {"Hardmax", 1, hardmax},
    {"LogSoftmax", 1, translate_log_softmax},
    {"MeanVarianceNormalization", 9, mean_variance_normalization},
    {"ReduceL1", 1, reduce<reduce_l1>},
    {"ReduceL2", 1, reduce<reduce_l2>},
    {"ReduceLogSum", 1, reduce<reduce_log_sum>},
    {"ReduceLogSumExp", 1, reduce<reduce_log_sum_exp>},
    {"ReduceMax", 1, reduce<reduce_max>},
    {"ReduceMean", 1, reduce<reduce_mean>},
    {"ReduceMin", 1, reduce<reduce_min>},
    {"ReduceProd", 1, reduce<reduce_prod>},
    {"ReduceSum", 1, reduce<reduce_sum, 13>},
    {"ReduceSumSquare", 1, reduce<reduce_sum_square>},
    {"Softmax", 1, translate_softmax},
};

}  // namespace

std::span<const Translator> reduce_translators() { return kRows; }

}  // namespace tenon::onnx
