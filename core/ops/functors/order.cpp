// Scans, sorts and ops that use them; counting and searching.
#include <algorithm>
#include <limits>

#include "core/ops/functors/apply.h"
#include "core/ops/functors/half.h"
#include "core/ops/functors/positions.h"
#include "core/ops/functors/sized.h"
#include "core/ops/sized_ops.h"
#include "primitives/infer/broadcast-inl.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

// `input` with at least one axis.
Tensor with_axis(const Tensor& input) { return input.rank() == 0 ? tenon::reshape(input, 1) : input; }
// `result` without the axis that with_axis gave `input`.
Tensor without_axis(const Tensor& input, const Tensor& result) {
  return input.rank() == 0 ? tenon::reshape(result, IntList()) : result;
}

ScanAttributes scan_along(OpId id, int32_t how, const Tensor& input, int64_t dim, bool exclusive, bool reverse) {
  ScanAttributes attributes{};
  attributes.scan = {axis_of(op_row(id).name, dim, input.rank()), how, exclusive ? 1 : 0, reverse ? 1 : 0};
  return attributes;
}

Tensor scanned(OpId id, int32_t how, const Tensor& input, int64_t dim, bool exclusive, bool reverse) {
  const ScanAttributes attributes = scan_along(id, how, input, dim, exclusive, reverse);
  const Tensor source = with_axis(input);
  return without_axis(input, apply(id, {&source}, &attributes));
}

// `input` in the dtype in which it is summed or multiplied.
Tensor summed(std::string_view op, const Tensor& input, DType dtype) {
  require_defined(op, "input", input);
  if (dtype != DType::none) return tenon::cast(input, dtype);
  return is_floating(input.dtype()) ? input : tenon::cast(input, DType::i64);
}

std::tuple<Tensor, Tensor> extreme(OpId id, int32_t how, const Tensor& input, int64_t dim) {
  require_defined(op_row(id).name, "input", input);
  const ScanAttributes attributes = scan_along(id, how, input, dim, false, false);
  const Tensor source = with_axis(input);
  const Tensor* inputs[] = {&source};
  Tensor outputs[2];
  apply(id, inputs, &attributes, outputs);
  return {without_axis(input, outputs[0]), without_axis(input, outputs[1])};
}

SortAttributes sort_along(std::string_view op, const Tensor& input, int64_t dim, bool descending) {
  require_defined(op, "input", input);
  SortAttributes attributes{};
  attributes.sort = {axis_of(op, dim, input.rank()), descending ? 1 : 0};
  return attributes;
}

struct Order {
  std::string_view name;
  int32_t order;
};
constexpr Order kOrders[] = {
    {"sorted", EP_UNIQUE_SORTED}, {"first", EP_UNIQUE_FIRST}, {"consecutive", EP_UNIQUE_CONSECUTIVE}};

std::tuple<Tensor, Tensor, Tensor> unique_in(std::string_view op, std::string_view order, const Tensor& input,
                                             bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
  require_defined(op, "input", input);
  const TensorList padded = tenon::unique_padded(input, dim, order, false, return_inverse, return_counts);
  const int64_t count = size_from(op, padded[1]);
  const int64_t axis = dim ? axis_of(op, *dim, input.rank()) : 0;
  // A view of few elements would keep all of the memory alive.
  const auto cut = [&](const Tensor& list, int64_t along) {
    const Tensor part = tenon::narrow(list, along, 0, count);
    return 2 * count < list.dim(along) ? tenon::clone(part) : part;
  };
  size_t next = 2;
  Tensor inverse = tenon::empty(0, DType::i64, input.device());
  Tensor counts = inverse;
  if (return_inverse) inverse = padded[next++];
  if (return_inverse && !dim) inverse = tenon::reshape(inverse, input.dims());
  if (return_counts) counts = cut(padded[next], 0);
  return {cut(padded[0], axis), inverse, counts};
}

// Both tensors, broadcast to each other.
std::pair<Tensor, Tensor> together(std::string_view op, const Tensor& a, const Tensor& b) {
  const SymDims shapes[] = {sizes(a), sizes(b)};
  const SizeList dims(value_or_throw(infer::broadcast<SymDim>(op, shapes)));
  return {tenon::expand(a, dims), tenon::expand(b, dims)};
}

void require_mask(std::string_view op, const Tensor& mask) {
  require_defined(op, "mask", mask);
  if (mask.dtype() != DType::boolean) refuse(op, "mask is {} but must be bool.", dtype_name(mask.dtype()));
}

// Bisection for all values at once: of the elements from `position` on, the first half is skipped if its last element
// comes before the value. NaN comes after all numbers.
Tensor search(const Tensor& sequence, const Tensor& value, bool right, bool is_list) {
  int64_t length = sequence.dim(-1);
  const DType type = length < std::numeric_limits<int32_t>::max() ? DType::i32 : DType::i64;
  Tensor position = tenon::zeros(value.dims(), type, value.device());
  while (length > 0) {
    const int64_t half = (length + 1) / 2;
    const Tensor probe = half == 1 ? position : tenon::add(position, Scalar(half - 1));
    const Tensor element = is_list ? tenon::take(sequence, probe) : gather_at(sequence, sequence.rank() - 1, probe);
    const Tensor ends = right ? tenon::gt(element, value) : tenon::ge(element, value);
    position = tenon::where(ends, position, tenon::add(position, Scalar(half)));
    length -= half;
  }
  return tenon::cast(position, DType::i64);
}

}  // namespace

Tensor cumsum(const Tensor& input, int64_t dim, DType dtype, bool exclusive, bool reverse) {
  return scanned(OpId::cumsum, EP_SCAN_SUM, summed("cumsum", input, dtype), dim, exclusive, reverse);
}

Tensor cumprod(const Tensor& input, int64_t dim, DType dtype, bool exclusive, bool reverse) {
  return scanned(OpId::cumprod, EP_SCAN_PROD, summed("cumprod", input, dtype), dim, exclusive, reverse);
}

Tensor logcumsumexp(const Tensor& input, int64_t dim) {
  require_defined("logcumsumexp", "input", input);
  const Tensor source = is_floating(input.dtype()) ? input : tenon::cast(input, DType::f32);
  return scanned(OpId::logcumsumexp, EP_SCAN_LOG_SUM_EXP, source, dim, false, false);
}

std::tuple<Tensor, Tensor> cummax(const Tensor& input, int64_t dim) {
  return extreme(OpId::cummax, EP_SCAN_MAX, input, dim);
}
std::tuple<Tensor, Tensor> cummin(const Tensor& input, int64_t dim) {
  return extreme(OpId::cummin, EP_SCAN_MIN, input, dim);
}

std::tuple<Tensor, Tensor> sort(const Tensor& input, int64_t dim, bool descending, bool) {
  const SortAttributes attributes = sort_along("sort", input, dim, descending);
  const Tensor source = with_axis(input);
  const Tensor* inputs[] = {&source};
  Tensor outputs[2];
  apply(OpId::sort, inputs, &attributes, outputs);
  return {without_axis(input, outputs[0]), without_axis(input, outputs[1])};
}

Tensor argsort(const Tensor& input, int64_t dim, bool descending, bool) {
  const SortAttributes attributes = sort_along("argsort", input, dim, descending);
  const Tensor source = with_axis(input);
  return without_axis(input, apply(OpId::argsort, {&source}, &attributes));
}

Tensor msort(const Tensor& input) { return std::get<0>(tenon::sort(input, 0)); }

std::tuple<Tensor, Tensor> topk(const Tensor& input, int64_t k, int64_t dim, bool largest, bool) {
  require_defined("topk", "input", input);
  const Tensor source = with_axis(input);
  TopKAttributes attributes{};
  attributes.k = k;
  attributes.top_k = {axis_of("topk", dim, input.rank()), largest ? 1 : 0};
  const SymDim length = size_at(source, attributes.top_k.axis);
  if (k < 0 || !expect(SymDim(k) <= length)) refuse("topk", "k is {}, but the axis has {} elements.", k, length);
  const Tensor* inputs[] = {&source};
  Tensor outputs[2];
  apply(OpId::topk, inputs, &attributes, outputs);
  if (input.rank() > 0 || k == 0) return {outputs[0], outputs[1]};
  return {without_axis(input, outputs[0]), without_axis(input, outputs[1])};
}

std::tuple<Tensor, Tensor> kthvalue(const Tensor& input, int64_t k, int64_t dim, bool keepdim) {
  require_defined("kthvalue", "input", input);
  const int32_t axis = axis_of("kthvalue", dim, input.rank());
  const Tensor source = with_axis(input);
  const SymDim length = size_at(source, axis);
  if (k < 1 || !expect(SymDim(k) <= length)) refuse("kthvalue", "k is {}, but the axis has {} elements.", k, length);
  // If most elements of a long line precede the wanted one, a selection would sort them too.
  constexpr int64_t longest = 256, part = 8;
  const bool sorts = !is_open(source) && source.dim(axis) > longest && part * k > source.dim(axis);
  const auto [values, positions] = sorts ? tenon::sort(source, axis) : tenon::topk(source, k, axis, false);
  const auto last = [&](const Tensor& list) {
    const Tensor part =
        keepdim || input.rank() == 0 ? tenon::narrow(list, axis, k - 1, 1) : tenon::select(list, axis, k - 1);
    return without_axis(input, tenon::clone(part));
  };
  return {last(values), last(positions)};
}

std::tuple<Tensor, Tensor> median(const Tensor& input, int64_t dim, bool keepdim) {
  require_defined("median", "input", input);
  const int32_t axis = axis_of("median", dim, input.rank());
  const int64_t length = input.rank() == 0 ? 1 : input.dim(axis);
  if (length == 0) refuse("median", "axis {} has no elements.", axis);
  auto [value, position] = tenon::kthvalue(input, (length + 1) / 2, axis, keepdim);
  if (!is_floating(input.dtype()) || input.rank() == 0) return {value, position};
  const auto [greatest, where_greatest] = tenon::max(input, axis, keepdim);
  const Tensor broken = tenon::isnan(greatest);
  return {tenon::where(broken, greatest, value), tenon::where(broken, where_greatest, position)};
}

// With a gradient: the greatest of the elements up to the median, so that elements equal to it share the gradient.
Tensor median(const Tensor& input) {
  require_defined("median", "input", input);
  const Tensor value = std::get<0>(tenon::median(tenon::reshape(without_history(input), -1), 0));
  if (!wants_gradient(input)) return value;
  const Tensor above = tenon::gt(input, value);
  return tenon::amax(tenon::where(above, Scalar(-std::numeric_limits<double>::infinity()), input));
}

TensorList unique_padded(const Tensor& input, std::optional<int64_t> dim, std::string_view order, bool return_index,
                         bool return_inverse, bool return_counts) {
  constexpr std::string_view op = "unique_padded";
  require_defined(op, "input", input);
  const Order* found =
      std::find_if(std::begin(kOrders), std::end(kOrders), [&](const Order& one) { return one.name == order; });
  if (found == std::end(kOrders)) refuse(op, "order is '{}'; it may be 'sorted', 'first' or 'consecutive'.", order);
  const Tensor source = with_axis(input);
  UniqueListsAttributes attributes{};
  attributes.unique = {dim ? axis_of(op, *dim, input.rank()) : -1, found->order};
  attributes.index = return_index ? 1 : 0;
  attributes.inverse = return_inverse ? 1 : 0;
  attributes.counts = return_counts ? 1 : 0;
  const size_t lists = static_cast<size_t>(attributes.index + attributes.inverse + attributes.counts);
  if (is_empty(source)) {
    const int32_t axis = attributes.unique.axis;
    const int64_t n = axis < 0 ? 0 : source.dim(axis);
    // Slices without elements are all equal.
    TensorList outputs{axis < 0 ? tenon::reshape(source, 0) : tenon::clone(source)};
    outputs.push_back(tenon::full(1, Scalar(std::min<int64_t>(n, 1)), DType::i64, input.device()));
    if (return_index) outputs.push_back(tenon::zeros(n, DType::i64, input.device()));
    if (return_inverse) outputs.push_back(tenon::zeros(n, DType::i64, input.device()));
    if (return_counts) {
      const Tensor all = tenon::full(n, Scalar(n), DType::i64, input.device());
      outputs.push_back(
          tenon::where(tenon::eq(tenon::arange(n, DType::i64, input.device()), Scalar(0)), all, Scalar(0)));
    }
    return outputs;
  }
  TensorList outputs(2 + lists);
  const Tensor* inputs[] = {&source};
  apply(OpId::unique_padded, inputs, &attributes, outputs);
  return outputs;
}

std::tuple<Tensor, Tensor, Tensor> unique(const Tensor& input, bool, bool return_inverse, bool return_counts,
                                          std::optional<int64_t> dim) {
  return unique_in("unique", "sorted", input, return_inverse, return_counts, dim);
}

std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& input, bool return_inverse, bool return_counts,
                                                      std::optional<int64_t> dim) {
  return unique_in("unique_consecutive", "consecutive", input, return_inverse, return_counts, dim);
}

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& input, bool out_int32, bool right) {
  constexpr std::string_view op = "searchsorted";
  require_defined(op, "sorted_sequence", sorted_sequence);
  require_defined(op, "input", input);
  if (sorted_sequence.rank() == 0) refuse(op, "sorted_sequence has rank 0; it must be a list or lists.");
  const bool is_list = sorted_sequence.rank() == 1;
  bool fits = is_list || input.rank() == sorted_sequence.rank();
  for (int32_t k = 0; fits && !is_list && k + 1 < input.rank(); ++k) fits = input.dim(k) == sorted_sequence.dim(k);
  if (!fits) {
    refuse(op, "sorted_sequence of shape {} and input of shape {} must have the same axes before the last.",
           sorted_sequence.dims(), input.dims());
  }
  const DType dtype = promote_tensors(sorted_sequence, input);
  const Tensor found = search(tenon::cast(sorted_sequence, dtype), tenon::cast(input, dtype), right, is_list);
  return out_int32 ? tenon::cast(found, DType::i32) : found;
}

Tensor bucketize(const Tensor& input, const Tensor& boundaries, bool out_int32, bool right) {
  require_defined("bucketize", "boundaries", boundaries);
  if (boundaries.rank() != 1) refuse("bucketize", "boundaries has rank {}; it must be a list.", boundaries.rank());
  return tenon::searchsorted(boundaries, input, out_int32, right);
}

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  require_defined("isin", "elements", elements);
  require_defined("isin", "test_elements", test_elements);
  if (is_empty(test_elements)) {
    return tenon::full(ShapeOf(elements).list(), Scalar(invert), DType::boolean, elements.device());
  }
  const DType dtype = promote_tensors(elements, test_elements);
  const Tensor values = tenon::cast(elements, dtype);
  const Tensor sorted = std::get<0>(tenon::sort(tenon::reshape(tenon::cast(test_elements, dtype), -1)));
  const Tensor place = tenon::minimum(tenon::searchsorted(sorted, values), Scalar(sorted.elements() - 1));
  const Tensor like = tenon::take(sorted, place);
  return invert ? tenon::ne(like, values) : tenon::eq(like, values);
}

std::tuple<Tensor, Tensor> nonzero_padded(const Tensor& input, int64_t size) {
  constexpr std::string_view op = "nonzero_padded";
  require_defined(op, "input", input);
  if (size < 0) refuse(op, "size is {}; it must be at least 0.", size);
  const Tensor source = with_axis(input);
  RowCountAttributes attributes{};
  attributes.size = size;
  if (is_empty(source) || size == 0) {
    const Tensor rows = tenon::zeros({size, source.rank()}, DType::i64, input.device());
    return {rows, tenon::reshape(tenon::count_nonzero(source), 1)};
  }
  const Tensor* inputs[] = {&source};
  Tensor outputs[2];
  apply(OpId::nonzero_padded, inputs, &attributes, outputs);
  return {outputs[0], outputs[1]};
}

Tensor nonzero(const Tensor& input) {
  require_defined("nonzero", "input", input);
  if (input.rank() == 0) {
    const int64_t count = size_from("nonzero", tenon::count_nonzero(input));
    return tenon::empty({count, 0}, DType::i64, input.device());
  }
  constexpr int64_t few = 4096;  // up to this many rows, this costs less than counting first
  if (is_open(input)) refuse_size("nonzero");
  const int64_t all = input.elements();
  if (all > few) {
    const int64_t count = size_from("nonzero", tenon::count_nonzero(input));
    return std::get<0>(tenon::nonzero_padded(input, count));
  }
  const auto [rows, count] = tenon::nonzero_padded(input, all);
  return tenon::narrow(rows, 0, 0, size_from("nonzero", count));
}

Tensor argwhere(const Tensor& input) { return tenon::nonzero(input); }

Tensor count_nonzero(const Tensor& input, IntList dim) {
  require_defined("count_nonzero", "input", input);
  const Tensor found = input.dtype() == DType::boolean ? input : tenon::ne(input, Scalar(0));
  return dim.size() == 0 ? tenon::sum(tenon::cast(found, DType::i64)) : tenon::sum(found, dim);
}

Tensor masked_select(const Tensor& input, const Tensor& mask) {
  require_defined("masked_select", "input", input);
  require_mask("masked_select", mask);
  const auto [values, chosen] = together("masked_select", input, mask);
  const Tensor flat = tenon::reshape(chosen, -1);
  return tenon::take(values, tenon::reshape(tenon::nonzero(flat), -1));
}

Tensor bincount(const Tensor& input, const Tensor& weights, int64_t minlength) {
  constexpr std::string_view op = "bincount";
  require_defined(op, "input", input);
  if (input.rank() != 1 || !is_integer(input.dtype())) {
    refuse(op, "input is {} of rank {}; it must be a list of integers.", dtype_name(input.dtype()), input.rank());
  }
  if (minlength < 0) refuse(op, "minlength is {}; it must be at least 0.", minlength);
  if (weights.defined() && weights.dims() != input.dims()) {
    refuse(op, "weights has shape {}, but input has {}.", weights.dims(), input.dims());
  }
  const DType dtype = !weights.defined() ? DType::i64 : weights.dtype() == DType::f32 ? DType::f32 : DType::f64;
  int64_t length = minlength;
  if (!is_empty(input)) {
    const int64_t least = size_from(op, tenon::amin(input));
    if (least < 0) refuse(op, "input has the element {}; none may be negative.", least);
    length = std::max(length, size_from(op, tenon::amax(input)) + 1);
  }
  const Tensor ones = weights.defined()
                          ? tenon::cast(weights, dtype)
                          : tenon::expand(tenon::ones(IntList(), dtype, input.device()), ShapeOf(input).list());
  return tenon::index_add(tenon::zeros(length, dtype, input.device()), 0, input, ones);
}

Tensor histc(const Tensor& input, int64_t bins, double min, double max) {
  constexpr std::string_view op = "histc";
  require_defined(op, "input", input);
  if (!is_floating(input.dtype())) refuse(op, "input is {} but must be floating-point.", dtype_name(input.dtype()));
  if (bins < 1) refuse(op, "bins is {}; it must be at least 1.", bins);
  if (!(min <= max)) refuse(op, "min ({}) is greater than max ({}).", min, max);
  const Tensor x = tenon::reshape(input, -1);
  const Tensor counts = tenon::zeros(bins + 1, input.dtype(), input.device());
  if (is_empty(x)) return tenon::narrow(counts, 0, 0, bins);
  Tensor low, high;
  if (min != max) {
    low = tenon::full(IntList(), Scalar(min), x.dtype(), x.device());
    high = tenon::full(IntList(), Scalar(max), x.dtype(), x.device());
  } else {
    low = tenon::amin(x);
    high = tenon::amax(x);
    const Tensor flat = tenon::eq(low, high);
    low = tenon::where(flat, tenon::sub(low, Scalar(1)), low);
    high = tenon::where(flat, tenon::add(high, Scalar(1)), high);
  }
  const Tensor place = tenon::floor(tenon::mul(tenon::div(tenon::sub(x, low), tenon::sub(high, low)), Scalar(bins)));
  const Tensor inside = tenon::logical_and(tenon::ge(x, low), tenon::le(x, high));
  const Tensor last = tenon::minimum(place, Scalar(static_cast<double>(bins - 1)));
  const Tensor bin = tenon::where(inside, last, Scalar(static_cast<double>(bins)));
  const Tensor sums = tenon::index_add(counts, 0, tenon::cast(bin, DType::i64), tenon::ones_like(x));
  return tenon::narrow(sums, 0, 0, bins);
}

Tensor diff(const Tensor& input, int64_t n, int64_t dim) {
  require_defined("diff", "input", input);
  if (n < 0) refuse("diff", "n is {}; it must be at least 0.", n);
  if (input.rank() == 0) refuse("diff", "a tensor of rank 0 has no axis.");
  const int32_t axis = axis_of("diff", dim, input.rank());
  const Halves halves{&input};
  if (n > 1 && halves.any()) return halves.rounded(functors::diff(Halves::widened(input), n, dim));
  Tensor result = input;
  for (int64_t i = 0; i < n && result.dim(axis) > 0; ++i) {
    const int64_t length = result.dim(axis) - 1;
    const Tensor after = tenon::narrow(result, axis, 1, length);
    const Tensor before = tenon::narrow(result, axis, 0, length);
    result = input.dtype() == DType::boolean ? tenon::ne(after, before) : tenon::sub(after, before);
  }
  return n == 0 ? tenon::clone(input) : result;
}

namespace {

// The sums of neighbours of y along `axis`.
Tensor neighbours(const Tensor& y, int32_t axis) {
  const int64_t length = std::max<int64_t>(y.dim(axis) - 1, 0);
  if (y.dim(axis) == 0) return y;
  return tenon::add(tenon::narrow(y, axis, 1, length), tenon::narrow(y, axis, 0, length));
}

int32_t integrated_axis(const Tensor& y, int64_t dim) {
  require_defined("trapezoid", "y", y);
  if (y.rank() == 0) refuse("trapezoid", "a tensor of rank 0 has no axis.");
  return axis_of("trapezoid", dim, y.rank());
}

}  // namespace

Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  const int32_t axis = integrated_axis(y, dim);
  require_defined("trapezoid", "x", x);
  Tensor steps = tenon::diff(x, 1, x.rank() == 1 ? 0 : dim);
  if (x.rank() == 1) {
    Dims shape = Dims::filled(y.rank(), 1);
    shape[axis] = steps.elements();
    steps = tenon::reshape(steps, shape);
  }
  return tenon::div(tenon::sum(tenon::mul(neighbours(y, axis), steps), axis), Scalar(2));
}

Tensor trapezoid(const Tensor& y, Scalar dx, int64_t dim) {
  const int32_t axis = integrated_axis(y, dim);
  return tenon::mul(tenon::div(tenon::sum(neighbours(y, axis), axis), Scalar(2)), dx);
}

Tensor masked_scatter(const Tensor& input, const Tensor& mask, const Tensor& source) {
  constexpr std::string_view op = "masked_scatter";
  require_defined(op, "input", input);
  require_defined(op, "source", source);
  require_mask(op, mask);
  const auto [values, chosen] = together(op, input, mask);
  if (is_empty(values)) return tenon::clone(values);
  if (is_empty(source)) refuse(op, "source has no elements.");
  const Tensor flat = tenon::reshape(chosen, -1);
  const Tensor number = tenon::sub(tenon::cumsum(flat, 0), Scalar(1));
  const Tensor position = tenon::where(flat, number, Scalar(0));
  const Tensor taken = tenon::reshape(tenon::take(source, position), ShapeOf(values).list());
  return tenon::where(chosen, tenon::cast(taken, values.dtype()), values);
}

Tensor one_hot_values(const Tensor& input, int64_t depth, int64_t dim, Scalar off, Scalar on, DType dtype) {
  constexpr std::string_view op = "one_hot_values";
  require_defined(op, "input", input);
  if (depth < 0) refuse(op, "depth is {}; it must be at least 0.", depth);
  const Tensor index = as_index(op, "input", input);
  const Tensor source = with_axis(index);
  DepthAttributes attributes{};
  attributes.axis = axis_of(op, dim, input.rank() + 1);
  attributes.depth = depth;
  attributes.dtype = dtype;
  const Scalar scalars[] = {off, on};
  if (input.rank() > 0) return apply(OpId::one_hot_values, {&source}, &attributes, scalars);
  attributes.axis = 1;
  return tenon::reshape(apply(OpId::one_hot_values, {&source}, &attributes, scalars), depth);
}

}  // namespace tenon::functors
