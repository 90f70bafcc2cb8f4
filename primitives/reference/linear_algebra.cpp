// linear_algebra, in double precision by short methods: elimination, Householder's reflections, and Jacobi's rotations
// for singular values and eigenvalues (G. H. Golub, C. F. Van Loan: Matrix Computations, chapters 3, 5, 8).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "primitives/reference/call.h"

namespace tenon::reference {
namespace {

struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> elements;

  Matrix(int64_t m, int64_t n) : rows(m), columns(n), elements(static_cast<size_t>(m * n)) {}
  double& operator()(int64_t i, int64_t j) { return elements[static_cast<size_t>(i * columns + j)]; }
  double operator()(int64_t i, int64_t j) const { return elements[static_cast<size_t>(i * columns + j)]; }
};

Matrix identity(int64_t n) {
  Matrix one(n, n);
  for (int64_t i = 0; i < n; ++i) one(i, i) = 1;
  return one;
}

Matrix transposed(const Matrix& a) {
  Matrix t(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) t(j, i) = a(i, j);
  }
  return t;
}

bool is_finite(const Matrix& a) {
  return std::all_of(a.elements.begin(), a.elements.end(), [](double x) { return std::isfinite(x); });
}

void swap_rows(Matrix* a, int64_t i, int64_t j) {
  for (int64_t column = 0; i != j && column < a->columns; ++column) std::swap((*a)(i, column), (*a)(j, column));
}

// Replaces `a` by L and U. Returns, for each row, the row that it was swapped with.
std::vector<int64_t> factor(Matrix* a) {
  std::vector<int64_t> pivots;
  for (int64_t k = 0; k < std::min(a->rows, a->columns); ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < a->rows; ++i) {
      if (std::abs((*a)(i, k)) > std::abs((*a)(pivot, k))) pivot = i;
    }
    pivots.push_back(pivot);
    swap_rows(a, k, pivot);
    for (int64_t i = k + 1; i < a->rows && (*a)(k, k) != 0; ++i) {
      const double ratio = (*a)(i, k) /= (*a)(k, k);
      for (int64_t j = k + 1; j < a->columns; ++j) (*a)(i, j) -= ratio * (*a)(k, j);
    }
  }
  return pivots;
}

// Replaces b by the solution of a triangular system. Returns false if the diagonal has a 0.
bool substitute(const Matrix& a, bool upper, bool unit, Matrix* b) {
  const int64_t n = a.rows;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = upper ? n - 1 - step : step;
    if (!unit && a(i, i) == 0) return false;
    for (int64_t c = 0; c < b->columns; ++c) {
      double value = (*b)(i, c);
      for (int64_t j = upper ? i + 1 : 0; j < (upper ? n : i); ++j) value -= a(i, j) * (*b)(j, c);
      (*b)(i, c) = unit ? value : value / a(i, i);
    }
  }
  return true;
}

bool solve(Matrix a, Matrix* b) {
  const std::vector<int64_t> pivots = factor(&a);
  for (size_t k = 0; k < pivots.size(); ++k) swap_rows(b, static_cast<int64_t>(k), pivots[k]);
  return substitute(a, false, true, b) && substitute(a, true, false, b);
}

// Replaces `a`, the lower triangle of a symmetric matrix, by its lower Cholesky factor. Returns false if the matrix is
// not positive definite.
bool cholesky(Matrix* a) {
  for (int64_t j = 0; j < a->rows; ++j) {
    for (int64_t i = 0; i < j; ++i) (*a)(i, j) = 0;
    for (int64_t i = j; i < a->rows; ++i) {
      double value = (*a)(i, j);
      for (int64_t k = 0; k < j; ++k) value -= (*a)(i, k) * (*a)(j, k);
      if (i == j && !(value > 0)) return false;
      (*a)(i, j) = i == j ? std::sqrt(value) : value / (*a)(j, j);
    }
  }
  return true;
}

// Replaces `a` by R and returns the whole orthogonal matrix.
Matrix reflect(Matrix* a) {
  Matrix q = identity(a->rows);
  for (int64_t k = 0; k < std::min(a->rows, a->columns); ++k) {
    double below = 0;
    for (int64_t i = k + 1; i < a->rows; ++i) below += (*a)(i, k) * (*a)(i, k);
    if (below == 0) continue;  // already 0
    const double alpha = (*a)(k, k);
    const double beta = -std::copysign(std::sqrt(alpha * alpha + below), alpha);
    std::vector<double> v(static_cast<size_t>(a->rows));
    for (int64_t i = k + 1; i < a->rows; ++i) v[static_cast<size_t>(i)] = (*a)(i, k);
    v[static_cast<size_t>(k)] = alpha - beta;
    const double scale = 2 / (below + (alpha - beta) * (alpha - beta));
    const auto apply = [&](double sum, auto&& element) {
      for (int64_t i = k; i < a->rows; ++i) sum += v[static_cast<size_t>(i)] * element(i);
      for (int64_t i = k; i < a->rows; ++i) element(i) -= scale * sum * v[static_cast<size_t>(i)];
    };
    for (int64_t j = k; j < a->columns; ++j) apply(0, [&](int64_t i) -> double& { return (*a)(i, j); });
    for (int64_t j = 0; j < q.rows; ++j) apply(0, [&](int64_t i) -> double& { return q(j, i); });
    for (int64_t i = k + 1; i < a->rows; ++i) (*a)(i, k) = 0;
  }
  return q;
}

// Rotates columns p and q of `a`.
void rotate(Matrix* a, int64_t p, int64_t q, double c, double s) {
  for (int64_t i = 0; i < a->rows; ++i) {
    const double x = (*a)(i, p);
    const double y = (*a)(i, q);
    (*a)(i, p) = c * x - s * y;
    (*a)(i, q) = s * x + c * y;
  }
}

// Cosine and sine of the rotation that makes [[x, z], [z, y]] diagonal.
std::pair<double, double> rotation(double x, double y, double z) {
  const double theta = (y - x) / (2 * z);
  const double t = std::copysign(1 / (std::abs(theta) + std::sqrt(1 + theta * theta)), theta);
  const double c = 1 / std::sqrt(1 + t * t);
  return {c, t * c};
}

std::vector<int64_t> sorted_places(const std::vector<double>& values, bool descending) {
  std::vector<int64_t> places(values.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int64_t i, int64_t j) {
    const double a = values[static_cast<size_t>(i)];
    const double b = values[static_cast<size_t>(j)];
    return descending ? a > b : a < b;
  });
  return places;
}

// The columns of `a` at the positions `places`.
Matrix taken(const Matrix& a, const std::vector<int64_t>& places) {
  Matrix result(a.rows, static_cast<int64_t>(places.size()));
  for (int64_t i = 0; i < result.rows; ++i) {
    for (int64_t j = 0; j < result.columns; ++j) result(i, j) = a(i, places[static_cast<size_t>(j)]);
  }
  return result;
}

// Gives the columns of `u`, and the rows of `vh` if there is one, the sign that ep_api.h defines.
void set_signs(Matrix* u, Matrix* vh) {
  for (int64_t j = 0; j < u->columns; ++j) {
    double greatest = 0;
    for (int64_t i = 0; i < u->rows; ++i) greatest = std::max(greatest, std::abs((*u)(i, j)));
    int64_t first = 0;
    while (first + 1 < u->rows && std::abs((*u)(first, j)) <= greatest / 2) ++first;
    if ((*u)(first, j) >= 0) continue;
    for (int64_t i = 0; i < u->rows; ++i) (*u)(i, j) = -(*u)(i, j);
    for (int64_t i = 0; vh != nullptr && i < vh->columns; ++i) (*vh)(j, i) = -(*vh)(j, i);
  }
}

// The eigenvalues of the symmetric `a` in increasing order, and its eigenvectors as columns.
std::pair<std::vector<double>, Matrix> eigen(Matrix a) {
  const int64_t n = a.rows;
  Matrix vectors = identity(n);
  for (int sweep = 0; sweep < 60; ++sweep) {
    double off = 0;
    double all = 0;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = 0; q < n; ++q) (p == q ? all : off) += a(p, q) * a(p, q);
    }
    if (off <= 1e-34 * all) break;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        if (a(p, q) == 0) continue;
        const auto [c, s] = rotation(a(p, p), a(q, q), a(p, q));
        rotate(&a, p, q, c, s);
        a = transposed(a);
        rotate(&a, p, q, c, s);
        a = transposed(a);
        rotate(&vectors, p, q, c, s);
      }
    }
  }
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(a(i, i));
  const std::vector<int64_t> places = sorted_places(values, false);
  std::vector<double> sorted;
  for (int64_t place : places) sorted.push_back(values[static_cast<size_t>(place)]);
  vectors = taken(vectors, places);
  set_signs(&vectors, nullptr);
  return {sorted, vectors};
}

struct Svd {
  Matrix u;
  std::vector<double> s;
  Matrix vh;
};

double dot(const Matrix& a, int64_t p, int64_t q) {
  double sum = 0;
  for (int64_t i = 0; i < a.rows; ++i) sum += a(i, p) * a(i, q);
  return sum;
}

// Replaces column j of `u`, which is 0, by a unit vector that is orthogonal to the columns before it.
void complete(Matrix* u, int64_t j) {
  for (int64_t axis = 0; axis < u->rows; ++axis) {
    for (int64_t i = 0; i < u->rows; ++i) (*u)(i, j) = i == axis ? 1 : 0;
    for (int64_t before = 0; before < j; ++before) {
      const double part = dot(*u, before, j);
      for (int64_t i = 0; i < u->rows; ++i) (*u)(i, j) -= part * (*u)(i, before);
    }
    const double length = std::sqrt(dot(*u, j, j));
    if (length < 0.5 / std::sqrt(static_cast<double>(u->rows))) continue;
    for (int64_t i = 0; i < u->rows; ++i) (*u)(i, j) /= length;
    return;
  }
}

Svd svd(const Matrix& a) {
  if (a.rows < a.columns) {
    Svd other = svd(transposed(a));
    Svd result = {transposed(other.vh), other.s, transposed(other.u)};
    set_signs(&result.u, &result.vh);
    return result;
  }
  Matrix u = a;
  Matrix v = identity(a.columns);
  bool turned = true;
  for (int sweep = 0; sweep < 60 && turned; ++sweep) {
    turned = false;
    for (int64_t p = 0; p < a.columns; ++p) {
      for (int64_t q = p + 1; q < a.columns; ++q) {
        const double x = dot(u, p, p);
        const double y = dot(u, q, q);
        const double z = dot(u, p, q);
        if (std::abs(z) <= 1e-16 * std::sqrt(x * y)) continue;
        turned = true;
        const auto [c, s] = rotation(x, y, z);
        rotate(&u, p, q, c, s);
        rotate(&v, p, q, c, s);
      }
    }
  }
  std::vector<double> values;
  for (int64_t j = 0; j < u.columns; ++j) values.push_back(std::sqrt(dot(u, j, j)));
  const std::vector<int64_t> places = sorted_places(values, true);
  Svd result = {taken(u, places), {}, transposed(taken(v, places))};
  for (int64_t place : places) result.s.push_back(values[static_cast<size_t>(place)]);
  const double none = result.s.front() * 1e-15 * static_cast<double>(u.rows);
  for (int64_t j = 0; j < u.columns; ++j) {
    const double value = result.s[static_cast<size_t>(j)];
    if (value <= none) {
      complete(&result.u, j);
    } else {
      for (int64_t i = 0; i < u.rows; ++i) result.u(i, j) /= value;
    }
  }
  set_signs(&result.u, &result.vh);
  return result;
}

// The X of least norm that minimises the residual of a X = b.
Matrix least_squares(const Matrix& a, const Matrix& b, double epsilon) {
  const Svd parts = svd(a);
  Matrix x(a.columns, b.columns);
  const double least = parts.s.front() * epsilon * static_cast<double>(std::max(a.rows, a.columns));
  for (int64_t c = 0; c < b.columns; ++c) {
    for (size_t k = 0; k < parts.s.size(); ++k) {
      if (parts.s[k] <= least) continue;
      const auto column = static_cast<int64_t>(k);
      double part = 0;
      for (int64_t i = 0; i < a.rows; ++i) part += parts.u(i, column) * b(i, c);
      for (int64_t j = 0; j < a.columns; ++j) x(j, c) += parts.vh(column, j) * part / parts.s[k];
    }
  }
  return x;
}

double epsilon_of(DType dtype) {
  return dtype == DType::f64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}

// One matrix of the batch.
struct Item {
  const Call& call;
  int32_t batch_rank;
  const int64_t* batch;

  Matrix read(const Operand& operand) const {
    Matrix a(operand.dim(batch_rank), operand.dim(batch_rank + 1));
    each(operand, a, [&](const int64_t* at, double& element) { element = operand.get<double>(at); });
    return a;
  }
  void write(int32_t role, Matrix a) const {
    const Operand operand = call[role];
    if (!operand) return;
    a.columns = operand.dim(batch_rank + 1);  // vectors and Q may have fewer columns
    each(operand, a, [&](const int64_t* at, double& element) { operand.set(at, element); });
  }
  void write(int32_t role, const std::vector<double>& values) const {
    const Operand operand = call[role];
    if (!operand) return;
    int64_t at[EP_MAX_RANK] = {};
    std::copy_n(batch, batch_rank, at);
    for (size_t i = 0; i < values.size(); ++i) {
      if (values.size() > 1 || operand.rank() > batch_rank) at[batch_rank] = static_cast<int64_t>(i);
      operand.set(at, values[i]);
    }
  }

  // Writes 0 to all results.
  void clear() const {
    for (uint32_t i = 0; call.desc.operands[i].role != EP_ROLE_SRC; ++i) {
      const Operand operand = call[call.desc.operands[i].role];
      const auto sides = operand.dims().subspan(static_cast<size_t>(std::min(batch_rank, operand.rank())));
      for_each_index(sides, [&](const int64_t* side) {
        int64_t at[EP_MAX_RANK] = {};
        std::copy_n(batch, std::min(batch_rank, operand.rank()), at);
        std::copy_n(side, sides.size(), at + batch_rank);
        operand.set(at, 0.0);
      });
    }
  }

 private:
  template <class Visit>
  void each(const Operand& operand, Matrix& a, Visit&& visit) const {
    int64_t at[EP_MAX_RANK] = {};
    std::copy_n(batch, batch_rank, at);
    for (int64_t i = 0; i < operand.dim(batch_rank); ++i) {
      for (int64_t j = 0; j < operand.dim(batch_rank + 1); ++j) {
        at[batch_rank] = i;
        at[batch_rank + 1] = j;
        visit(at, a(i, j));
      }
    }
  }
};

// The first `columns` columns of `a`.
Matrix leading(const Matrix& a, int64_t columns) {
  std::vector<int64_t> places(static_cast<size_t>(columns));
  std::iota(places.begin(), places.end(), 0);
  return taken(a, places);
}

Matrix mirrored(Matrix a, bool upper) {
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < i; ++j) (upper ? a(i, j) : a(j, i)) = upper ? a(j, i) : a(i, j);
  }
  return a;
}

void write_determinant(const Item& item, Matrix a, bool logarithm) {
  const std::vector<int64_t> pivots = factor(&a);
  double sign = 1;
  double product = 1;
  double sum = 0;
  for (int64_t i = 0; i < a.rows; ++i) {
    const double turn = pivots[static_cast<size_t>(i)] != i ? -1 : 1;
    sign *= turn * (a(i, i) == 0 ? 0 : std::copysign(1.0, a(i, i)));
    product *= turn * a(i, i);
    sum += std::log(std::abs(a(i, i)));
  }
  item.write(EP_ROLE_DST, std::vector<double>{logarithm ? sign : product});
  if (logarithm) item.write(EP_ROLE_DST_LOG, std::vector<double>{sum});
}

void write_lu(const Item& item, Matrix a) {
  const std::vector<int64_t> pivots = factor(&a);
  item.write(EP_ROLE_DST, a);
  const Operand operand = item.call[EP_ROLE_DST_PIVOTS];
  int64_t at[EP_MAX_RANK] = {};
  std::copy_n(item.batch, item.batch_rank, at);
  for (size_t i = 0; i < pivots.size(); ++i) {
    at[item.batch_rank] = static_cast<int64_t>(i);
    operand.set<int64_t>(at, pivots[i] + 1);
  }
}

void write_qr(const Item& item, Matrix a) {
  const Matrix q = reflect(&a);
  const int64_t columns = item.call[EP_ROLE_DST].dim(item.batch_rank + 1);
  item.write(EP_ROLE_DST, leading(q, columns));
  item.write(EP_ROLE_DST_R, a);
}

// Returns false if the matrix is bad.
bool run_item(const Item& item) {
  const ep_linear_algebra_attributes& at = item.call.desc.attributes.linear_algebra;
  const bool upper = (at.flags & EP_LINEAR_FLAG_UPPER) != 0;
  Matrix a = item.read(item.call[EP_ROLE_SRC]);
  const Operand right = item.call[EP_ROLE_SRC_B];
  Matrix b = right ? item.read(right) : identity(a.rows);
  bool good = true;
  switch (at.op) {
    case EP_LINEAR_SOLVE:
    case EP_LINEAR_INVERSE: good = solve(a, &b); break;
    case EP_LINEAR_TRIANGULAR_SOLVE: good = substitute(a, upper, (at.flags & EP_LINEAR_FLAG_UNIT) != 0, &b); break;
    case EP_LINEAR_LEAST_SQUARES:
      if (!is_finite(a) || !is_finite(b)) return false;
      b = least_squares(a, b, epsilon_of(right.dtype()));
      break;
    case EP_LINEAR_CHOLESKY:
      b = upper ? transposed(a) : a;
      good = cholesky(&b);
      if (upper) b = transposed(b);
      break;
    case EP_LINEAR_DETERMINANT: write_determinant(item, a, false); return true;
    case EP_LINEAR_LOG_DETERMINANT: write_determinant(item, a, true); return true;
    case EP_LINEAR_LU: write_lu(item, a); return true;
    case EP_LINEAR_QR: write_qr(item, a); return true;
    case EP_LINEAR_SVD: {
      if (!is_finite(a)) return false;
      const Svd parts = svd(a);
      item.write(EP_ROLE_DST, parts.s);
      item.write(EP_ROLE_DST_VECTORS, parts.u);
      item.write(EP_ROLE_DST_VECTORS_H, parts.vh);
      return true;
    }
    default: {
      a = mirrored(a, upper);
      if (!is_finite(a)) return false;
      const auto [values, vectors] = eigen(a);
      item.write(EP_ROLE_DST, values);
      item.write(EP_ROLE_DST_VECTORS, vectors);
      return true;
    }
  }
  if (good) item.write(EP_ROLE_DST, b);
  return good;
}

}  // namespace

void run_linear_algebra(Call& call) {
  const Operand src = call[EP_ROLE_SRC];
  const int32_t batch_rank = src.rank() - 2;
  int64_t number = 0;
  for_each_index(src.dims().first(static_cast<size_t>(batch_rank)), [&](const int64_t* batch) {
    const Item item = {call, batch_rank, batch};
    if (!run_item(item)) {
      call.report(EP_FAULT_BAD_MATRIX, EP_ROLE_SRC, number, 0);
      item.clear();
    }
    ++number;
  });
}

}  // namespace tenon::reference
