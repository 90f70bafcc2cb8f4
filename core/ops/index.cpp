#include "core/ops/index.h"

#include "core/ops/functors/apply.h"
#include "core/ops/functors/positions.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

using functors::Indexed;
using functors::refuse;

int32_t axes_of(const Index& index) {
  if (index.get<NoneType>() != nullptr || index.get<EllipsisType>() != nullptr) return 0;
  const Tensor* tensor = index.get<Tensor>();
  return tensor != nullptr ? functors::axes_of(*tensor) : 1;
}

// Applies the views, and returns the index tensors that are left.
Indexed locate(const Tensor& input, std::span<const Index> indices) {
  functors::require_defined("index", "input", input);
  int32_t named = 0, ellipses = 0;
  for (const Index& index : indices) {
    named += axes_of(index);
    ellipses += index.get<EllipsisType>() != nullptr ? 1 : 0;
  }
  if (ellipses > 1) refuse("index", "there are {} ellipses; there may be 1.", ellipses);
  if (named > input.rank()) {
    refuse("index", "{} axes are indexed, but a tensor of shape {} has {}.", named, input.dims(), input.rank());
  }
  Indexed located{"index", input, {}, true};
  int32_t axis = 0;
  bool ended = false;  // true if another index follows the last positions
  for (const Index& index : indices) {
    if (const int64_t* position = index.get<int64_t>()) {
      located.view = tenon::select(located.view, axis, *position);
      continue;
    }
    if (const Tensor* tensor = index.get<Tensor>()) {
      if (ended) located.adjacent = false;
      axis = functors::add_index(*tensor, axis, &located);
      continue;
    }
    ended = !located.tensors.empty();
    if (index.get<NoneType>() != nullptr) {
      located.view = tenon::unsqueeze(located.view, axis++);
    } else if (const Slice* slice = index.get<Slice>()) {
      located.view = tenon::slice(located.view, axis++, slice->start, slice->end, slice->step);
    } else {
      axis += input.rank() - named;
    }
  }
  return located;
}

void put_at(const Indexed& located, const Tensor& values) {
  Tensor view = located.view;
  tenon::copy_(view, located.tensors.empty() ? values : functors::written(located, values, false));
}

}  // namespace

Tensor Tensor::operator[](int64_t i) const { return tenon::select(*this, 0, i); }

Tensor Tensor::index(std::span<const Index> indices) const {
  const Indexed located = locate(*this, indices);
  return located.tensors.empty() ? located.view : functors::gathered(located);
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

Tensor Tensor::where(const Tensor& condition, const Tensor& other) const {
  return tenon::where(condition, *this, other);
}
Tensor Tensor::where(const Tensor& condition, Scalar other) const { return tenon::where(condition, *this, other); }

Tensor Tensor::operator=(const Tensor& other) && { return std::move(tenon::copy_(*this, other)); }
Tensor Tensor::operator=(Scalar value) && { return std::move(tenon::fill_(*this, value)); }

Tensor Tensor::to(DType dtype) const { return tenon::cast(*this, dtype); }

}  // namespace tenon
