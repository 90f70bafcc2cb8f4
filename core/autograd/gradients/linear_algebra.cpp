// Gradients of linear algebra. M. B. Giles: Collected matrix derivative results for forward and reverse mode
// algorithmic differentiation, 2008.
#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/op_call.h"
#include "core/ops/operators.h"

namespace tenon::gradients {
namespace {

Tensor turned(const Tensor& a) { return tenon::transpose(a, -2, -1); }

int32_t flags_of(const autograd::Backward& b) { return b.attributes<LinearAlgebraAttributes>().how.flags; }

Tensor places(const Tensor& a) { return tenon::arange(Scalar(a.dims()[a.rank() - 1]), DType::i64, a.device()); }

// `a` with zeros above the diagonal (or below it), and also on the diagonal if `strict`.
Tensor triangle(const Tensor& a, bool upper, bool strict) {
  const Tensor rows = tenon::unsqueeze(places(a), 1);
  const Tensor columns = places(a);
  const Tensor kept = upper ? (strict ? tenon::gt(columns, rows) : tenon::ge(columns, rows))
                            : (strict ? tenon::lt(columns, rows) : tenon::le(columns, rows));
  return tenon::where(kept, a, 0);
}

// Turns one number per matrix into a tensor that broadcasts against matrices.
Tensor per_matrix(const Tensor& numbers) { return tenon::unsqueeze(tenon::unsqueeze(numbers, -1), -1); }

// False if no determinant is 0. Reads the determinants only if that needs no wait.
bool may_be_singular(const Tensor& determinants) {
  if (!determinants.device().synchronous() || !current_interpreter().host_value_known(determinants)) return true;
  return tenon::any(tenon::eq(determinants, 0)).item<bool>();
}

// For each pair i, j: the product of all numbers of `d` [.., n] except i and j, as [.., n, n].
Tensor products_without(const Tensor& d) {
  const Tensor columns = places(d);
  const Tensor later = tenon::gt(columns, tenon::unsqueeze(columns, 1));
  const Tensor before = tenon::cumprod(d, -1, DType::none, true);
  const Tensor behind = tenon::cumprod(d, -1, DType::none, true, true);
  const Tensor between = tenon::cumprod(tenon::where(later, tenon::unsqueeze(d, -2), 1), -1, DType::none, true);
  const Tensor upper = tenon::unsqueeze(before, -1) * between * tenon::unsqueeze(behind, -2);
  const Tensor one = tenon::unsqueeze(before * behind, -1);
  return tenon::where(later, upper, tenon::where(tenon::transpose(later, 0, 1), turned(upper), one));
}

// The cofactors of `a`, also correct for singular matrices, with correct first derivatives. U and V of a singular value
// decomposition are constants, and B = U^T A V is diagonal. To first order, its cofactors are products over the
// diagonal: all elements except b_ii, and -b_ji times all except b_ii and b_jj.
Tensor cofactors(const Tensor& a) {
  const auto [values, u, v] = tenon::linalg_svd_reduced(a.detach());
  const Tensor sign = tenon::linalg_det(u) * tenon::linalg_det(v);
  const Tensor b = tenon::matmul(tenon::matmul(turned(u), a), turned(v));
  const Tensor products = products_without(tenon::diagonal(b, 0, -2, -1));
  const Tensor columns = places(a);
  const Tensor inner = tenon::where(tenon::eq(columns, tenon::unsqueeze(columns, 1)), products, -turned(b) * products);
  return per_matrix(sign) * tenon::matmul(u, tenon::matmul(inner, v));
}

// `numbers` on the diagonals of matrices.
Tensor diagonals(const Tensor& numbers) {
  const Tensor columns = places(numbers);
  return tenon::where(tenon::eq(columns, tenon::unsqueeze(columns, 1)), tenon::unsqueeze(numbers, -2), 0);
}

// (X - X^T) / (s_j^2 - s_i^2), 0 where the singular values are equal.
Tensor turning(const Tensor& x, const Tensor& values) {
  const Tensor columns = tenon::unsqueeze(values, -2), rows = tenon::unsqueeze(values, -1);
  const Tensor gaps = (columns - rows) * (columns + rows);
  const Tensor none = tenon::eq(gaps, 0);
  return tenon::where(none, 0, (x - turned(x)) / tenon::where(none, 1, gaps));
}

// The gradient of A from the gradient of its pseudo-inverse P. G. H. Golub and V. Pereyra: The differentiation of
// pseudo-inverses, 1973.
Tensor of_pseudo_inverse(const Tensor& a, const Tensor& p, const Tensor& grad) {
  const Tensor g = turned(grad);
  const Tensor k = tenon::matmul(g, p);
  const Tensor kp = tenon::matmul(k, turned(p));
  const Tensor beside = tenon::matmul(tenon::matmul(turned(p), p), g - tenon::matmul(k, a));
  return kp - turned(tenon::matmul(p, k)) - tenon::matmul(a, tenon::matmul(p, kp)) + beside;
}

// `rest` without its component in the column space of `basis`.
Tensor beside(const Tensor& rest, const Tensor& basis) {
  return rest - tenon::matmul(basis, tenon::matmul(turned(basis), rest));
}

// x R^-T for an upper triangular R.
Tensor over_triangle(const Tensor& x, const Tensor& r) {
  return turned(tenon::linalg_solve_triangular(r, turned(x), true));
}

// The gradient of A = Q R, with R square, from the gradients of Q and R; either may be undefined.
Tensor of_square_qr(const Tensor& q, const Tensor& r, const Tensor& of_q, const Tensor& of_r) {
  Tensor inner;
  if (of_r.defined()) inner = tenon::matmul(of_r, turned(r));
  if (of_q.defined()) {
    const Tensor part = tenon::matmul(turned(q), of_q);
    inner = inner.defined() ? inner - part : -part;
  }
  const Tensor upper = triangle(inner, true, true);
  const Tensor symmetric = upper + turned(triangle(inner, true, false));
  const Tensor whole = tenon::matmul(q, symmetric);
  return over_triangle(of_q.defined() ? whole + of_q : whole, r);
}

}  // namespace

// With P the lower triangle of L^T G and its diagonal halved: the symmetric part of L^-T P L^-1.
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
  const Tensor slope = may_be_singular(b.result())
                           ? per_matrix(b.grad()) * cofactors(b.input(0))
                           : per_matrix(b.grad() * b.result()) * turned(tenon::linalg_inv(b.input(0)));
  b.give(0, slope);
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

void linalg_pinv(const autograd::Backward& b) { b.give(0, of_pseudo_inverse(b.input(0), b.result(), b.grad())); }

// X is the pseudo-inverse of A times B.
void linalg_lstsq(const autograd::Backward& b) {
  const Tensor a = b.input(0);
  const Tensor p = tenon::linalg_pinv(a);
  if (b.wants(0)) b.give(0, of_pseudo_inverse(a, p, tenon::matmul(b.grad(), turned(b.input(1)))));
  if (b.wants(1)) b.give(1, tenon::matmul(turned(p), b.grad()));
}

// A wide matrix is [A1, A2] with A1 = Q R1 and A2 = Q R2.
void linalg_qr(const autograd::Backward& b) {
  const Tensor q = b.result(0), r = b.result(1);
  const int64_t m = r.dim(-2), n = r.dim(-1);
  if (m > n) {
    throw Error(Subject{"linalg_qr"}, Code::unsupported,
                "with mode 'complete' a matrix of more rows than columns has no gradient.",
                "Call it with mode 'reduced'.");
  }
  const Tensor of_q = b.grad(0), of_r = b.grad(1);
  if (m == n) return b.give(0, of_square_qr(q, r, of_q, of_r));
  const auto first = [&](const Tensor& x) { return tenon::narrow(x, -1, 0, m); };
  const auto second = [&](const Tensor& x) { return tenon::narrow(x, -1, m, n - m); };
  if (!of_r.defined()) {
    const Tensor left = of_square_qr(q, first(r), of_q, Tensor());
    return b.give(0, tenon::pad(left, {0, n - m}));
  }
  const Tensor by_second = tenon::matmul(tenon::matmul(q, second(r)), turned(second(of_r)));
  const Tensor left = of_square_qr(q, first(r), of_q.defined() ? of_q + by_second : by_second, first(of_r));
  b.give(0, tenon::concat({left, tenon::matmul(q, second(of_r))}, -1));
}

// J. Townsend: Differentiating the singular value decomposition, 2016. The component of the gradient outside the column
// spaces of U and V also contributes.
void linalg_svd_reduced(const autograd::Backward& b) {
  const Tensor values = b.result(0), u = b.result(1), v = turned(b.result(2));
  const Tensor over = tenon::unsqueeze(values, -2);
  Tensor inner = b.grad(0).defined() ? diagonals(b.grad(0)) : tenon::zeros_like(tenon::matmul(turned(u), u));
  if (b.grad(1).defined()) inner = inner + turning(tenon::matmul(turned(u), b.grad(1)), values) * over;
  const Tensor of_v = b.grad(2).defined() ? turned(b.grad(2)) : Tensor();
  if (of_v.defined()) {
    inner = inner + tenon::unsqueeze(values, -1) * turning(tenon::matmul(turned(v), of_v), values);
  }
  Tensor whole = tenon::matmul(tenon::matmul(u, inner), turned(v));
  const int64_t count = values.dim(-1);
  if (b.grad(1).defined() && u.dim(-2) > count) {
    whole = whole + tenon::matmul(beside(b.grad(1), u) / over, turned(v));
  }
  if (of_v.defined() && v.dim(-2) > count) whole = whole + tenon::matmul(u, turned(beside(of_v, v) / over));
  b.give(0, whole);
}

// U diag(g) V^T. V holds the eigenvectors of A^T A, which have gradients, and U is A V / s. Computed in f64, since
// squaring loses half of the digits.
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

// V (diag(g) + (V^T G) / (w_j - w_i)) V^T. The quotient is 0 on the diagonal, where w_j = w_i.
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
    // Where the gap is 0, divide by another number, so that the gradient of the quotient is finite too.
    const Tensor none = tenon::eq(gaps, 0);
    const Tensor quotients = tenon::matmul(turned(v), b.grad(1)) / tenon::where(none, 1, gaps);
    const Tensor of_vectors = tenon::where(none, 0, quotients);
    inner = inner.defined() ? inner + of_vectors : of_vectors;
  }
  const Tensor whole = tenon::matmul(v, tenon::matmul(inner, turned(v)));
  b.give(0, (whole + turned(whole)) * 0.5);
}

}  // namespace tenon::gradients
