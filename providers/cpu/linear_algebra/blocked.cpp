#include "providers/cpu/linear_algebra/blocked.h"

#include <dnnl.h>

#include <algorithm>
#include <new>

#include "providers/cpu/linear_algebra/lapack.h"
#include "providers/cpu/linear_algebra/triangle.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int leaf = triangle_side;  // sides that are not halved

// Nanoseconds of a product of m x k and k x n, or of as many multiplications, on one thread.
int64_t time_of(int m, int n, int k) { return int64_t{1} * m * n * k / 30; }

// About half of n, more than 0 and less than n, which is more than a leaf.
int half(int n) { return (n / 2 + leaf - 1) / leaf * leaf; }

// c -= a * b. oneDNN takes rows: the transposes.
void subtract_product(const MatrixPart& a, const MatrixPart& b, const MatrixPart& c, const Workers& workers) {
  const OpenMpWidth regions(workers.count);
  const dnnl_status_t status = dnnl_sgemm('N', 'N', c.columns, c.rows, a.columns, -1.0F, b.data, b.stride, a.data,
                                          a.stride, 1.0F, c.data, c.stride);
  if (status != dnnl_success) throw std::bad_alloc();  // it has no room to pack factors
}

// Calls body(begin, end) for ranges that make up `count` and take about `nanoseconds` together.
template <class Body>
void share(int32_t width, int64_t count, int64_t nanoseconds, const Body& body) {
  if (width == 1) return body(int64_t{0}, count);
  run_parts(width, nanoseconds,
            [&](int32_t part, int32_t parts) { body(count * part / parts, count * (part + 1) / parts); });
}

void swap_on(const MatrixPart& a, const int* pivots, int count, const Workers& workers) {
  share(workers.count, a.columns, int64_t{a.columns} * count / 2, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      float* const column = a.data + j * a.stride;
      for (int i = 0; i < count; ++i) std::swap(column[i], column[pivots[i] - 1]);
    }
  });
}

// `triangle` is square.
void solve_on(bool upper, bool unit, const MatrixPart& triangle, const MatrixPart& b, const Workers& workers) {
  const int n = triangle.rows;
  if (n <= leaf) {
    const TriangleKernel kernel = triangle_kernel(workers.simd);
    share(workers.count, b.columns, time_of(n, n, b.columns), [&](int64_t begin, int64_t end) {
      kernel({triangle.data, triangle.stride, upper, unit, b.data + begin * b.stride, b.stride, n, end - begin});
    });
    return;
  }
  const int first = half(n);
  const int second = n - first;
  const MatrixPart top = b.part(0, 0, first, b.columns);
  const MatrixPart bottom = b.part(first, 0, second, b.columns);
  const MatrixPart low = triangle.part(first, first, second, second);
  if (upper) solve_on(upper, unit, low, bottom, workers);
  if (upper) subtract_product(triangle.part(0, first, first, second), bottom, top, workers);
  solve_on(upper, unit, triangle.part(0, 0, first, first), top, workers);
  if (upper) return;
  subtract_product(triangle.part(first, 0, second, first), top, bottom, workers);
  solve_on(upper, unit, low, bottom, workers);
}

int factor_on(const MatrixPart& a, int* pivots, const Workers& workers) {
  const int shorter = std::min(a.rows, a.columns);
  int info = 0;
  if (shorter <= leaf) {
    Lapack<float>::getrf(&a.rows, &a.columns, a.data, &a.stride, pivots, &info);
    return info;
  }
  const int first = half(shorter);
  const MatrixPart left = a.part(0, 0, a.rows, first);
  const MatrixPart right = a.part(0, first, a.rows, a.columns - first);
  const MatrixPart top = right.part(0, 0, first, right.columns);
  const MatrixPart rest = right.part(first, 0, a.rows - first, right.columns);
  info = factor_on(left, pivots, workers);
  swap_on(right, pivots, first, workers);
  solve_on(false, true, left.part(0, 0, first, first), top, workers);
  subtract_product(left.part(first, 0, rest.rows, first), top, rest, workers);
  const int later = factor_on(rest, pivots + first, workers);
  swap_on(left.part(first, 0, rest.rows, first), pivots + first, shorter - first, workers);
  for (int i = first; i < shorter; ++i) pivots[i] += first;
  return info != 0 ? info : later != 0 ? later + first : 0;
}

}  // namespace

int factor_by_halves(const MatrixPart& a, int* pivots, const Workers& workers) {
  const WideLease lease(workers.count, time_of(a.rows, a.columns, std::min(a.rows, a.columns)) / 2);
  return factor_on(a, pivots, {workers.simd, lease.width()});
}

void swap_rows(const MatrixPart& a, const int* pivots, int count, const Workers& workers) {
  const WideLease lease(workers.count, int64_t{a.columns} * count / 2);
  swap_on(a, pivots, count, {workers.simd, lease.width()});
}

void solve_by_halves(bool upper, bool unit, const MatrixPart& triangle, const MatrixPart& b, const Workers& workers) {
  const WideLease lease(workers.count, time_of(triangle.rows, b.columns, triangle.rows) / 2);
  solve_on(upper, unit, triangle, b, {workers.simd, lease.width()});
}

}  // namespace tenon::provider::cpu
