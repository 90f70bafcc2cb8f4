// Gathering, scattering, joining, splitting and padding.
#include <algorithm>

#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/operators.h"
#include "primitives/text/format.h"

namespace tenon::gradients {
namespace {

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

// Each slice of the gradient is added where forward has read it.
void gather_slices(const autograd::Backward& b) {
  const int32_t axis = b.attributes<AxisAttributes>().axis;
  const Dims& dims = b.dims(0);
  const Tensor index = tenon::reshape(b.input(1), {-1});
  Dims together = dims;
  together[axis] = index.elements();
  const Tensor zeros = tenon::zeros(dims, b.grad().dtype(), b.grad().device());
  b.give(0, tenon::index_add(zeros, axis, index, tenon::reshape(b.grad(), together)));
}

void gather(const autograd::Backward& b) {
  const int32_t axis = b.attributes<AxisAttributes>().axis;
  const Tensor zeros = tenon::zeros(b.dims(0), b.grad().dtype(), b.grad().device());
  b.give(0, tenon::scatter_add(zeros, axis, b.input(1), b.grad()));
}

// Where several elements are assigned to one place, each gets the gradient of that place, though only the last stays.
void scatter(const autograd::Backward& b) {
  const ep_scatter_attributes& how = b.attributes<ScatterAttributes>().scatter;
  if (how.op != EP_SCATTER_ASSIGN && how.op != EP_SCATTER_ADD) {
    throw Error(Code::unsupported, fmt::format("{}: only sums and assignments have a gradient.", b.op().name),
                "Combine with reduce = \"sum\", or call it on detach() of its arguments.");
  }
  const Tensor index = b.input(1);
  const bool slices = how.mode == EP_GATHER_SLICES;
  if (b.wants(2)) {
    b.give(2, slices ? tenon::gather_slices(b.grad(), how.axis, index) : tenon::gather(b.grad(), how.axis, index));
  }
  if (!b.wants(0)) return;
  if (how.op == EP_SCATTER_ADD) return b.give(0, b.grad());
  if (!slices) return b.give(0, tenon::scatter(b.grad(), how.axis, index, Scalar(0)));
  const Tensor part = tenon::gather_slices(b.grad(), how.axis, index);
  b.give(0, tenon::index_copy(b.grad(), how.axis, index, tenon::zeros_like(part)));
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
