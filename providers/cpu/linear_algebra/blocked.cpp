#include "providers/cpu/linear_algebra/blocked.h"

#include <dnnl.h>

#include <algorithm>
#include <new>
#include <vector>

#include "providers/cpu/linear_algebra/lapack.h"
#include "providers/cpu/linear_algebra/triangle.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int leaf = triangle_side;  // triangles of at most this side are not halved

// Estimated nanoseconds of a product of m x k and k x n on one thread.
int64_t time_of(int m, int n, int k) { return int64_t{1} * m * n * k / 30; }

// Returns about half of n, for n greater than a leaf. The result is more than 0 and less than n.
int half(int n) { return (n / 2 + leaf - 1) / leaf * leaf; }

// c = scale * a * b + kept * c, with a factor transposed if its flag is set. oneDNN expects row-major matrices, so it
// computes the transposed product.
void multiply(const MatrixPart& a, bool turn_a, const MatrixPart& b, bool turn_b, float scale, float kept,
              const MatrixPart& c, const Workers& workers) {
  const OpenMpWidth regions(workers.count);
  const dnnl_status_t status =
      dnnl_sgemm(turn_b ? 'T' : 'N', turn_a ? 'T' : 'N', c.columns, c.rows, turn_a ? a.rows : a.columns, scale, b.data,
                 b.stride, a.data, a.stride, kept, c.data, c.stride);
  if (status != dnnl_success) throw std::bad_alloc();  // oneDNN has no memory to pack the factors
}

// c -= a * b.
void subtract_product(const MatrixPart& a, const MatrixPart& b, const MatrixPart& c, const Workers& workers) {
  multiply(a, false, b, false, -1.0F, 1.0F, c, workers);
}

// Calls body(begin, end) for ranges that cover [0, count) and take about `nanoseconds` in total.
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

// `triangle` must be square.
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

// The reflections of a block of columns as I - V T V', where V has a unit diagonal and zeros above it.
class Reflections {
 public:
  // `panel` is the result of geqrf for the block. `lines` is the most columns or rows that the reflections will be
  // applied to. `room` holds V, T and two products, and is reused for the next block.
  Reflections(const MatrixPart& panel, const float* scales, int lines, std::vector<float>* room, const Workers& workers)
      : workers_(workers) {
    const int n = panel.columns;
    const size_t square = static_cast<size_t>(n) * n;
    room->resize(static_cast<size_t>(panel.rows) * n + 2 * square + 2 * static_cast<size_t>(n) * lines);
    v_ = {room->data(), panel.rows, n, panel.rows};
    t_ = {v_.data + static_cast<ptrdiff_t>(panel.rows) * n, n, n, n};
    products_ = t_.data + 2 * square;
    for (int j = 0; j < n; ++j) {
      float* const column = v_.data + static_cast<ptrdiff_t>(j) * v_.stride;
      const float* const from = panel.data + static_cast<ptrdiff_t>(j) * panel.stride;
      std::fill_n(column, j, 0.0F);
      column[j] = 1;
      std::copy(from + j + 1, from + panel.rows, column + j + 1);
    }
    // Computes T column by column: its diagonal holds the scales; above it, T(j) = -scale * T * V' * v(j).
    const MatrixPart among = {t_.data + square, n, n, n};
    multiply(v_, true, v_, false, 1.0F, 0.0F, among, workers);
    std::fill_n(t_.data, square, 0.0F);
    for (int j = 0; j < n; ++j) {
      float* const column = t_.data + static_cast<ptrdiff_t>(j) * n;
      for (int k = 0; k < j; ++k) {
        const float factor = -scales[j] * among.data[k + static_cast<ptrdiff_t>(j) * n];
        const float* const before = t_.data + static_cast<ptrdiff_t>(k) * n;
        for (int i = 0; i <= k; ++i) column[i] += factor * before[i];
      }
      column[j] = scales[j];
    }
  }

  // b -= V T V' b; with `turned`, T' replaces T, which applies the reflections in reverse order.
  void apply(bool turned, const MatrixPart& b) const {
    const int n = v_.columns;
    const MatrixPart lengths = {products_, n, b.columns, n};
    const MatrixPart scaled = {products_ + static_cast<ptrdiff_t>(n) * b.columns, n, b.columns, n};
    multiply(v_, true, b, false, 1.0F, 0.0F, lengths, workers_);
    multiply(t_, turned, lengths, false, 1.0F, 0.0F, scaled, workers_);
    subtract_product(v_, scaled, b, workers_);
  }

  // b -= b V T' V', which applies the reflections to b from the right.
  void apply_from_right(const MatrixPart& b) const {
    const int n = v_.columns;
    const MatrixPart lengths = {products_, b.rows, n, b.rows};
    const MatrixPart scaled = {products_ + static_cast<ptrdiff_t>(n) * b.rows, b.rows, n, b.rows};
    multiply(b, false, v_, false, 1.0F, 0.0F, lengths, workers_);
    multiply(lengths, false, t_, true, 1.0F, 0.0F, scaled, workers_);
    multiply(scaled, false, v_, true, -1.0F, 1.0F, b, workers_);
  }

 private:
  MatrixPart v_{}, t_{};
  float* products_ = nullptr;
  const Workers& workers_;
};

}  // namespace

int factor_by_halves(const MatrixPart& a, int* pivots, const Workers& workers) {
  const WideLease lease(workers.count, time_of(a.rows, a.columns, std::min(a.rows, a.columns)) / 2);
  return factor_on(a, pivots, {workers.simd, lease.width()});
}

void swap_rows(const MatrixPart& a, const int* pivots, int count, const Workers& workers) {
  const WideLease lease(workers.count, int64_t{a.columns} * count / 2);
  swap_on(a, pivots, count, {workers.simd, lease.width()});
}

void factor_by_blocks(const MatrixPart& a, const MatrixPart& q, const Workers& given) {
  const int shorter = std::min(a.rows, a.columns);
  const WideLease lease(given.count, time_of(a.rows, std::max(a.columns, q.columns), shorter));
  const Workers workers = {given.simd, lease.width()};
  const int most = std::max(a.columns, q.columns);
  std::vector<float> scales(static_cast<size_t>(shorter)), work(static_cast<size_t>(leaf) * leaf), room;
  const auto block = [&](int at) { return a.part(at, at, a.rows - at, std::min(leaf, shorter - at)); };
  for (int at = 0; at < shorter; at += leaf) {
    const MatrixPart panel = block(at);
    const int length = static_cast<int>(work.size());
    int info = 0;
    Lapack<float>::geqrf(&panel.rows, &panel.columns, panel.data, &panel.stride, scales.data() + at, work.data(),
                         &length, &info);
    const int behind = at + panel.columns;
    if (behind == a.columns) break;
    const Reflections reflections(panel, scales.data() + at, most, &room, workers);
    reflections.apply(true, a.part(at, behind, panel.rows, a.columns - behind));
  }
  for (int j = 0; j < q.columns; ++j) {
    float* const column = q.data + static_cast<ptrdiff_t>(j) * q.stride;
    std::fill_n(column, q.rows, 0.0F);
    if (j < q.rows) column[j] = 1;
  }
  for (int at = (shorter - 1) / leaf * leaf; at >= 0; at -= leaf) {
    const Reflections reflections(block(at), scales.data() + at, most, &room, workers);
    reflections.apply(false, q.part(at, at, a.rows - at, q.columns - at));
  }
}

void reflect_by_blocks(const MatrixPart& reflections, const float* scales, Reflect how, const MatrixPart& b,
                       const Workers& given) {
  const int count = std::min(reflections.rows, reflections.columns);
  const int blocks = (count + leaf - 1) / leaf;
  const int lines = how == Reflect::turned_from_right ? b.rows : b.columns;
  const WideLease lease(given.count, 2 * time_of(reflections.rows, lines, count));
  const Workers workers = {given.simd, lease.width()};
  std::vector<float> room;
  for (int i = 0; i < blocks; ++i) {
    const int at = (how == Reflect::turned ? i : blocks - 1 - i) * leaf;
    const int rows = reflections.rows - at;
    const Reflections block(reflections.part(at, at, rows, std::min(leaf, count - at)), scales + at, lines, &room,
                            workers);
    if (how == Reflect::turned_from_right) {
      block.apply_from_right(b.part(0, at, lines, rows));
    } else {
      block.apply(how == Reflect::turned, b.part(at, 0, rows, lines));
    }
  }
}

void multiply_matrices(const MatrixPart& a, const MatrixPart& b, const MatrixPart& c, const Workers& workers) {
  const WideLease lease(workers.count, time_of(a.rows, b.columns, a.columns));
  multiply(a, false, b, false, 1.0F, 0.0F, c, {workers.simd, lease.width()});
}

void subtract_product_with_turned(const MatrixPart& a, const MatrixPart& b, const MatrixPart& c,
                                  const Workers& workers) {
  const WideLease lease(workers.count, time_of(a.rows, b.rows, a.columns));
  multiply(a, false, b, true, -1.0F, 1.0F, c, {workers.simd, lease.width()});
}

void solve_by_halves(bool upper, bool unit, const MatrixPart& triangle, const MatrixPart& b, const Workers& workers) {
  const WideLease lease(workers.count, time_of(triangle.rows, b.columns, triangle.rows) / 2);
  solve_on(upper, unit, triangle, b, {workers.simd, lease.width()});
}

}  // namespace tenon::provider::cpu
