#include "core/ops/functors/positions.h"

#include <algorithm>
#include <limits>

#include "core/ops/functors/apply.h"

namespace tenon::functors {

Tensor as_index(std::string_view op, std::string_view name, const Tensor& tensor) {
  require_defined(op, name, tensor);
  const DType dtype = tensor.dtype();
  if (!is_integer(dtype)) refuse(op, "{} must be integers, not {}.", name, dtype_name(dtype));
  if (dtype == DType::i32 || dtype == DType::i64) return tensor;
  const Scalar most(std::numeric_limits<int64_t>::max() / 2);
  return tenon::cast(dtype == DType::u64 ? tenon::clamp(tensor, std::nullopt, most) : tensor, DType::i64);
}

Tensor as_index_from_start(std::string_view op, std::string_view name, const Tensor& tensor) {
  const Tensor index = as_index(op, name, tensor);
  if (dtype_info(tensor.dtype()).type_class == DTypeClass::UINT) return index;
  return tenon::bitwise_and(tenon::cast(index, DType::i64), Scalar(std::numeric_limits<int64_t>::max()));
}

namespace {

struct Located {
  std::vector<int32_t> axes;  // ascending
  TensorList positions;       // all of one shape
};

void broadcast(std::string_view op, TensorList* positions) {
  Dims dims = (*positions)[0].dims();
  for (const Tensor& each : *positions) dims = value_or_throw(infer::broadcast(op, dims, each.dims()));
  for (Tensor& each : *positions) each = tenon::expand(each, dims);
}

Located locate(const Indexed& indexed) {
  Located located;
  for (const auto& [axis, tensor] : indexed.tensors) {
    if (tensor.dtype() != DType::boolean) {
      located.positions.push_back(tenon::cast(as_index(indexed.op, "index", tensor), DType::i64));
      located.axes.push_back(axis);
      continue;
    }
    const Tensor places = tenon::nonzero(tensor);
    for (int32_t i = 0; i < tensor.rank(); ++i) {
      located.positions.push_back(tenon::select(places, 1, i));
      located.axes.push_back(axis + i);
    }
  }
  broadcast(indexed.op, &located.positions);
  return located;
}

// The view with the indexed axes in front, merged into one.
struct Flat {
  Tensor rows;
  Tensor positions;            // row numbers in `rows`
  std::vector<int64_t> order;  // order of the axes of the view
  Dims rest;                   // the other dims
};

Flat flatten(const Tensor& view, const Located& located) {
  const Dims& dims = view.dims();
  Flat flat;
  Dims shape{1};
  for (const int32_t axis : located.axes) {
    const Tensor& at = located.positions[flat.order.size()];
    const Scalar size(dims[axis]);
    // A position outside its axis is replaced by one outside all rows, which the gather refuses.
    const Tensor fits = tenon::logical_and(tenon::ge(at, Scalar(-dims[axis])), tenon::lt(at, size));
    const Tensor from_start = tenon::where(tenon::lt(at, Scalar(0)), tenon::add(at, size), at);
    const Tensor safe = tenon::where(fits, from_start, Scalar(int64_t{1} << 40));
    flat.positions = flat.positions.defined() ? tenon::add(tenon::mul(flat.positions, size), safe) : safe;
    shape[0] *= dims[axis];
    flat.order.push_back(axis);
  }
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    if (std::find(located.axes.begin(), located.axes.end(), axis) != located.axes.end()) continue;
    flat.order.push_back(axis);
    flat.rest.push_back(dims[axis]);
    shape.push_back(dims[axis]);
  }
  flat.rows = tenon::reshape(tenon::permute(view, flat.order), shape);
  return flat;
}

// Moves axes [first, first + count) of `x` to `place`.
Tensor moved(const Tensor& x, int32_t first, int32_t count, int32_t place) {
  std::vector<int64_t> from, to;
  for (int32_t i = 0; i < count; ++i) {
    from.push_back(first + i);
    to.push_back(place + i);
  }
  return tenon::movedim(x, from, to);
}

// True if a single mask is the only index and every true element gets the same values; the mask need not be read then.
bool is_select(const Indexed& indexed, const Tensor& values) {
  if (indexed.tensors.size() != 1 || indexed.tensors[0].tensor.dtype() != DType::boolean) return false;
  const int32_t after = indexed.view.rank() - indexed.tensors[0].axis - indexed.tensors[0].tensor.rank();
  return values.rank() <= after || values.dims()[values.rank() - 1 - after] == 1;
}

Tensor selected(const Indexed& indexed, const Tensor& values, bool accumulate) {
  const auto& [axis, mask] = indexed.tensors[0];
  const int32_t after = indexed.view.rank() - axis - mask.rank();
  Dims given = values.dims(), where = mask.dims();
  // Replaces the axis of the true elements by the axes of the mask.
  for (int32_t i = 1; i < mask.rank() && values.rank() > after; ++i) given.insert(values.rank() - 1 - after, 1);
  for (int32_t i = 0; i < after; ++i) where.push_back(1);
  const Tensor full = tenon::broadcast_to(tenon::reshape(values, given), indexed.view.dims());
  const Tensor cast = tenon::cast(full, indexed.view.dtype());
  return tenon::where(tenon::reshape(mask, where), accumulate ? tenon::add(indexed.view, cast) : cast, indexed.view);
}

}  // namespace

int32_t axes_of(const Tensor& tensor) { return tensor.dtype() == DType::boolean ? tensor.rank() : 1; }

int32_t add_index(const Tensor& tensor, int32_t axis, Indexed* indexed) {
  if (tensor.dtype() == DType::boolean) {
    if (tensor.rank() == 0) refuse(indexed->op, "a bool of rank 0 cannot be a mask.");
    for (int32_t i = 0; i < tensor.rank(); ++i) {
      if (tensor.dim(i) == indexed->view.dim(axis + i)) continue;
      refuse(indexed->op, "a mask of shape {} does not fit axes {} to {} of a tensor of shape {}.", tensor.dims(), axis,
             axis + tensor.rank() - 1, indexed->view.dims());
    }
  } else if (tensor.dtype() == DType::u8) {
    refuse(indexed->op, "a tensor of u8 could be a mask or positions; cast it to bool or i64.");
  } else if (!is_integer(tensor.dtype())) {
    refuse(indexed->op, "a tensor of {} is neither a mask nor positions.", dtype_name(tensor.dtype()));
  }
  indexed->tensors.push_back({axis, tensor});
  return axis + axes_of(tensor);
}

Tensor gathered(const Indexed& indexed) {
  const Located located = locate(indexed);
  if (located.axes.size() == 1) return tenon::gather_slices(indexed.view, located.axes[0], located.positions[0]);
  const Flat flat = flatten(indexed.view, located);
  const Tensor found = tenon::gather_slices(flat.rows, 0, flat.positions);
  return indexed.adjacent ? moved(found, 0, flat.positions.rank(), located.axes[0]) : found;
}

Tensor written(const Indexed& indexed, const Tensor& values, bool accumulate) {
  const Tensor& view = indexed.view;
  const Tensor near = tenon::to(values, view.device());
  if (is_select(indexed, near)) return selected(indexed, near, accumulate);
  const Located located = locate(indexed);
  const Flat flat = flatten(view, located);
  const int32_t count = flat.positions.rank();
  const int32_t place = indexed.adjacent ? located.axes[0] : 0;
  Dims dims = flat.rest;
  for (int32_t i = 0; i < count; ++i) dims.insert(place + i, flat.positions.dims()[i]);
  const Tensor given = moved(tenon::broadcast_to(near, dims), place, count, 0);
  Dims rows{flat.positions.elements()};
  for (const int64_t dim : flat.rest) rows.push_back(dim);
  const Tensor list = tenon::reshape(flat.positions, -1), source = tenon::reshape(given, rows);
  const Tensor result =
      accumulate ? tenon::index_add(flat.rows, 0, list, source) : tenon::index_copy(flat.rows, 0, list, source);
  Dims shape;
  std::vector<int64_t> back(flat.order.size());
  for (size_t i = 0; i < flat.order.size(); ++i) {
    back[static_cast<size_t>(flat.order[i])] = static_cast<int64_t>(i);
    shape.push_back(view.dims()[flat.order[i]]);
  }
  return tenon::permute(tenon::reshape(result, shape), back);
}

Tensor index_put(const Tensor& input, const TensorList& indices, const Tensor& values, bool accumulate) {
  constexpr std::string_view op = "index_put";
  require_defined(op, "input", input);
  require_defined(op, "values", values);
  int32_t named = 0;
  for (const Tensor& each : indices) named += each.defined() ? axes_of(each) : 1;
  if (named > input.rank()) {
    refuse(op, "{} axes are indexed, but a tensor of shape {} has {}.", named, input.dims(), input.rank());
  }
  Indexed indexed{op, input, {}, true};
  int32_t axis = 0, end = 0;  // end: the axis after the last tensor
  for (const Tensor& each : indices) {
    if (!each.defined()) {
      ++axis;
      continue;
    }
    if (!indexed.tensors.empty() && axis != end) indexed.adjacent = false;
    axis = end = add_index(each, axis, &indexed);
  }
  if (indexed.tensors.empty()) refuse(op, "indices must have at least one tensor.");
  return written(indexed, values, accumulate);
}

}  // namespace tenon::functors
