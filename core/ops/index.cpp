#include "core/ops/index.h"

#include <algorithm>
#include <vector>

#include "core/ops/functors/apply.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

using functors::refuse;

// What is left when the views are taken: a tensor, and positions along some of its axes.
struct Located {
  Tensor view;
  std::vector<int32_t> axes;  // rising
  TensorList positions;       // of one shape
  bool adjacent = true;       // nothing stands between the positions
};

int32_t axes_of(const Index& index) {
  if (index.get<NoneType>() != nullptr || index.get<EllipsisType>() != nullptr) return 0;
  const Tensor* tensor = index.get<Tensor>();
  return tensor != nullptr && tensor->dtype() == DType::boolean ? tensor->rank() : 1;
}

// The positions of the elements of `mask` that are true, a list for each of its axes.
TensorList positions_of(const Tensor& mask) {
  const std::vector<uint8_t> flags = mask.to_host<uint8_t>();
  std::vector<std::vector<int64_t>> found(static_cast<size_t>(mask.rank()));
  for (size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] == 0) continue;
    auto rest = static_cast<int64_t>(i);
    for (int32_t axis = mask.rank() - 1; axis >= 0; --axis) {
      found[static_cast<size_t>(axis)].push_back(rest % mask.dims()[axis]);
      rest /= mask.dims()[axis];
    }
  }
  TensorList lists;
  for (const std::vector<int64_t>& each : found) lists.push_back(Tensor::from(each, Dims{each.size()}, mask.device()));
  return lists;
}

void add_mask(const Tensor& mask, int32_t axis, Located* located) {
  for (int32_t i = 0; i < mask.rank(); ++i) {
    if (mask.dim(i) == located->view.dim(axis + i)) continue;
    refuse("index: a mask of shape {} does not fit axes {} to {} of a tensor of shape {}.", mask.dims(), axis,
           axis + mask.rank() - 1, located->view.dims());
  }
  for (const Tensor& each : positions_of(mask)) {
    located->positions.push_back(each);
    located->axes.push_back(axis++);
  }
}

void add_positions(const Tensor& tensor, int32_t axis, Located* located) {
  if (tensor.dtype() == DType::boolean) {
    if (tensor.rank() == 0) refuse("index: a bool of rank 0 is no mask.");
    return add_mask(tensor, axis, located);
  }
  if (!is_integer(tensor.dtype())) {
    refuse("index: a tensor of {} is neither a mask nor positions.", dtype_name(tensor.dtype()));
  }
  located->positions.push_back(tenon::cast(tensor, DType::i64));
  located->axes.push_back(axis);
}

void broadcast(TensorList* positions) {
  Dims dims = (*positions)[0].dims();
  for (const Tensor& each : *positions) dims = value_or_throw(infer::broadcast("index", dims, each.dims()));
  for (Tensor& each : *positions) each = tenon::expand(each, dims);
}

Located locate(const Tensor& input, std::span<const Index> indices) {
  functors::require_defined("index", "input", input);
  int32_t named = 0, ellipses = 0;
  for (const Index& index : indices) {
    named += axes_of(index);
    ellipses += index.get<EllipsisType>() != nullptr ? 1 : 0;
  }
  if (ellipses > 1) refuse("index: there are {} ellipses; there may be 1.", ellipses);
  if (named > input.rank()) {
    refuse("index: {} axes are indexed, but a tensor of shape {} has {}.", named, input.dims(), input.rank());
  }
  Located located{input, {}, {}, true};
  int32_t axis = 0;
  bool ended = false;  // something stands behind the last positions
  for (const Index& index : indices) {
    if (const int64_t* position = index.get<int64_t>()) {
      located.view = tenon::select(located.view, axis, *position);
      continue;
    }
    if (const Tensor* tensor = index.get<Tensor>()) {
      if (ended) located.adjacent = false;
      const size_t before = located.axes.size();
      add_positions(*tensor, axis, &located);
      axis += static_cast<int32_t>(located.axes.size() - before);
      continue;
    }
    ended = !located.axes.empty();
    if (index.get<NoneType>() != nullptr) {
      located.view = tenon::unsqueeze(located.view, axis++);
    } else if (const Slice* slice = index.get<Slice>()) {
      located.view = tenon::slice(located.view, axis++, slice->start, slice->end, slice->step);
    } else {
      axis += input.rank() - named;
    }
  }
  if (!located.positions.empty()) broadcast(&located.positions);
  return located;
}

// `view` with the indexed axes in front and as one.
struct Flat {
  Tensor rows;
  Tensor positions;            // in `rows`
  std::vector<int64_t> order;  // of the axes of the view
  Dims rest;                   // the other dims
};

Flat flatten(const Located& located) {
  const Dims& dims = located.view.dims();
  Flat flat;
  Dims shape{1};
  for (const int32_t axis : located.axes) {
    const Tensor& at = located.positions[flat.order.size()];
    const Scalar size(dims[axis]);
    // A position outside the axis becomes one outside all rows, which the gather refuses.
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
  flat.rows = tenon::reshape(tenon::permute(located.view, flat.order), shape);
  return flat;
}

// Axes [first, first + count) of `x` moved to `place`.
Tensor moved(const Tensor& x, int32_t first, int32_t count, int32_t place) {
  std::vector<int64_t> from, to;
  for (int32_t i = 0; i < count; ++i) {
    from.push_back(first + i);
    to.push_back(place + i);
  }
  return tenon::movedim(x, from, to);
}

Tensor gathered(const Located& located) {
  if (located.axes.size() == 1) return tenon::gather_slices(located.view, located.axes[0], located.positions[0]);
  const Flat flat = flatten(located);
  const Tensor found = tenon::gather_slices(flat.rows, 0, flat.positions);
  return located.adjacent ? moved(found, 0, flat.positions.rank(), located.axes[0]) : found;
}

void put_at(const Located& located, const Tensor& values) {
  Tensor view = located.view;
  if (located.axes.empty()) {
    tenon::copy_(view, values);
    return;
  }
  const Flat flat = flatten(located);
  const int32_t count = flat.positions.rank();
  const int32_t place = located.adjacent ? located.axes[0] : 0;
  Dims dims = flat.rest;
  for (int32_t i = 0; i < count; ++i) dims.insert(place + i, flat.positions.dims()[i]);
  const Tensor given = moved(tenon::broadcast_to(tenon::to(values, view.device()), dims), place, count, 0);
  Dims rows{flat.positions.elements()};
  for (const int64_t dim : flat.rest) rows.push_back(dim);
  const Tensor written =
      tenon::index_copy(flat.rows, 0, tenon::reshape(flat.positions, -1), tenon::reshape(given, rows));
  Dims shape;
  std::vector<int64_t> back(flat.order.size());
  for (size_t i = 0; i < flat.order.size(); ++i) {
    back[static_cast<size_t>(flat.order[i])] = static_cast<int64_t>(i);
    shape.push_back(view.dims()[flat.order[i]]);
  }
  tenon::copy_(view, tenon::permute(tenon::reshape(written, shape), back));
}

}  // namespace

Tensor Tensor::operator[](int64_t i) const { return tenon::select(*this, 0, i); }

Tensor Tensor::index(std::span<const Index> indices) const {
  const Located located = locate(*this, indices);
  return located.axes.empty() ? located.view : gathered(located);
}
Tensor Tensor::index(std::initializer_list<Index> indices) const {
  return index(std::span(indices.begin(), indices.size()));
}

const Tensor& Tensor::index_put_(std::initializer_list<Index> indices, const Tensor& values) const {
  put_at(locate(*this, std::span(indices.begin(), indices.size())), values);
  return *this;
}
const Tensor& Tensor::index_put_(std::initializer_list<Index> indices, Scalar value) const {
  return index_put_(indices, tenon::full(IntList(), value, dtype(), device()));
}

Tensor Tensor::operator=(const Tensor& other) && { return std::move(tenon::copy_(*this, other)); }
Tensor Tensor::operator=(Scalar value) && { return std::move(tenon::fill_(*this, value)); }

Tensor Tensor::to(DType dtype) const { return tenon::cast(*this, dtype); }

}  // namespace tenon
