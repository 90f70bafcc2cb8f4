// Norms, distances, comparisons of whole tensors, and statistics with several results.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/functors/apply.h"
#include "core/ops/functors/half.h"
#include "core/ops/functors/sized.h"
#include "core/ops/operators.h"

namespace tenon::functors {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The norm of order `p` over `dim`.
Tensor norm_of(const Tensor& x, double p, IntList dim, bool keepdim) {
  if (p == 2) return tenon::l2_norm(x, dim, keepdim);
  if (p == 1) return tenon::l1_norm(x, dim, keepdim);
  return tenon::vector_norm(x, p, dim, keepdim);
}

// Like norm_of, with elementary ops. vector_norm has its own gradient.
Tensor power_norm(const Tensor& x, double p, IntList dim, bool keepdim) {
  const Halves halves{&x};
  if (halves.any() && std::isfinite(p) && p != 0)
    return halves.rounded(power_norm(Halves::widened(x), p, dim, keepdim));
  const Tensor magnitudes = tenon::abs(x);
  if (p == kInfinity) return tenon::amax(magnitudes, dim, keepdim);
  if (p == -kInfinity) return tenon::amin(magnitudes, dim, keepdim);
  if (p == 0) return tenon::sum(tenon::cast(tenon::ne(x, 0), x.dtype()), dim, keepdim);
  return tenon::pow(tenon::sum(tenon::pow(magnitudes, p), dim, keepdim), 1 / p);
}

bool same_shape(const Tensor& a, const Tensor& b) { return a.dims() == b.dims(); }

Tensor truth(bool value, Device device) { return tenon::full(IntList(), Scalar(value), DType::boolean, device); }

}  // namespace

Tensor vector_norm(const Tensor& x, double ord, IntList dim, bool keepdim) {
  const Tensor source = floating("vector_norm", "x", x);
  const bool elementary = ord == 1 || ord == 2;
  return elementary ? norm_of(source, ord, dim, keepdim) : power_norm(source, ord, dim, keepdim);
}
Tensor norm(const Tensor& input) { return norm_of(floating("norm", "input", input), 2, {}, false); }
Tensor norm(const Tensor& input, double p, IntList dim, bool keepdim) {
  return norm_of(floating("norm", "input", input), p, dim, keepdim);
}
Tensor dist(const Tensor& input, const Tensor& other, double p) {
  require_defined("dist", "input", input);
  return norm_of(floating("dist", "input", input - other), p, {}, false);
}

Tensor normalize(const Tensor& input, double p, IntList dim, double eps) {
  const Tensor x = floating("normalize", "input", input);
  return x / tenon::maximum(norm_of(x, p, dim, true), eps);
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  const Tensor a = floating("pairwise_distance", "x1", x1), b = floating("pairwise_distance", "x2", x2);
  const Tensor apart = a - b + eps;
  return norm_of(apart, p, apart.rank() - 1, keepdim);
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  const Tensor a = floating("cosine_similarity", "x1", x1), b = floating("cosine_similarity", "x2", x2);
  const Dims dims = value_or_throw(infer::broadcast("cosine_similarity", a.dims(), b.dims()));
  const int32_t axis = axis_of("cosine_similarity", dim, dims.rank());
  const Tensor left = tenon::expand(a, dims), right = tenon::expand(b, dims);
  // As in PyTorch, gradients use the true length even if it is below eps.
  const auto unit = [&](const Tensor& x) {
    const Tensor length = tenon::l2_norm(x, axis, true);
    return x / at_least(length, eps);
  };
  return tenon::sum(unit(left) * unit(right), axis);
}

Tensor cdist(const Tensor& x1, const Tensor& x2, double p) {
  const Tensor a = floating("cdist", "x1", x1), b = floating("cdist", "x2", x2);
  if (a.rank() < 2 || b.rank() < 2 || a.dim(-1) != b.dim(-1)) {
    refuse("cdist", "x1 has shape {} and x2 {}; both must be [.., rows, n] with one n.", a.dims(), b.dims());
  }
  if (std::max(a.rank(), b.rank()) ==
      EP_MAX_RANK) {  // merge the batch into one axis, since the differences have one more axis
    Dims batches[] = {a.dims(), b.dims()};
    for (Dims& batch : batches) {
      batch.erase(batch.rank() - 1);
      batch.erase(batch.rank() - 1);
    }
    Dims dims = value_or_throw(infer::broadcast("cdist", batches[0], batches[1]));
    const auto flat = [&](const Tensor& x) {
      Dims full = dims;
      full.push_back(x.dim(-2));
      full.push_back(x.dim(-1));
      return tenon::reshape(tenon::expand(x, full), {element_count(dims), x.dim(-2), x.dim(-1)});
    };
    const Tensor result = tenon::cdist(flat(a), flat(b), p);
    dims.push_back(a.dim(-2));
    dims.push_back(b.dim(-2));
    return tenon::reshape(result, dims);
  }
  // For many rows the differences would take far more memory than the result. |a - b|^2 is |a|^2 + |b|^2 - 2 a b, which
  // loses digits if a and b are close. PyTorch switches at the same number of rows.
  constexpr int64_t many = 25;
  if (p != 2 || is_open(a) || is_open(b) || (a.dim(-2) <= many && b.dim(-2) <= many))
    return norm_of(tenon::unsqueeze(a, -2) - tenon::unsqueeze(b, -3), p, -1, false);
  const Tensor turned = tenon::transpose(b, -1, -2);
  const Tensor squares = tenon::sum(tenon::square(a), -1, true) + tenon::sum(tenon::square(turned), -2, true);
  const Tensor apart = tenon::sub(squares, tenon::mul(tenon::matmul(a, turned), Scalar(2)));
  const Tensor together = tenon::le(apart, Scalar(0));  // where the root has no gradient
  return tenon::where(together, Scalar(0), tenon::sqrt(tenon::where(together, Scalar(1), apart)));
}

Tensor allclose(const Tensor& input, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return tenon::all(tenon::isclose(input, other, rtol, atol, equal_nan));
}

Tensor equal(const Tensor& input, const Tensor& other) {
  require_defined("equal", "input", input);
  require_defined("equal", "other", other);
  if (!same_shape(input, other)) return truth(false, input.device());
  return tenon::all(tenon::eq(input, other));
}

std::tuple<Tensor, Tensor> std_mean(const Tensor& input, IntList dim, int64_t correction, bool keepdim) {
  const Tensor x = floating("std_mean", "input", input);
  return {tenon::std(x, dim, correction, keepdim), tenon::mean(x, dim, keepdim)};
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& input, IntList dim, int64_t correction, bool keepdim) {
  const Tensor x = floating("var_mean", "input", input);
  return {tenon::var(x, dim, correction, keepdim), tenon::mean(x, dim, keepdim)};
}

Tensor nanmean(const Tensor& input, IntList dim, bool keepdim, DType dtype) {
  require_defined("nanmean", "input", input);
  const Halves halves{&input};
  if (dtype == DType::none && halves.any())
    return halves.rounded(functors::nanmean(Halves::widened(input), dim, keepdim, dtype));
  const Tensor x = floating("nanmean", "input", dtype == DType::none ? input : tenon::cast(input, dtype));
  const Tensor counted = tenon::cast(tenon::logical_not(tenon::isnan(x)), x.dtype());
  const Tensor result = tenon::nansum(x, dim, keepdim) / tenon::sum(counted, dim, keepdim);
  return dtype == DType::none ? result : tenon::cast(result, dtype);
}

std::tuple<Tensor, Tensor> aminmax(const Tensor& input, std::optional<int64_t> dim, bool keepdim) {
  if (!dim) return {tenon::amin(input, IntList(), keepdim), tenon::amax(input, IntList(), keepdim)};
  return {tenon::amin(input, *dim, keepdim), tenon::amax(input, *dim, keepdim)};
}

}  // namespace tenon::functors
