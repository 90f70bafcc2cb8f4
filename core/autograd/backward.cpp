#include "core/autograd/backward.h"

#include "core/ops/ops.h"

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

void Backward::give(size_t i, Tensor gradient) const {
  if (const InputShape* shape = node_.shape(i); shape != nullptr) {
    gradient = sum_to(gradient, shape->dims);
    if (gradient.dtype() != shape->dtype) gradient = tenon::cast(gradient, shape->dtype);
    if (gradient.impl()->device != shape->device) gradient = tenon::to(gradient, Device(shape->device));
  }
  of_inputs_[i] = std::move(gradient);
}

}  // namespace tenon::autograd
