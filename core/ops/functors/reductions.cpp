// Reductions over axes, and ops that use reductions.
#include "core/ops/functors/apply.h"
#include "core/ops/functors/sized.h"
#include "primitives/infer/reduce-inl.h"

namespace tenon::functors {
namespace {

bool needs_floats(int32_t reduce_op) {
  return reduce_op == EP_REDUCE_mean || reduce_op == EP_REDUCE_l2_norm || reduce_op == EP_REDUCE_log_sum;
}

void require_elements(std::string_view op, const Tensor& x, uint32_t axes) {
  if (is_open(x)) return throw_if_error(infer::require_elements<SymDim>(op, sizes(x), axes));
  throw_if_error(infer::require_elements(op, x.dims(), axes));
}

// `input` cast to the dtype in which it is reduced.
Tensor prepared(const OpInfo& op, const Tensor& input, DType dtype, DType* result) {
  require_defined(op.name, "input", input);
  Tensor x = dtype == DType::none ? input : tenon::cast(input, dtype);
  if (needs_floats(op.scalar_op) && !is_floating(x.dtype())) x = tenon::cast(x, DType::f32);
  const infer::ScalarTypes types = value_or_throw(infer::reduce(op.name, op.scalar_op, x.dtype()));
  *result = dtype == DType::none ? types.result : dtype;
  return tenon::cast(x, types.compute);
}

Tensor reduced(OpId id, const Tensor& input, IntList dim, bool keepdim, DType dtype = DType::none) {
  const OpInfo& op = op_row(id);
  DType result_dtype = DType::none;
  Tensor x = prepared(op, input, dtype, &result_dtype);
  const uint32_t mask = value_or_throw(infer::axis_mask(op.name, dim, x.rank()));
  if (x.rank() == 0) x = tenon::reshape(x, 1);
  ReduceAttributes attributes{};
  attributes.axes = mask == 0 ? 1 : mask;
  attributes.keep_dims = keepdim && input.rank() > 0 ? 1 : 0;
  if (op.scalar_op == EP_REDUCE_max || op.scalar_op == EP_REDUCE_min) {
    require_elements(op.name, x, attributes.axes);
  }
  return tenon::cast(apply(id, {&x}, &attributes), result_dtype);
}

Tensor position(OpId id, const Tensor& input, std::optional<int64_t> dim, bool keepdim, bool last) {
  const OpInfo& op = op_row(id);
  require_defined(op.name, "input", input);
  Tensor x = input.dtype() == DType::boolean ? tenon::cast(input, DType::u8) : input;
  if (!dim || x.rank() == 0) x = tenon::reshape(x, -1);
  ArgReduceAttributes attributes{};
  attributes.axis = axis_of(op.name, dim && input.rank() > 0 ? *dim : 0, x.rank());
  attributes.keep_dims = keepdim && dim && input.rank() > 0 ? 1 : 0;
  attributes.last = last ? 1 : 0;
  require_elements(op.name, x, 1u << attributes.axis);
  const Tensor result = apply(id, {&x}, &attributes);
  return keepdim && !dim ? tenon::reshape(result, Dims::filled(input.rank(), 1)) : result;
}

// True if the sum is the number of true elements, which can be counted without a cast.
bool is_count(const Tensor& input, DType dtype) {
  return input.defined() && input.dtype() == DType::boolean && (dtype == DType::none || dtype == DType::i64);
}

}  // namespace

Tensor sum(const Tensor& input, DType dtype) {
  return is_count(input, dtype) ? tenon::count_nonzero(input) : reduced(OpId::sum, input, {}, false, dtype);
}
Tensor sum(const Tensor& input, IntList dim, bool keepdim, DType dtype) {
  if (dim.size() == 0 && !keepdim && is_count(input, dtype)) return tenon::count_nonzero(input);
  return reduced(OpId::sum, input, dim, keepdim, dtype);
}
Tensor prod(const Tensor& input, DType dtype) { return reduced(OpId::prod, input, {}, false, dtype); }
Tensor prod(const Tensor& input, IntList dim, bool keepdim, DType dtype) {
  return reduced(OpId::prod, input, dim, keepdim, dtype);
}
Tensor mean(const Tensor& input, DType dtype) { return reduced(OpId::mean, input, {}, false, dtype); }
Tensor mean(const Tensor& input, IntList dim, bool keepdim, DType dtype) {
  return reduced(OpId::mean, input, dim, keepdim, dtype);
}
Tensor amax(const Tensor& input, IntList dim, bool keepdim) { return reduced(OpId::amax, input, dim, keepdim); }
Tensor amin(const Tensor& input, IntList dim, bool keepdim) { return reduced(OpId::amin, input, dim, keepdim); }
Tensor any(const Tensor& input, IntList dim, bool keepdim) { return reduced(OpId::any, input, dim, keepdim); }
Tensor all(const Tensor& input, IntList dim, bool keepdim) { return reduced(OpId::all, input, dim, keepdim); }
Tensor l1_norm(const Tensor& input, IntList dim, bool keepdim) { return reduced(OpId::l1_norm, input, dim, keepdim); }
Tensor l2_norm(const Tensor& input, IntList dim, bool keepdim) { return reduced(OpId::l2_norm, input, dim, keepdim); }
Tensor sum_square(const Tensor& input, IntList dim, bool keepdim) {
  return reduced(OpId::sum_square, input, dim, keepdim);
}
Tensor log_sum(const Tensor& input, IntList dim, bool keepdim) { return reduced(OpId::log_sum, input, dim, keepdim); }

Tensor nansum(const Tensor& input, IntList dim, bool keepdim, DType dtype) {
  require_defined("nansum", "input", input);
  if (!is_floating(input.dtype())) return tenon::sum(input, dim, keepdim, dtype);
  if (dtype == DType::none || is_floating(dtype)) return reduced(OpId::nansum, input, dim, keepdim, dtype);
  return tenon::sum(tenon::where(tenon::isnan(input), Scalar(0), input), dim, keepdim, dtype);
}

Tensor log_sum_exp(const Tensor& input, IntList dim, bool keepdim) {
  const Tensor x = floating("log_sum_exp", input);
  if (is_empty(x)) return reduced(OpId::log_sum, x, dim, keepdim);
  const Tensor top = tenon::amax(without_history(x), dim, true);
  const Tensor shift = tenon::where(tenon::isfinite(top), top, Scalar(0.0));
  const Tensor result = tenon::add(tenon::log(tenon::sum(tenon::exp(tenon::sub(x, shift)), dim, true)), shift);
  if (keepdim) return result;
  const uint32_t mask = value_or_throw(infer::axis_mask("log_sum_exp", dim, x.rank()));
  return tenon::reshape(result, SizeList(infer::reduce<SymDim>(sizes(x), mask, false)));
}

Tensor logsumexp(const Tensor& input, IntList dim, bool keepdim) { return tenon::log_sum_exp(input, dim, keepdim); }

Tensor var(const Tensor& input, IntList dim, int64_t correction, bool keepdim) {
  const Tensor x = floating("var", input);
  const uint32_t mask = value_or_throw(infer::axis_mask("var", dim, x.rank()));
  const int64_t reduced = bound(infer::reduced_count<SymDim>(sizes(x), mask), "var");
  const auto count = static_cast<double>(reduced);
  const Tensor centred = tenon::sub(x, tenon::mean(x, dim, true));
  const double degrees = std::max(count - static_cast<double>(correction), 0.0);
  return tenon::div(tenon::sum(tenon::square(centred), dim, keepdim), Scalar(degrees));
}

Tensor std(const Tensor& input, IntList dim, int64_t correction, bool keepdim) {
  return tenon::sqrt(tenon::var(input, dim, correction, keepdim));
}

// The elements of `input` at `positions` along `dim`, where `positions` comes from a reduction over `dim`.
static Tensor elements_at(const Tensor& input, int64_t dim, const Tensor& positions, bool keepdim) {
  if (input.rank() == 0) return tenon::clone(input);
  const Tensor places = keepdim ? positions : tenon::unsqueeze(positions, dim < 0 ? dim + input.rank() : dim);
  const Tensor found = tenon::gather(input, dim, places);
  return keepdim ? found : tenon::squeeze(found, dim);
}

// The gradient flows to the position that is returned.
Tensor max(const Tensor& input) { return tenon::amax(input); }
std::tuple<Tensor, Tensor> max(const Tensor& input, int64_t dim, bool keepdim) {
  const Tensor position = tenon::argmax(input, dim, keepdim);
  if (wants_gradient(input)) return {elements_at(input, dim, position, keepdim), position};
  return {tenon::amax(input, dim, keepdim), position};
}
Tensor max(const Tensor& input, const Tensor& other) { return tenon::maximum(input, other); }
Tensor min(const Tensor& input) { return tenon::amin(input); }
std::tuple<Tensor, Tensor> min(const Tensor& input, int64_t dim, bool keepdim) {
  const Tensor position = tenon::argmin(input, dim, keepdim);
  if (wants_gradient(input)) return {elements_at(input, dim, position, keepdim), position};
  return {tenon::amin(input, dim, keepdim), position};
}
Tensor min(const Tensor& input, const Tensor& other) { return tenon::minimum(input, other); }

Tensor argmax(const Tensor& input, std::optional<int64_t> dim, bool keepdim, bool last) {
  return position(OpId::argmax, input, dim, keepdim, last);
}
Tensor argmin(const Tensor& input, std::optional<int64_t> dim, bool keepdim, bool last) {
  return position(OpId::argmin, input, dim, keepdim, last);
}

}  // namespace tenon::functors
