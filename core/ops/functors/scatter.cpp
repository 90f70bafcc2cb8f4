// Tensors with some of their elements replaced.
#include <algorithm>
#include <limits>

#include "core/ops/functors/apply.h"
#include "core/ops/functors/half.h"
#include "core/ops/functors/positions.h"
#include "core/ops/functors/sized.h"
#include "core/ops/sized_ops.h"
#include "core/tensor/recording.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

// Scatters the elements of `src` that `index` covers.
Tensor scatter_elements(std::string_view op, int32_t how, const Tensor& input, int64_t dim, const Tensor& index,
                        const Tensor& src) {
  require_defined(op, "input", input);
  const Tensor indices = as_index_from_start(op, "index", index);
  const Tensor updates = tenon::cast(src, input.dtype());
  const int32_t axis = axis_of(op, dim, input.rank());
  if (input.rank() == 0) {
    const Tensor row = tenon::reshape(input, 1);
    return tenon::reshape(scatter_elements(op, how, row, 0, tenon::reshape(indices, -1), tenon::reshape(updates, -1)),
                          IntList());
  }
  if (indices.rank() != input.rank() || updates.rank() != input.rank()) {
    refuse(op, "input, index and src have ranks {}, {} and {}; they must be equal.", input.rank(), indices.rank(),
           updates.rank());
  }
  Tensor part = updates;
  for (int32_t k = 0; k < input.rank(); ++k) {
    const SymDim length = size_at(indices, k);
    const SymDim most = size_at(updates, k);
    if (!expect(length <= most)) {
      refuse(op, "index of shape {} is longer than src of shape {}.", sizes(indices), sizes(updates));
    }
    if (!identical(length, most) && length < most) part = sized::narrow(part, k, 0, length);
  }
  return scatter_at(op, EP_GATHER_ELEMENTS, how, input, axis, indices, part);
}

// Scatters slices of `source` to the positions of `index`, which may count `from_end`.
Tensor scatter_slices(std::string_view op, int32_t how, const Tensor& input, int64_t dim, const Tensor& index,
                      const Tensor& source, bool from_end = false) {
  require_defined(op, "input", input);
  require_defined(op, "source", source);
  if (index.defined() && index.rank() > 1) refuse(op, "index has rank {}; it must be a list.", index.rank());
  const Tensor indices =
      tenon::reshape(from_end ? as_index(op, "index", index) : as_index_from_start(op, "index", index), -1);
  const Tensor updates = tenon::cast(source, input.dtype());
  const int32_t axis = axis_of(op, dim, input.rank());
  if (input.rank() > 0) {
    return scatter_at(op, EP_GATHER_SLICES, how, input, axis, indices, updates);
  }
  const Tensor row = tenon::reshape(input, 1);
  return tenon::reshape(scatter_at(op, EP_GATHER_SLICES, how, row, 0, indices, tenon::reshape(updates, -1)), IntList());
}

// The neutral element of `reduce`.
Scalar neutral(int32_t how, DType dtype) {
  if (dtype == DType::boolean) return Scalar(how == EP_SCATTER_MUL || how == EP_SCATTER_MIN);
  if (how == EP_SCATTER_ADD) return Scalar(0);
  if (how == EP_SCATTER_MUL) return Scalar(1);
  const double end = std::numeric_limits<double>::infinity();
  return in_dtype(Scalar(how == EP_SCATTER_MIN ? end : -end), dtype);
}

struct Reduction {
  std::string_view name;
  int32_t how;
};
constexpr Reduction kReductions[] = {{"sum", EP_SCATTER_ADD},
                                     {"prod", EP_SCATTER_MUL},
                                     {"mean", EP_SCATTER_ADD},
                                     {"amax", EP_SCATTER_MAX},
                                     {"amin", EP_SCATTER_MIN}};

// `src` in the dtype of `input`.
Tensor as_part(std::string_view op, const Tensor& input, const Tensor& src) {
  require_defined(op, "input", input);
  require_defined(op, "src", src);
  return tenon::cast(src, input.dtype());
}

}  // namespace

Tensor scatter_at(std::string_view op, int32_t mode, int32_t how, const Tensor& input, int32_t axis,
                  const Tensor& index, const Tensor& src) {
  ScatterAttributes attributes{};
  attributes.scatter = {axis, mode, how, 0};
  if (!is_empty(index) && size_at(input, axis) == 0) {
    refuse(op, "axis {} of input has length 0, so every index is out of range.", axis);
  }
  if (is_empty(src)) return with_history_of(src, tenon::clone(input));
  if (input.dtype() != DType::boolean || how == EP_SCATTER_ASSIGN)
    return apply(OpId::scatter, {&input, &index, &src}, &attributes);
  // A sum of booleans is true if one of them is, a product if all are.
  const bool any = how == EP_SCATTER_ADD || how == EP_SCATTER_MAX;
  const Tensor numbers = tenon::cast(input, DType::u8), updates = tenon::cast(src, DType::u8);
  return tenon::cast(scatter_at(op, mode, any ? EP_SCATTER_MAX : EP_SCATTER_MIN, numbers, axis, index, updates),
                     DType::boolean);
}

Tensor scatter(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
  require_defined("scatter", "src", src);
  return scatter_elements("scatter", EP_SCATTER_ASSIGN, input, dim, index, src);
}

Tensor scatter(const Tensor& input, int64_t dim, const Tensor& index, Scalar value) {
  require_defined("scatter", "input", input);
  require_defined("scatter", "index", index);
  const MadeEverywhere scope(is_elsewhere(input) && is_elsewhere(index));
  const Tensor one = tenon::full(IntList(), value, input.dtype(), input.device());
  return scatter_elements("scatter", EP_SCATTER_ASSIGN, input, dim, index, tenon::expand(one, ShapeOf(index).list()));
}

Tensor scatter_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src) {
  require_defined("scatter_add", "src", src);
  return scatter_elements("scatter_add", EP_SCATTER_ADD, input, dim, index, src);
}

Tensor scatter_reduce(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                      bool include_self) {
  constexpr std::string_view op = "scatter_reduce";
  require_defined(op, "input", input);
  require_defined(op, "index", index);
  require_defined(op, "src", src);
  const Reduction* found = std::find_if(std::begin(kReductions), std::end(kReductions),
                                        [&](const Reduction& one) { return one.name == reduce; });
  if (found == std::end(kReductions)) {
    refuse(op, "reduce is '{}'; it may be 'sum', 'prod', 'mean', 'amax' or 'amin'.", reduce);
  }
  if (reduce == "mean" && input.dtype() == DType::boolean) refuse(op, "bool elements have no mean.");
  Tensor start = input;
  if (!include_self) start = tenon::scatter(input, dim, index, neutral(found->how, input.dtype()));
  const Tensor sums = scatter_elements(op, found->how, start, dim, index, src);
  if (reduce != "mean") return sums;
  const Tensor ones = tenon::expand(tenon::ones(IntList(), input.dtype(), input.device()), ShapeOf(index).list());
  Tensor counts =
      tenon::scatter_add(include_self ? tenon::ones_like(input) : tenon::zeros_like(input), dim, index, ones);
  if (!include_self) counts = tenon::clamp(counts, Scalar(1), std::nullopt);
  return is_floating(input.dtype()) ? tenon::div(sums, counts) : tenon::floor_divide(sums, counts);
}

Tensor scatter_nd(const Tensor& input, const Tensor& indices, const Tensor& updates, std::string_view reduce,
                  int64_t batch_dims) {
  constexpr std::string_view op = "scatter_nd";
  require_defined(op, "input", input);
  require_defined(op, "updates", updates);
  const Tensor places = as_index(op, "indices", indices);
  const Reduction* found = std::find_if(std::begin(kReductions), std::end(kReductions),
                                        [&](const Reduction& one) { return one.name == reduce; });
  const bool known = found != std::end(kReductions) && reduce != "mean";
  if (!known && reduce != "none") {
    refuse(op, "reduce is '{}'; it may be 'none', 'sum', 'prod', 'amax' or 'amin'.", reduce);
  }
  const int64_t count = places.rank() == 0 ? 0 : places.dim(-1);
  if (count < 1 || batch_dims < 0 || batch_dims >= places.rank() || batch_dims + count > input.rank()) {
    refuse(op, "{} coordinates after {} batch axes do not fit input of shape {} and indices of shape {}.", count,
           batch_dims, input.dims(), places.dims());
  }
  const int64_t rank = places.rank() - 1 + input.rank() - batch_dims - count;
  if (updates.rank() != rank) refuse(op, "updates has rank {}; it must be {}.", updates.rank(), rank);
  const Tensor source = tenon::cast(updates, input.dtype());
  const int32_t how = known ? found->how : EP_SCATTER_ASSIGN;
  if (rank == 0) {
    return scatter_at(op, EP_GATHER_COORDINATES, how, input, static_cast<int32_t>(batch_dims),
                      tenon::unsqueeze(places, 0), tenon::reshape(source, 1));
  }
  return scatter_at(op, EP_GATHER_COORDINATES, how, input, static_cast<int32_t>(batch_dims), places, source);
}

Tensor index_fill(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& value) {
  constexpr std::string_view op = "index_fill";
  require_defined(op, "input", input);
  require_defined(op, "index", index);
  require_rank_0(op, "value", value);
  const int32_t axis = axis_of(op, dim, input.rank());
  if (input.rank() == 0) {
    return tenon::reshape(functors::index_fill(tenon::reshape(input, 1), 0, index, value), IntList());
  }
  SymDims dims = sizes(input);
  dims[axis] = index.rank() == 0 ? SymDim(1) : size_at(index, 0);
  return scatter_slices(op, EP_SCATTER_ASSIGN, input, dim, index, tenon::expand(value, SizeList(dims)), true);
}

Tensor index_fill(const Tensor& input, int64_t dim, const Tensor& index, Scalar value) {
  require_defined("index_fill", "input", input);
  return functors::index_fill(input, dim, index, tenon::full(IntList(), value, input.dtype(), input.device()));
}

Tensor put(const Tensor& input, const Tensor& index, const Tensor& source, bool accumulate) {
  constexpr std::string_view op = "put";
  require_defined(op, "input", input);
  require_defined(op, "index", index);
  require_defined(op, "source", source);
  if (index.elements() != source.elements()) {
    refuse(op, "source has {} elements, but index has {}.", source.elements(), index.elements());
  }
  const Tensor flat = scatter_slices(op, accumulate ? EP_SCATTER_ADD : EP_SCATTER_ASSIGN, tenon::reshape(input, -1), 0,
                                     tenon::reshape(index, -1), tenon::reshape(source, -1), true);
  return tenon::reshape(flat, ShapeOf(input).list());
}

Tensor index_add(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) {
  require_defined("index_add", "source", source);
  if (alpha == Scalar(1)) return scatter_slices("index_add", EP_SCATTER_ADD, input, dim, index, source);
  const Halves halves{&input, &source};
  const Tensor scaled = tenon::mul(Halves::widened(source), alpha);
  return halves.rounded(scatter_slices("index_add", EP_SCATTER_ADD, Halves::widened(input), dim, index, scaled));
}

Tensor index_copy(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source) {
  return scatter_slices("index_copy", EP_SCATTER_ASSIGN, input, dim, index, source);
}

Tensor slice_scatter(const Tensor& input, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step) {
  const Tensor part = as_part("slice_scatter", input, src);
  if (input.rank() == 0) refuse("slice_scatter", "a tensor of rank 0 has no axis to slice.");
  if (step < 1) refuse("slice_scatter", "step is {}; it must be at least 1.", step);
  SliceAttributes attributes{};
  attributes.axis = axis_of("slice_scatter", dim, input.rank());
  attributes.start = start.value_or(0);
  attributes.end = end.value_or(INT64_MAX);
  attributes.step = step;
  return apply(OpId::slice_scatter, {&input, &part}, &attributes);
}

Tensor select_scatter(const Tensor& input, const Tensor& src, int64_t dim, int64_t index) {
  const Tensor part = as_part("select_scatter", input, src);
  SelectAttributes attributes{};
  attributes.axis = dim;
  attributes.index = index;
  return apply(OpId::select_scatter, {&input, &part}, &attributes);
}

}  // namespace tenon::functors
