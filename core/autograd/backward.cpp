#include "core/autograd/backward.h"

#include <algorithm>

#include "core/ops/ops.h"
#include "primitives/infer/size.h"

namespace tenon::autograd {

Tensor sum_to(const Tensor& gradient, const Dims& dims) {
  if (gradient.dims() == dims) return gradient;
  const int32_t more = gradient.rank() - dims.rank();
  Dims axes;
  for (int32_t axis = 0; axis < gradient.rank(); ++axis) {
    const bool broadcast = axis < more || (dims[axis - more] == 1 && gradient.dims()[axis] != 1);
    if (broadcast) axes.push_back(axis);
  }
  const Tensor total = axes.empty() ? gradient : tenon::sum(gradient, axes, true);
  return total.dims() == dims ? total : tenon::reshape(total, dims);
}

Tensor sum_to(const Tensor& gradient, const SymDims& dims) {
  const SymDims have = sizes(gradient);
  if (identical(have, dims)) return gradient;
  const int32_t more = have.rank() - dims.rank();
  const auto is_one = [](SymDim size) {
    return size.is_number() && size.number() == 1;
  };  // open sizes do not count as 1
  Dims axes;
  for (int32_t axis = 0; axis < have.rank(); ++axis) {
    if (axis < more || (is_one(dims[axis - more]) && !is_one(have[axis]))) axes.push_back(axis);
  }
  const Tensor total = axes.empty() ? gradient : tenon::sum(gradient, axes, true);
  return more == 0 ? total : tenon::reshape(total, SizeList(dims));
}

void Backward::bind_patches() const {
  if (node_.patches() == nullptr) return;
  for (const Patch& patch : *node_.patches()) bound(patch.size, op().name);
}

SymDim Backward::size_of(const int64_t& field) const {
  const auto word = static_cast<uint32_t>(&field - static_cast<const int64_t*>(node_.attributes()));
  if (node_.patches() != nullptr) {
    for (const Patch& patch : *node_.patches()) {
      if (patch.word == word) return patch.size;
    }
  }
  return SymDim::saturated(field);
}

const Tensor& Backward::first_grad() const {
  const auto at = std::find_if(of_results_.begin(), of_results_.end(), [](const Tensor& g) { return g.defined(); });
  return at == of_results_.end() ? of_results_[0] : *at;
}

const Dims& Backward::dims(size_t i) const {
  const InputShape* shape = node_.shape(i);
  if (shape == nullptr) return of_results_[0].dims();
  if (shape->open != nullptr) {
    for (const SymDim size : *shape->open) bound(size, op().name);
  }
  return shape->dims;
}

SymDims Backward::sizes(size_t i) const {
  const InputShape* shape = node_.shape(i);
  if (shape == nullptr) return tenon::sizes(of_results_[0]);
  if (shape->open != nullptr) return *shape->open;
  SymDims dims;
  for (int64_t dim : shape->dims) dims.push_back(dim);
  return dims;
}

void Backward::give(size_t i, Tensor gradient) const {
  if (const InputShape* shape = node_.shape(i); shape != nullptr) {
    gradient =
        shape->open != nullptr || tenon::is_open(gradient) ? sum_to(gradient, sizes(i)) : sum_to(gradient, shape->dims);
    if (gradient.dtype() != shape->dtype) gradient = tenon::cast(gradient, shape->dtype);
    if (gradient.impl()->device != shape->device) gradient = tenon::to(gradient, Device(shape->device));
  }
  of_inputs_[i] = std::move(gradient);
}

}  // namespace tenon::autograd
