// Reduces a large matrix to bidiagonal form, compiled once per dispatch target (J. J. Dongarra, S. J. Hammarling, D. C.
// Sorensen: Block reduction of matrices to condensed forms, 1989). The reflections of a panel do not change the columns
// after it until the end of the panel; then one product updates them. A step needs the products of the matrix with the
// column reflection and with the row reflection. One pass over the columns computes both, while a few columns are in
// the cache (G. W. Howell, J. W. Demmel, C. T. Fulton, S. Hammarling, K. Marmol: Cache efficient bidiagonalization
// using BLAS 2.5 operators, 2008): the row is known as far as the pass has come, and its reflection is a multiple of
// the row except for one element. Columns are divided into a fixed number of shares with sums of their own, so results
// do not depend on the number of threads.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/linear_algebra/rectangular.cpp"
#include "hwy/foreach_target.h"
//
#include "providers/cpu/linear_algebra/rectangular.h"
#include "providers/cpu/linear_algebra/thin-inl.h"
#include "providers/cpu/threads/lease.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

constexpr int block = 16;  // columns that a share processes at a time
constexpr int shares = 8;
constexpr int panel = 32;

// The matrix from row k on, within a panel: A - U Y' - X V'. U and V hold the column and row reflections of the panel.
// Y' and X are the factors that these reflections subtract.
class Bidiagonal {
 public:
  Bidiagonal(const MatrixPart& a, const Workers& workers)
      : a_(a),
        workers_(workers),
        left_(a.rows, 2 * panel),
        right_(a.columns, 2 * panel),
        sums_(a.rows, shares),
        rows_(a.columns, 3) {}

  // Makes column and row k bidiagonal. They are number i of their panel.
  void reduce(int k, int i, float* diagonal, float* beside, float* left_scale, float* right_scale) {
    float* const column = a_.data + int64_t{k} * a_.stride;
    const int64_t begin = k / block * block;
    float by[panel];
    row_of(y(0), right_, k, i, by);
    subtract(u(0), left_.stride(), i, by, column, begin, left_.stride());
    row_of(v(0), right_, k, i, by);
    subtract(x(0), left_.stride(), i, by, column, begin, left_.stride());
    float* const reflection = u(i);
    std::fill_n(reflection, left_.stride(), 0.0F);
    *left_scale = find_reflection(column, k, a_.rows, reflection);
    *diagonal = column[k];
    std::copy(reflection + k + 1, reflection + a_.rows, column + k + 1);
    *right_scale = 0;
    if (k + 1 == a_.columns) return;
    find_row(k, i, *left_scale);
    float* const row = rows_.at(0);
    const float first = row[k + 1];
    std::fill_n(v(i), right_.stride(), 0.0F);
    *right_scale = find_reflection(row, k + 1, a_.columns, v(i));
    *beside = row[k + 1];
    subtract_row(k, i, first, *beside, *right_scale);
  }

  const float* row_reflection(int i) { return v(i); }

  // Updates the columns from `first` on after a whole panel.
  void update(int first) {
    const auto part = [&](Columns* of, int rows) {
      return MatrixPart{of->at(0) + first, rows - first, 2 * panel, static_cast<int>(of->stride())};
    };
    if (first >= a_.columns) return;
    subtract_product_with_turned(part(&left_, a_.rows), part(&right_, a_.columns),
                                 a_.part(first, first, a_.rows - first, a_.columns - first), workers_);
  }

 private:
  float* u(int i) { return left_.at(i); }
  float* x(int i) { return left_.at(panel + i); }
  float* y(int i) { return right_.at(i); }
  float* v(int i) { return right_.at(panel + i); }

  static void row_of(const float* columns, const Columns& all, int k, int count, float* to) {
    for (int c = 0; c < count; ++c) to[c] = columns[c * all.stride() + k];
  }

  // Computes y(i) = scale * matrix' * u(i), and row k of the matrix without y(i). `sums` becomes the product of A and
  // that row.
  void find_row(int k, int i, float scale) {
    const int64_t begin = k / block * block;
    const int64_t after = (k + 1) / block * block;
    const int64_t width = right_.stride();
    float* const lengths = rows_.at(1);  // products of u and the panel's part of the matrix
    float* const row = rows_.at(2);      // the panel's part of row k
    std::fill(lengths + after, lengths + width, 0.0F);
    std::fill(row + after, row + width, 0.0F);
    float by[panel];
    measure(u(0), left_.stride(), i, u(i), begin, left_.stride(), by);
    subtract(y(0), width, i, by, lengths, after, width);
    measure(x(0), left_.stride(), i, u(i), begin, left_.stride(), by);
    subtract(v(0), width, i, by, lengths, after, width);
    row_of(u(0), left_, k, i, by);
    subtract(y(0), width, i, by, row, after, width);
    row_of(x(0), left_, k, i, by);
    subtract(v(0), width, i, by, row, after, width);
    std::fill_n(y(i), k + 1, 0.0F);
    std::fill_n(rows_.at(0), k + 1, 0.0F);
    parallel(workers_.count, (a_.rows - begin) * (a_.columns - k) / 8, [&](int32_t part, int32_t parts) {
      for (int share = shares * part / parts; share < shares * (part + 1) / parts; ++share) {
        float* const sums = sums_.at(share);
        std::fill(sums + begin, sums + sums_.stride(), 0.0F);
        for (int64_t left = after; left < a_.columns; left += block) {
          if (left / block % shares != share) continue;
          const int64_t end = std::min<int64_t>(left + block, a_.columns);
          int64_t j = std::max<int64_t>(left, k + 1);
          for (; j + 4 <= end; j += 4) pass<4>(j, k, i, scale, begin, sums);
          for (; j < end; ++j) pass<1>(j, k, i, scale, begin, sums);
        }
      }
    });
  }

  // For columns j to j + count: computes y and the row, and adds columns times row to `sums`.
  template <int count>
  HWY_INLINE void pass(int64_t j, int k, int i, float scale, int64_t begin, float* HWY_RESTRICT sums) {
    const D d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const int64_t end = left_.stride();
    const float* const columns = a_.data + j * a_.stride;
    const float* const reflection = u(i);
    V lengths[count];
    for (int c = 0; c < count; ++c) lengths[c] = hn::Zero(d);
    for (int64_t at = begin; at < end; at += lanes) {
      const V x = hn::Load(d, reflection + at);
      for (int c = 0; c < count; ++c) {
        lengths[c] = hn::MulAdd(x, hn::Load(d, columns + c * a_.stride + at), lengths[c]);
      }
    }
    V by[count];
    for (int c = 0; c < count; ++c) {
      const float subtracted = scale * (hn::GetLane(hn::SumOfLanes(d, lengths[c])) + rows_.at(1)[j + c]);
      const float left = columns[c * a_.stride + k] + rows_.at(2)[j + c] - subtracted;
      y(i)[j + c] = subtracted;
      rows_.at(0)[j + c] = left;
      by[c] = hn::Set(d, left);
    }
    for (int64_t at = begin; at < end; at += lanes) {
      V sum = hn::Load(d, sums + at);
      for (int c = 0; c < count; ++c) sum = hn::MulAdd(hn::Load(d, columns + c * a_.stride + at), by[c], sum);
      hn::Store(sum, d, sums + at);
    }
  }

  // Computes x(i) = scale * matrix * v(i). `sums` is the product of A and the row. The row's first element was `first`
  // and became `beside`; v(i) is the row divided by first - beside, except that its first element is 1.
  void subtract_row(int k, int i, float first, float beside, float scale) {
    const int64_t begin = (k + 1) / block * block;
    const int64_t end = left_.stride();
    float* const to = x(i);
    std::fill_n(to, end, 0.0F);
    if (scale == 0) return;
    add_up(sums_.at(0), end, shares, to, begin, end);
    const double of_row = 1 / (static_cast<double>(first) - static_cast<double>(beside));
    scale_and_add(static_cast<float>(of_row), to, static_cast<float>(-static_cast<double>(beside) * of_row),
                  a_.data + int64_t{k + 1} * a_.stride, begin, end);
    float by[panel];
    measure(y(0), right_.stride(), i + 1, v(i), begin, right_.stride(), by);
    subtract(u(0), end, i + 1, by, to, begin, end);
    measure(v(0), right_.stride(), i, v(i), begin, right_.stride(), by);
    subtract(x(0), end, i, by, to, begin, end);
    scale_and_add(scale, to, 0, to, begin, end);
    std::fill_n(to, k + 1, 0.0F);
  }

  MatrixPart a_;
  const Workers& workers_;
  Columns left_, right_;  // U and X; Y and V
  Columns sums_;
  Columns rows_;  // row k; the panel's part of the products with u; the panel's part of row k
};

}  // namespace

void make_bidiagonal_on(const MatrixPart& a, float* diagonal, float* beside, float* left_scales, float* right_scales,
                        const MatrixPart& right, const Workers& workers) {
  Bidiagonal bidiagonal(a, workers);
  for (int first = 0; first < a.columns; first += panel) {
    const int count = std::min(panel, a.columns - first);
    for (int i = 0; i < count; ++i) {
      const int k = first + i;
      bidiagonal.reduce(k, i, diagonal + k, beside + k, left_scales + k, right_scales + k);
      if (right.data == nullptr || k + 1 == a.columns) continue;
      const float* const reflection = bidiagonal.row_reflection(i);
      std::copy(reflection + k + 1, reflection + a.columns, right.data + int64_t{k} * right.stride + k + 1);
    }
    if (count == panel) bidiagonal.update(first + count);
  }
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

void make_bidiagonal(const MatrixPart& a, float* diagonal, float* beside, float* left_scales, float* right_scales,
                     const MatrixPart& right, const Workers& workers) {
  TENON_CPU_DISPATCH(workers.simd, make_bidiagonal_on)
  (a, diagonal, beside, left_scales, right_scales, right, workers);
}

}  // namespace tenon::provider::cpu
#endif
