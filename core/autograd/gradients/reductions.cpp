// Reductions: the gradient of a result flows to all elements that it was computed from.
#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/operators.h"
#include "core/ops/sized_ops.h"
#include "primitives/infer/size.h"

namespace tenon::gradients {
namespace {

bool reduced(const autograd::Backward& b, int32_t axis) {
  return (b.attributes<ReduceAttributes>().axes >> axis & 1) != 0;
}

Dims axes_of(const autograd::Backward& b) {
  Dims axes;
  for (int32_t axis = 0; axis < b.sizes(0).rank(); ++axis) {
    if (reduced(b, axis)) axes.push_back(axis);
  }
  return axes;
}

// A tensor of the result's shape with the reduced axes as length 1, so that it broadcasts against the input.
Tensor kept(const autograd::Backward& b, const Tensor& of_result) {
  if (b.is_open(0)) {
    SymDims sizes = b.sizes(0);
    for (int32_t axis = 0; axis < sizes.rank(); ++axis) {
      if (reduced(b, axis)) sizes[axis] = 1;
    }
    return identical(tenon::sizes(of_result), sizes) ? of_result : tenon::reshape(of_result, SizeList(sizes));
  }
  Dims dims = b.dims(0);
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    if (reduced(b, axis)) dims[axis] = 1;
  }
  return of_result.dims() == dims ? of_result : tenon::reshape(of_result, dims);
}

Tensor spread(const autograd::Backward& b, const Tensor& of_result) {
  return b.general(0, [&](const IntList& dims) { return tenon::expand(kept(b, of_result), dims); });
}

// a / b, but 0 where b is 0; so are all its derivatives.
Tensor quotient(const Tensor& a, const Tensor& b) {
  const Tensor none = tenon::eq(b, 0);
  return tenon::where(none, 0, a / tenon::where(none, 1, b));
}

// The input's axes, with the reduced ones last.
Dims reduced_last(const autograd::Backward& b) {
  Dims order;
  for (const bool last : {false, true}) {
    for (int32_t axis = 0; axis < b.dims(0).rank(); ++axis) {
      if (reduced(b, axis) == last) order.push_back(axis);
    }
  }
  return order;
}

// From the gradient of the products [m, 1] of each row of `rows` [m, n], the gradient of the rows. Uses a tree of
// pairwise products, so that zeros need no special case in derivatives of any order.
Tensor of_row_products(const Tensor& rows, Tensor gradient) {
  TensorList levels{rows};
  while (levels.back().dim(1) > 1) {
    const int64_t length = levels.back().dim(1);
    if (length % 2 != 0) levels.back() = tenon::pad(levels.back(), {0, 1}, "constant", Scalar(1));
    const int64_t half = (length + 1) / 2;
    levels.push_back(tenon::narrow(levels.back(), 1, 0, half) * tenon::narrow(levels.back(), 1, half, half));
  }
  for (size_t level = levels.size() - 1; level-- > 0;) {
    const int64_t half = levels[level].dim(1) / 2;
    gradient = tenon::narrow(gradient, 1, 0, half);
    gradient = tenon::concat(
        {gradient * tenon::narrow(levels[level], 1, half, half), gradient * tenon::narrow(levels[level], 1, 0, half)},
        1);
  }
  return tenon::narrow(gradient, 1, 0, rows.dim(1));
}

}  // namespace

void sum(const autograd::Backward& b) { b.give(0, spread(b, b.grad())); }

void mean(const autograd::Backward& b) {
  if (b.is_open(0)) {
    const SymDims sizes = b.sizes(0);
    SymDim count = 1;
    for (int32_t axis = 0; axis < sizes.rank(); ++axis) {
      if (reduced(b, axis)) count = count * sizes[axis];
    }
    return b.give(0, spread(b, tenon::sized::div(b.grad(), count)));
  }
  int64_t count = 1;
  for (const int64_t axis : axes_of(b)) count *= b.dims(0)[static_cast<int32_t>(axis)];
  b.give(0, spread(b, b.grad() / static_cast<double>(count)));
}

void prod(const autograd::Backward& b) {
  if (element_count(b.dims(0)) == 0) return b.give(0, tenon::zeros_like(b.input(0)));
  const Dims order = reduced_last(b);
  const Tensor turned = tenon::permute(b.input(0), order);
  const int64_t products = b.grad().elements();
  const Tensor rows = tenon::reshape(turned, {products, -1});
  const Tensor gradient = of_row_products(rows, tenon::reshape(b.grad(), {products, 1}));
  Dims back = order;
  for (int32_t axis = 0; axis < order.rank(); ++axis) back[order[axis]] = axis;
  b.give(0, tenon::permute(tenon::reshape(gradient, turned.dims()), back));
}

// Equal extrema share the gradient, and so do NaNs.
void extremum(const autograd::Backward& b) {
  const Tensor x = b.input(0);
  const Tensor found = tenon::logical_or(tenon::eq(x, kept(b, b.result())), tenon::isnan(x));
  const Tensor count = tenon::sum(found, axes_of(b), true);
  b.give(0, tenon::where(found, kept(b, b.grad()) / count, 0));
}

void l1_norm(const autograd::Backward& b) { b.give(0, kept(b, b.grad()) * tenon::sign(b.input(0))); }

// 0 where the norm is 0.
void l2_norm(const autograd::Backward& b) { b.give(0, b.input(0) * quotient(kept(b, b.grad()), kept(b, b.result()))); }

void sum_square(const autograd::Backward& b) { b.give(0, kept(b, b.grad()) * (b.input(0) * 2)); }

void nansum(const autograd::Backward& b) {
  b.give(0, tenon::where(tenon::isnan(b.input(0)), Scalar(0), kept(b, b.grad())));
}

void log_sum(const autograd::Backward& b) { b.give(0, spread(b, b.grad() * tenon::exp(-b.result()))); }

}  // namespace tenon::gradients
