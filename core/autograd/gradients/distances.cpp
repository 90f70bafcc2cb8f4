// Gradients of standard deviations, norms of any order and distances. Their parts have infinite slopes at points where
// the whole function has none, so each gradient is written as a whole.
#include <cmath>

#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/operators.h"
#include "core/ops/size_list.h"
#include "core/ops/sizes.h"
#include "primitives/infer/axis.h"
#include "primitives/infer/reduce-inl.h"

namespace tenon::gradients {
namespace {

// `x` in f32 if its dtype is narrower, so that a gradient is rounded once.
Tensor widened(const Tensor& x) {
  return x.dtype() == DType::f16 || x.dtype() == DType::bf16 ? tenon::cast(x, DType::f32) : x;
}

// a / b, but 0 where b is 0; so are all its derivatives.
Tensor quotient(const Tensor& a, const Tensor& b) {
  const Tensor none = tenon::eq(b, 0);
  return tenon::where(none, 0, a / tenon::where(none, 1, b));
}

// The result of a reduction of a tensor of `sizes` that a composite with a list `dim` computed.
struct Reduced {
  template <class Attributes>
  Reduced(const Attributes& attributes, std::string_view op, const SymDims& sizes)
      : mask(value_or_throw(infer::axis_mask(op, attributes.dim.span(), sizes.rank()))), kept(sizes) {
    for (int32_t axis = 0; axis < sizes.rank(); ++axis) {
      if ((mask >> axis & 1) == 0) continue;
      axes.push_back(axis);
      kept[axis] = 1;
    }
  }
  // `of_result` with the reduced axes as length 1.
  Tensor spread(const Tensor& of_result) const { return tenon::reshape(of_result, SizeList(kept)); }

  uint32_t mask;
  SymDims kept;
  Dims axes;
};

// The gradient of a norm of order `p`: sign(x) (|x| / norm)^(p - 1) times `grad`. The reduced axes of `grad` and `norm`
// have length 1. It is 0 where the norm is 0 and, for orders below 1, where x is 0.
Tensor of_power_norm(const Tensor& x, double p, const Tensor& norm, const Tensor& grad) {
  const Tensor none = tenon::eq(norm, 0);
  Tensor share = tenon::abs(x) / tenon::where(none, 1, norm);
  if (p < 2) share = tenon::where(tenon::eq(x, 0), 1, share);
  return tenon::sign(x) * tenon::pow(share, p - 1) * tenon::where(none, 0, grad);
}

Tensor of_norm(const Tensor& x, double p, const Tensor& norm, const Tensor& grad) {
  if (p == 0) return tenon::zeros_like(x);
  if (p == 1) return tenon::sign(x) * grad;
  if (p == 2) return x * quotient(grad, norm);
  return of_power_norm(x, p, norm, grad);
}

Tensor greatest(const Tensor& x, const Tensor& norm) {
  return tenon::logical_or(tenon::eq(tenon::abs(x), norm), tenon::isnan(x));
}

// If several differences share the maximum, each gets the whole gradient of cdist of infinite order, as in PyTorch.
Tensor of_distances(const Tensor& apart, double p, const Tensor& distance, const Tensor& grad) {
  if (!std::isinf(p)) return of_norm(apart, p, distance, grad);
  return tenon::where(greatest(apart, distance), tenon::sign(apart) * grad, 0);
}

// The batch axes of cdist, merged into one if an additional axis would exceed the greatest rank.
struct Batch {
  explicit Batch(const Tensor& result) : flattens(result.rank() == EP_MAX_RANK) {
    if (!flattens) return;
    dims = result.dims();
    dims.resize(result.rank() - 2);
  }
  // `x` with its batch axes broadcast and merged into one.
  Tensor flat(const Tensor& x) const {
    if (!flattens) return x;
    return tenon::reshape(tenon::expand(x, matrices(x)), {element_count(dims), x.dim(-2), x.dim(-1)});
  }
  Tensor whole(const Tensor& x) const { return flattens ? tenon::reshape(x, matrices(x)) : x; }
  Dims matrices(const Tensor& x) const {
    Dims all = dims;
    all.push_back(x.dim(-2));
    all.push_back(x.dim(-1));
    return all;
  }

  bool flattens;
  Dims dims = {};
};

}  // namespace

void std(const autograd::Backward& b) {
  const auto& a = b.attributes<StdAttributes>();
  const Tensor x = widened(b.input(0));
  const Reduced reduced(a, "std", sizes(x));
  const auto count = static_cast<double>(bound(infer::reduced_count<SymDim>(sizes(x), reduced.mask), "std"));
  const double degrees = std::max(count - static_cast<double>(a.correction), 0.0);
  const Tensor slope = quotient(reduced.spread(b.grad()), reduced.spread(widened(b.result()))) / degrees;
  b.give(0, slope * (x - tenon::mean(x, reduced.axes, true)));
}

void vector_norm(const autograd::Backward& b) {
  const double p = b.scalar(0);
  const Tensor x = widened(b.input(0));
  const Reduced reduced(b.attributes<VectorNormAttributes>(), "vector_norm", sizes(x));
  const Tensor norm = reduced.spread(widened(b.result()));
  const Tensor grad = reduced.spread(b.grad());
  if (!std::isinf(p)) return b.give(0, of_norm(x, p, norm, grad));
  const Tensor found = greatest(x, norm);
  const Tensor share = grad / tenon::sum(found, reduced.axes, true);
  b.give(0, tenon::where(found, tenon::sign(x) * share, 0));
}

void cdist(const autograd::Backward& b) {
  const double p = b.scalar(0);
  const Tensor rows = widened(b.input(0)), others = widened(b.input(1)), distance = widened(b.result());
  const Tensor grad = widened(b.grad());
  constexpr int64_t many = 25;  // with this many rows or more, materialised differences would take too much memory
  if (p == 2 && (rows.dim(-2) > many || others.dim(-2) > many)) {
    const Tensor shares = quotient(grad, distance);
    const Tensor turned = tenon::transpose(shares, -1, -2);
    if (b.wants(0)) b.give(0, rows * tenon::sum(shares, -1, true) - tenon::matmul(shares, others));
    if (b.wants(1)) b.give(1, others * tenon::sum(turned, -1, true) - tenon::matmul(turned, rows));
    return;
  }
  const Batch batch(grad);
  const Tensor apart = tenon::unsqueeze(batch.flat(rows), -2) - tenon::unsqueeze(batch.flat(others), -3);
  const Tensor slopes =
      of_distances(apart, p, tenon::unsqueeze(batch.flat(distance), -1), tenon::unsqueeze(batch.flat(grad), -1));
  if (b.wants(0)) b.give(0, batch.whole(tenon::sum(slopes, -2)));
  if (b.wants(1)) b.give(1, -batch.whole(tenon::sum(slopes, -3)));
}

}  // namespace tenon::gradients
