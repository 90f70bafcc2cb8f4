// Reduces a large symmetric matrix to tridiagonal form, compiled once per dispatch target (J. J. Dongarra, S. J.
// Hammarling, D. C. Sorensen: Block reduction of matrices to condensed forms, 1989). The reflections of a panel do not
// change the columns after it until the end of the panel; then two products update them. Each column's reflection needs
// one product of the matrix and a vector. The product reads only the lower triangle, except in blocks on the diagonal.
// Blocks are divided into a fixed number of shares with sums of their own, so results do not depend on the number of
// threads.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/linear_algebra/symmetric.cpp"
#include "hwy/foreach_target.h"
//
#include "providers/cpu/linear_algebra/symmetric.h"
#include "providers/cpu/linear_algebra/thin-inl.h"
#include "providers/cpu/threads/lease.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

constexpr int block = Columns::widest;  // columns with a common first row
constexpr int shares = 8;
constexpr int panel = 32;

// Adds four columns (from row `begin` on) times `factors` to `sums`, and for these columns' own rows adds columns times
// v.
HWY_INLINE void multiply_four(const float* HWY_RESTRICT columns, int64_t stride, const float* HWY_RESTRICT v,
                              const float* factors, int64_t begin, int64_t end, float* HWY_RESTRICT sums, float* own) {
  const D d;
  V by[4], lengths[4];
  for (int c = 0; c < 4; ++c) {
    by[c] = hn::Set(d, factors[c]);
    lengths[c] = hn::Zero(d);
  }
  for (int64_t i = begin; i < end; i += static_cast<int64_t>(hn::Lanes(d))) {
    const V x = hn::Load(d, v + i);
    V sum = hn::Load(d, sums + i);
    for (int c = 0; c < 4; ++c) {
      const V element = hn::Load(d, columns + c * stride + i);
      sum = hn::MulAdd(element, by[c], sum);
      lengths[c] = hn::MulAdd(element, x, lengths[c]);
    }
    hn::Store(sum, d, sums + i);
  }
  for (int c = 0; c < 4; ++c) own[c] += hn::GetLane(hn::SumOfLanes(d, lengths[c]));
}

// Sets `sums` (rows from `first` on) to the product of v and the part of the matrix that belongs to share `share`.
// `first` is the start of a block.
void multiply_share(const MatrixPart& a, int first, const float* v, int share, float* sums) {
  const D d;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  const int64_t end = (a.rows + block - 1) / block * block;
  std::fill(sums + first, sums + end, 0.0F);
  for (int64_t left = first; left < end; left += block) {
    if (left / block % shares != share) continue;
    const float* const columns = a.data + left * a.stride;
    const int64_t width = std::min<int64_t>(block, a.rows - left);
    for (int64_t j = 0; j < width; ++j) {  // the block on the diagonal
      for (int i = 0; i < block; i += lanes) {
        float* const at = sums + left + i;
        hn::Store(hn::MulAdd(hn::Load(d, columns + j * a.stride + left + i), hn::Set(d, v[left + j]), hn::Load(d, at)),
                  d, at);
      }
    }
    if (left + block >= end) continue;  // otherwise there are `block` columns
    for (int64_t j = 0; j < block; j += 4) {
      multiply_four(columns + j * a.stride, a.stride, v, v + left + j, left + block, end, sums, sums + left + j);
    }
  }
}

class Reduction {
 public:
  Reduction(const MatrixPart& a, const Workers& workers)
      : a_(a), workers_(workers), factors_(a.rows, 3 * panel), sums_(a.rows, shares), end_(factors_.stride()) {}

  // Makes column k tridiagonal, which is number i of its panel. Returns the scale of its reflection.
  float reduce(int k, int i, float* diagonal, float* beside) {
    float* const column = a_.data + int64_t{k} * a_.stride;
    const auto row = [&](float* columns, float* to) {
      for (int c = 0; c < i; ++c) to[c] = columns[c * end_ + k];
    };
    float by[panel];
    const int64_t begin = k / block * block;
    row(w(0), by);
    subtract(v(0), end_, i, by, column, begin, end_);
    row(v(0), by);
    subtract(w(0), end_, i, by, column, begin, end_);
    *diagonal = column[k];
    if (k + 1 == a_.rows) return 0;
    float* const reflection = v(i);
    std::fill_n(reflection, end_, 0.0F);
    const float scale = find_reflection(column, k + 1, a_.rows, reflection);
    *beside = column[k + 1];
    std::copy(reflection + k + 2, reflection + a_.rows, column + k + 2);
    std::copy_n(reflection, end_, v(i + 2 * panel));
    multiply_columns(k + 1, i, reflection, scale);
    return scale;
  }

  // Updates the columns from `first` on after a panel of `count` columns.
  void update(int first, int count) {
    constexpr int wide = 256;   // columns per product; the part above the diagonal is unused
    if (count < panel) return;  // the last panel
    const auto part = [&](float* columns, int top) {
      return MatrixPart{columns + top, a_.rows - top, 2 * panel, static_cast<int>(end_)};
    };
    for (int left = first; left < a_.rows; left += wide) {
      const int width = std::min(wide, a_.rows - left);
      MatrixPart right = part(w(0), left);
      right.rows = width;
      subtract_product_with_turned(part(v(0), left), right, a_.part(left, left, a_.rows - left, width), workers_);
    }
  }

 private:
  float* v(int i) { return factors_.at(i); }
  float* w(int i) { return factors_.at(panel + i); }

  // w(i) = scale * (A v - scale / 2 (v' A v) v), for the updated A.
  void multiply_columns(int first, int i, const float* reflection, float scale) {
    const int64_t begin = first / block * block;
    const int64_t rows = end_ - begin;
    parallel(workers_.count, rows * rows / 12, [&](int32_t part, int32_t parts) {
      for (int share = shares * part / parts; share < shares * (part + 1) / parts; ++share) {
        multiply_share(a_, static_cast<int>(begin), reflection, share, sums_.at(share));
      }
    });
    float* const product = w(i);
    std::fill_n(product, begin, 0.0F);
    add_up(sums_.at(0), end_, shares, product, begin, end_);
    float by[panel];
    measure(w(0), end_, i, reflection, begin, end_, by);
    subtract(v(0), end_, i, by, product, begin, end_);
    measure(v(0), end_, i, reflection, begin, end_, by);
    subtract(w(0), end_, i, by, product, begin, end_);
    float along = 0;
    measure(product, end_, 1, reflection, begin, end_, &along);
    scale_and_add(scale, product, -scale * scale / 2 * along, reflection, begin, end_);
    std::fill(product + begin, product + first, 0.0F);
  }

  MatrixPart a_;
  const Workers& workers_;
  Columns factors_;  // a panel of v, w and v again: v w' + w v' is the product of the first two and the last two
  Columns sums_;
  int64_t end_;
};

}  // namespace

void make_tridiagonal_on(const MatrixPart& a, float* diagonal, float* beside, float* scales, const Workers& workers) {
  Reduction reduction(a, workers);
  for (int first = 0; first < a.rows; first += panel) {
    const int count = std::min(panel, a.rows - first);
    for (int i = 0; i < count; ++i) {
      const int k = first + i;
      scales[k] = reduction.reduce(k, i, diagonal + k, beside + k);
    }
    reduction.update(first + count, count);
  }
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

void make_tridiagonal(const MatrixPart& a, float* diagonal, float* beside, float* scales, const Workers& workers) {
  TENON_CPU_DISPATCH(workers.simd, make_tridiagonal_on)(a, diagonal, beside, scales, workers);
}

}  // namespace tenon::provider::cpu
#endif
