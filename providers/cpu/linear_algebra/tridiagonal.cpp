// Eigenvalues of a small symmetric matrix, compiled once per dispatch target. Reflections make the matrix tridiagonal
// (G. H. Golub, C. F. Van Loan: Matrix Computations, section 8.3.1). The QL method with implicit shifts finds the
// eigenvalues in f64 (H. Bowdler, R. S. Martin, C. Reinsch, J. H. Wilkinson: The QR and QL algorithms for symmetric
// matrices, 1968). Its rotations are applied to the vectors in f32, 16 elements of all columns at a time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/linear_algebra/tridiagonal.cpp"
#include "hwy/foreach_target.h"
//
#include <numeric>

#include "providers/cpu/linear_algebra/reflect-inl.h"
#include "providers/cpu/linear_algebra/tridiagonal.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

// The pending update of a step: v w' + w v' has to be subtracted from the columns.
struct Step {
  const float* v;
  const float* w;
};

// Applies the pending update to `count` columns from `column` on. Then products += columns times the elements of `next`
// from `column` on.
template <int count>
HWY_INLINE void step_columns(const Step& last, const float* next, float* HWY_RESTRICT products, float* HWY_RESTRICT a,
                             int64_t stride, int column, int begin, int end) {
  const D d;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  V of_v[count], of_w[count], factors[count];
  for (int c = 0; c < count; ++c) {
    of_v[c] = hn::Set(d, last.w[column + c]);
    of_w[c] = hn::Set(d, last.v[column + c]);
    factors[c] = hn::Set(d, next[column + c]);
  }
  for (int i = begin; i < end; i += lanes) {
    const V v = hn::Load(d, last.v + i);
    const V w = hn::Load(d, last.w + i);
    V sum = hn::Load(d, products + i);
    for (int c = 0; c < count; ++c) {
      float* const at = a + (column + c) * stride + i;
      const V x = hn::NegMulAdd(w, of_w[c], hn::NegMulAdd(v, of_v[c], hn::Load(d, at)));
      hn::Store(x, d, at);
      sum = hn::MulAdd(x, factors[c], sum);
    }
    hn::Store(sum, d, products + i);
  }
}

float dot(const float* x, const float* y, int begin, int end) {
  const D d;
  V sum = hn::Zero(d);
  for (int i = begin; i < end; i += static_cast<int>(hn::Lanes(d))) {
    sum = hn::MulAdd(hn::Load(d, x + i), hn::Load(d, y + i), sum);
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// Makes the columns `a` tridiagonal. Column k of `vectors` gets the reflection of column k, beginning at row k + 1.
void reduce(Columns* a, Columns* vectors, int n, float* scales, float* diagonal, float* beside) {
  const D d;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  Columns room(n, 3);  // the products of this step and the previous one; zeros
  Step last = {room.at(2), room.at(2)};
  const int64_t stride = a->stride();
  for (int k = 0; k + 1 < n; ++k) {
    const int begin = k / lanes * lanes;
    float* const column = a->at(k);
    for (int i = begin; i < n; i += lanes) {
      const V x = hn::NegMulAdd(hn::Load(d, last.v + i), hn::Set(d, last.w[k]), hn::Load(d, column + i));
      hn::Store(hn::NegMulAdd(hn::Load(d, last.w + i), hn::Set(d, last.v[k]), x), d, column + i);
    }
    float* const v = vectors->at(k);
    diagonal[k] = column[k];
    scales[k] = find_reflection(column, k + 1, n, v);
    beside[k] = column[k + 1];
    float* const w = room.at(k % 2);
    std::fill_n(w, stride, 0.0F);
    int j = k + 1;
    for (; j + 4 <= n; j += 4) step_columns<4>(last, v, w, a->at(0), stride, j, begin, n);
    for (; j < n; ++j) step_columns<1>(last, v, w, a->at(0), stride, j, begin, n);
    // w = scale * (A v - scale / 2 (v' A v) v)
    const float scale = scales[k];
    const V factor = hn::Set(d, scale);
    const V along = hn::Set(d, -scale * scale / 2 * dot(v, w, begin, n));
    for (int i = begin; i < n; i += lanes) {
      hn::Store(hn::MulAdd(hn::Load(d, v + i), along, hn::Mul(hn::Load(d, w + i), factor)), d, w + i);
    }
    last = {v, w};
  }
  diagonal[n - 1] = a->at(n - 1)[n - 1];
}

struct Rotation {
  float cosine, sine;
};

// Rotates `count` vectors of elements in columns `from` to `to`: each column with the previous one, starting with the
// last.
template <int count>
HWY_INLINE void turn_elements(const Rotation* turns, float* HWY_RESTRICT z, int64_t stride, int from, int to) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V right[count];
  for (int c = 0; c < count; ++c) right[c] = hn::Load(d, z + to * stride + c * lanes);
  for (int j = to - 1; j >= from; --j) {
    const V cosine = hn::Set(d, turns[j].cosine);
    const V sine = hn::Set(d, turns[j].sine);
    float* const column = z + j * stride;
    for (int c = 0; c < count; ++c) {
      const V left = hn::Load(d, column + c * lanes);
      hn::Store(hn::MulAdd(sine, left, hn::Mul(cosine, right[c])), d, column + stride + c * lanes);
      right[c] = hn::NegMulAdd(sine, right[c], hn::Mul(cosine, left));
    }
  }
  for (int c = 0; c < count; ++c) hn::Store(right[c], d, z + from * stride + c * lanes);
}

void turn(const Rotation* turns, Columns* z, int from, int to) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t i = 0;
  for (; i + 4 * lanes <= z->stride(); i += 4 * lanes) turn_elements<4>(turns, z->at(0) + i, z->stride(), from, to);
  for (; i + 2 * lanes <= z->stride(); i += 2 * lanes) turn_elements<2>(turns, z->at(0) + i, z->stride(), from, to);
  for (; i < z->stride(); i += lanes) turn_elements<1>(turns, z->at(0) + i, z->stride(), from, to);
}

// One QL step on rows `first` to `last` of the tridiagonal matrix. Returns the first row whose columns are rotated.
int turn_rows(double* diagonal, double* beside, int first, int last, Rotation* turns) {
  double g = (diagonal[first + 1] - diagonal[first]) / (2 * beside[first]);
  g = diagonal[last] - diagonal[first] + beside[first] / (g + std::copysign(std::sqrt(g * g + 1), g));
  double sine = 1, cosine = 1, moved = 0;
  for (int i = last - 1; i >= first; --i) {
    const double f = sine * beside[i];
    const double b = cosine * beside[i];
    const double length = std::sqrt(f * f + g * g);
    beside[i + 1] = length;
    if (length == 0) {
      diagonal[i + 1] -= moved;
      beside[last] = 0;
      return i + 1;
    }
    sine = f / length;
    cosine = g / length;
    turns[i] = {static_cast<float>(cosine), static_cast<float>(sine)};
    g = diagonal[i + 1] - moved;
    const double r = (diagonal[i] - g) * sine + 2 * cosine * b;
    moved = sine * r;
    diagonal[i + 1] = g + moved;
    g = cosine * r - b;
  }
  diagonal[first] -= moved;
  beside[first] = g;
  beside[last] = 0;
  return first;
}

// Writes the eigenvalues of a tridiagonal matrix to `diagonal`, and rotates the columns of `z`. Returns false if a
// value needs too many steps.
bool solve(int n, double* diagonal, double* beside, Columns* z) {
  constexpr double small = 0x1p-28;  // relative to numbers in f32
  constexpr int most_steps = 60;
  Rotation turns[most_rotated];
  double norm = 0;
  for (int i = 0; i < n; ++i) norm = std::max({norm, std::abs(diagonal[i]), std::abs(beside[i])});
  for (int first = 0; first < n; ++first) {
    for (int step = 0;; ++step) {
      int last = first;
      while (last + 1 < n &&
             std::abs(beside[last]) > small * (std::abs(diagonal[last]) + std::abs(diagonal[last + 1])) &&
             std::abs(beside[last]) > 0x1p-50 * norm) {
        ++last;
      }
      if (last == first) break;
      if (step == most_steps) return false;
      const int from = turn_rows(diagonal, beside, first, last, turns);
      turn(turns, z, from, last);
    }
  }
  return true;
}

Columns copied(const SmallSymmetric& x) {
  Columns a(x.n, x.n);
  for (int j = 0; j < x.n; ++j) std::copy_n(x.a + int64_t{j} * x.n, x.n, a.at(j));
  return a;
}

}  // namespace

void reduce_small(const SmallSymmetric& x, float* diagonal, float* beside, float* scales) {
  Columns a = copied(x), vectors(x.n, x.n);
  reduce(&a, &vectors, x.n, scales, diagonal, beside);
  for (int k = 0; k + 2 < x.n; ++k) {
    std::copy(vectors.at(k) + k + 2, vectors.at(k) + x.n, x.a + int64_t{k} * x.n + k + 2);
  }
}

bool find_eigen(const SmallSymmetric& x, float* values) {
  const int n = x.n;
  Columns a = copied(x), vectors(n, n);
  float scales[most_rotated], diagonal[most_rotated], beside[most_rotated];
  reduce(&a, &vectors, n, scales, diagonal, beside);
  Columns& z = a;  // the product of the reflections, the last ones first, because they do not change earlier columns
  std::fill_n(z.at(0), n * z.stride(), 0.0F);
  for (int j = 0; j < n; ++j) z.at(j)[j] = 1;
  for (int k = n - 2; k >= 0; --k) {
    reflect_all(vectors.at(k), scales[k], z.at(k + 1), z.stride(), k + 1, n, n - k - 1);
  }
  double wide_diagonal[most_rotated], wide_beside[most_rotated] = {};
  std::copy_n(diagonal, n, wide_diagonal);
  std::copy_n(beside, n - 1, wide_beside);
  if (!solve(n, wide_diagonal, wide_beside, &z)) return false;
  int order[most_rotated];
  std::iota(order, order + n, 0);
  std::sort(order, order + n, [&](int i, int j) { return wide_diagonal[i] < wide_diagonal[j]; });
  for (int j = 0; j < n; ++j) {
    values[j] = static_cast<float>(wide_diagonal[order[j]]);
    std::copy_n(z.at(order[j]), n, x.a + int64_t{j} * n);
  }
  return true;
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

ReduceKernel reduce_kernel(SimdLevel level) { return TENON_CPU_DISPATCH(level, reduce_small); }
EigenKernel eigen_kernel(SimdLevel level) { return TENON_CPU_DISPATCH(level, find_eigen); }

}  // namespace tenon::provider::cpu
#endif
