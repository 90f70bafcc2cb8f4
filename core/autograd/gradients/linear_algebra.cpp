// Linear algebra. M. B. Giles: Collected matrix derivative results for forward and reverse mode algorithmic
// differentiation, 2008.
#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/operators.h"

namespace tenon::gradients {
namespace {

Tensor turned(const Tensor& a) { return tenon::transpose(a, -2, -1); }

int32_t flags_of(const autograd::Backward& b) { return b.attributes<LinearAlgebraAttributes>().how.flags; }

Tensor places(const Tensor& a) { return tenon::arange(Scalar(a.dims()[a.rank() - 1]), DType::i64, a.device()); }

// `a` with zeros above the diagonal (or below it), and on it too if `strict`.
Tensor triangle(const Tensor& a, bool upper, bool strict) {
  const Tensor rows = tenon::unsqueeze(places(a), 1);
  const Tensor columns = places(a);
  const Tensor kept = upper ? (strict ? tenon::gt(columns, rows) : tenon::ge(columns, rows))
                            : (strict ? tenon::lt(columns, rows) : tenon::le(columns, rows));
  return tenon::where(kept, a, 0);
}

// One number per matrix as a tensor that broadcasts against matrices.
Tensor per_matrix(const Tensor& numbers) { return tenon::unsqueeze(tenon::unsqueeze(numbers, -1), -1); }

}  // namespace

// With P the lower triangle of L^T G, its diagonal halved: the symmetric part of L^-T P L^-1.
void linalg_cholesky(const autograd::Backward& b) {
  const bool upper = (flags_of(b) & EP_LINEAR_FLAG_UPPER) != 0;
  const Tensor l = upper ? turned(b.result()) : b.result();
  const Tensor grad = upper ? turned(b.grad()) : b.grad();
  const Tensor product = tenon::matmul(turned(l), grad);
  const Tensor p = (triangle(product, false, false) + triangle(product, false, true)) * 0.5;
  const Tensor left = tenon::linalg_solve_triangular(turned(l), p, true);
  const Tensor both = turned(tenon::linalg_solve_triangular(turned(l), turned(left), true));
  b.give(0, (both + turned(both)) * 0.5);
}

void linalg_inv(const autograd::Backward& b) {
  const Tensor y = turned(b.result());
  b.give(0, -tenon::matmul(y, tenon::matmul(b.grad(), y)));
}

void linalg_det(const autograd::Backward& b) {
  b.give(0, per_matrix(b.grad() * b.result()) * turned(tenon::linalg_inv(b.input(0))));
}

void linalg_slogdet(const autograd::Backward& b) {
  if (!b.grad(1).defined()) return b.give(0, tenon::zeros_like(b.input(0)));
  b.give(0, per_matrix(b.grad(1)) * turned(tenon::linalg_inv(b.input(0))));
}

void linalg_solve(const autograd::Backward& b) {
  const Tensor of_right = tenon::linalg_solve(turned(b.input(0)), b.grad());
  if (b.wants(1)) b.give(1, of_right);
  if (b.wants(0)) b.give(0, -tenon::matmul(of_right, turned(b.result())));
}

void linalg_solve_triangular(const autograd::Backward& b) {
  const bool upper = (flags_of(b) & EP_LINEAR_FLAG_UPPER) != 0;
  const bool unit = (flags_of(b) & EP_LINEAR_FLAG_UNIT) != 0;
  const Tensor of_right = tenon::linalg_solve_triangular(turned(b.input(0)), b.grad(), !upper, unit);
  if (b.wants(1)) b.give(1, of_right);
  if (b.wants(0)) b.give(0, triangle(-tenon::matmul(of_right, turned(b.result())), upper, unit));
}

// U diag(g) V^T. V has the eigenvectors of A^T A, whose gradients there are, and U is A V / s; in f64, since squares
// lose half of the digits.
void linalg_svdvals(const autograd::Backward& b) {
  const Tensor given = b.input(0);
  const bool wide = given.dim(-2) < given.dim(-1);
  const Tensor a = tenon::cast(wide ? turned(given) : given, DType::f64);
  const Tensor v = tenon::flip(std::get<1>(tenon::linalg_eigh(tenon::matmul(turned(a), a))), -1);
  const Tensor values = tenon::cast(b.result(), DType::f64);
  const Tensor none = tenon::eq(values, 0);
  const Tensor factors = tenon::where(none, 0, tenon::cast(b.grad(), DType::f64) / tenon::where(none, 1, values));
  const Tensor whole = tenon::matmul(tenon::matmul(a, v) * tenon::unsqueeze(factors, -2), turned(v));
  b.give(0, tenon::cast(wide ? turned(whole) : whole, given.dtype()));
}

// V diag(g) V^T.
void linalg_eigvalsh(const autograd::Backward& b) {
  const Tensor v = std::get<1>(tenon::linalg_eigh(b.input(0), (flags_of(b) & EP_LINEAR_FLAG_UPPER) != 0));
  const Tensor whole = tenon::matmul(v * tenon::unsqueeze(b.grad(), -2), turned(v));
  b.give(0, (whole + turned(whole)) * 0.5);
}

// V (diag(g) + (V^T G) / (w_j - w_i)) V^T, the quotient 0 on the diagonal, where w_j = w_i.
void linalg_eigh(const autograd::Backward& b) {
  const Tensor values = b.result(0);
  const Tensor v = b.result(1);
  Tensor inner;
  if (b.grad(0).defined()) {
    const Tensor one = tenon::eye(values.dims()[values.rank() - 1], std::nullopt, values.dtype(), values.device());
    inner = tenon::unsqueeze(b.grad(0), -1) * one;
  }
  if (b.grad(1).defined()) {
    const Tensor gaps = tenon::unsqueeze(values, -2) - tenon::unsqueeze(values, -1);
    // Where there is no gap the quotient has a divisor all the same, so that its own gradient is finite.
    const Tensor none = tenon::eq(gaps, 0);
    const Tensor quotients = tenon::matmul(turned(v), b.grad(1)) / tenon::where(none, 1, gaps);
    const Tensor of_vectors = tenon::where(none, 0, quotients);
    inner = inner.defined() ? inner + of_vectors : of_vectors;
  }
  const Tensor whole = tenon::matmul(v, tenon::matmul(inner, turned(v)));
  b.give(0, (whole + turned(whole)) * 0.5);
}

}  // namespace tenon::gradients
