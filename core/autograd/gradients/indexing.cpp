// Gathering, joining, splitting and padding.
#include <algorithm>

#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/operators.h"

namespace tenon::gradients {
namespace {

// `index` counted from the beginning of an axis of `size`.
Tensor from_beginning(const Tensor& index, int64_t size) {
  return tenon::where(tenon::lt(index, 0), index + size, index);
}

Tensor numbers_along(int64_t size, int32_t axis, int32_t rank, const Tensor& like) {
  Dims dims = Dims::filled(rank, 1);
  dims[axis] = size;
  return tenon::reshape(tenon::arange(size, like.dtype(), like.device()), dims);
}

// Zeros around `x` along `axis`.
Tensor padded(const Tensor& x, int32_t axis, int64_t low, int64_t high) {
  Dims pads = Dims::filled(2 * (x.rank() - axis), 0);
  pads[pads.rank() - 2] = low;
  pads[pads.rank() - 1] = high;
  return low == 0 && high == 0 ? x : tenon::pad(x, pads);
}

// What reflected padding of one axis has repeated is added to where it came from: at the low end elements 1 .. low, at
// the high end those before the last.
Tensor of_reflected(const Tensor& grad, int32_t axis, int64_t low, int64_t high) {
  const int64_t size = grad.dims()[axis] - low - high;
  Tensor inner = tenon::narrow(grad, axis, low, size);
  if (low > 0) {
    const Tensor part = tenon::flip(tenon::narrow(grad, axis, 0, low), axis);
    inner = inner + padded(part, axis, 1, size - 1 - low);
  }
  if (high > 0) {
    const Tensor part = tenon::flip(tenon::narrow(grad, axis, low + size, high), axis);
    inner = inner + padded(part, axis, size - 1 - high, 1);
  }
  return inner;
}

// The same for the edge repeated.
Tensor of_repeated(const Tensor& grad, int32_t axis, int64_t low, int64_t high) {
  const int64_t size = grad.dims()[axis] - low - high;
  Tensor inner = tenon::narrow(grad, axis, low, size);
  if (low > 0) {
    inner = inner + padded(tenon::sum(tenon::narrow(grad, axis, 0, low), axis, true), axis, 0, size - 1);
  }
  if (high > 0) {
    inner = inner + padded(tenon::sum(tenon::narrow(grad, axis, low + size, high), axis, true), axis, size - 1, 0);
  }
  return inner;
}

}  // namespace

// The rows of ones at the places of the index, transposed, times the gradient.
void gather_slices(const autograd::Backward& b) {
  const int32_t axis = b.attributes<AxisAttributes>().axis;
  const Dims& dims = b.dims(0);
  const int64_t size = dims[axis];
  int64_t before = 1;
  for (int32_t i = 0; i < axis; ++i) before *= dims[i];
  int64_t behind = 1;
  for (int32_t i = axis + 1; i < dims.rank(); ++i) behind *= dims[i];
  const Tensor index = from_beginning(tenon::reshape(b.input(1), {1, -1}), size);
  const Tensor taken = tenon::cast(tenon::eq(numbers_along(size, 0, 2, index), index), b.grad().dtype());
  const Tensor grad = tenon::reshape(b.grad(), {before, index.elements(), behind});
  b.give(0, tenon::reshape(tenon::matmul(taken, grad), dims));
}

void gather(const autograd::Backward& b) {
  const int32_t axis = b.attributes<AxisAttributes>().axis;
  const Dims& dims = b.dims(0);
  const Tensor index = tenon::unsqueeze(from_beginning(b.input(1), dims[axis]), axis);
  const Tensor taken = tenon::eq(numbers_along(dims[axis], axis, index.rank(), index), index);
  Tensor sum = tenon::sum(tenon::where(taken, tenon::unsqueeze(b.grad(), axis), 0), axis + 1);
  for (int32_t i = 0; i < dims.rank(); ++i) sum = padded(sum, i, 0, dims[i] - sum.dims()[i]);
  b.give(0, sum);
}

void concat(const autograd::Backward& b) {
  const int32_t axis = b.attributes<AxisAttributes>().axis;
  int64_t start = 0;
  for (size_t i = 0; i < b.input_count(); ++i) {
    const int64_t length = b.dims(i)[axis];
    if (b.wants(i)) b.give(i, tenon::narrow(b.grad(), axis, start, length));
    start += length;
  }
}

void split(const autograd::Backward& b) {
  const auto& attributes = b.attributes<SplitSizesAttributes>();
  const auto known = std::find_if(b.grads().begin(), b.grads().end(), [](const Tensor& g) { return g.defined(); });
  TensorList parts(b.grads().begin(), b.grads().end());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].defined()) continue;
    Dims dims = known->dims();
    dims[attributes.axis] = attributes.sizes[i];
    parts[i] = tenon::zeros(dims, known->dtype(), known->device());
  }
  b.give(0, tenon::concat(parts, attributes.axis));
}

void pad(const autograd::Backward& b) {
  const ep_pad_attributes& window = b.attributes<PadAttributes>().window;
  Tensor grad = b.grad();
  for (int32_t axis = 0; axis < grad.rank(); ++axis) {
    const int64_t low = window.low[axis];
    const int64_t high = window.high[axis];
    if (low == 0 && high == 0) continue;
    switch (window.mode) {
      case EP_PAD_REFLECT: grad = of_reflected(grad, axis, low, high); break;
      case EP_PAD_EDGE: grad = of_repeated(grad, axis, low, high); break;
      default: grad = tenon::narrow(grad, axis, low, grad.dims()[axis] - low - high);
    }
  }
  b.give(0, grad);
}

}  // namespace tenon::gradients
