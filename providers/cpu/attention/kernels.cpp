// The kernels of attention, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/attention/kernels.cpp"
#include "hwy/foreach_target.h"
//
#include <cmath>
#include <limits>

#include "providers/cpu/attention/kernel.h"
#include "providers/cpu/simd/prelude-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

template <class T>
using D = hn::ScalableTag<T>;
template <class T>
using V = hn::Vec<D<T>>;

template <class T>
constexpr T kNone = -std::numeric_limits<T>::infinity();

template <class T>
HWY_INLINE int64_t lane_count() {
  return static_cast<int64_t>(hn::Lanes(D<T>()));
}

#if HWY_TARGET != HWY_AVX2 && HWY_TARGET != HWY_AVX3
template <class F>
HWY_INLINE V<double> in_each_lane(V<double> x, F f) {
  const D<double> d;
  HWY_ALIGN double lanes[hn::MaxLanes(D<double>())];
  hn::Store(x, d, lanes);
  for (double& lane : lanes) lane = f(lane);
  return hn::Load(d, lanes);
}
#endif

// exp(x) of x <= 0.
HWY_INLINE V<float> exp_of(V<float> x) { return exp_of_nonpositive(x); }
HWY_INLINE V<double> exp_of(V<double> x) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return ep_exp(x);
#else
  return in_each_lane(x, [](double y) { return std::exp(y); });
#endif
}

HWY_INLINE V<float> tanh_of(V<float> x) { return ep_tanh(x); }
HWY_INLINE V<double> tanh_of(V<double> x) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return ep_tanh(x);
#else
  return in_each_lane(x, [](double y) { return std::tanh(y); });
#endif
}

#if HWY_TARGET != HWY_SCALAR
template <class T>
constexpr int64_t kSquare = 16 / sizeof(T);

// Transposes 4 x 4 elements.
HWY_INLINE void transpose_square(float* dst, int64_t dst_row, const float* src, int64_t src_row, float factor) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  const auto by = hn::Set(d, factor);
  const auto a = hn::Mul(hn::LoadU(d, src), by), b = hn::Mul(hn::LoadU(d, src + src_row), by);
  const auto c = hn::Mul(hn::LoadU(d, src + 2 * src_row), by), e = hn::Mul(hn::LoadU(d, src + 3 * src_row), by);
  const auto ab = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ce)), d, dst);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ce)), d, dst + dst_row);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, dst + 2 * dst_row);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, dst + 3 * dst_row);
}
// Transposes 2 x 2 elements.
HWY_INLINE void transpose_square(double* dst, int64_t dst_row, const double* src, int64_t src_row, double factor) {
  const hn::FixedTag<double, 2> d;
  const auto by = hn::Set(d, factor);
  const auto a = hn::Mul(hn::LoadU(d, src), by), b = hn::Mul(hn::LoadU(d, src + src_row), by);
  hn::StoreU(hn::InterleaveLower(d, a, b), d, dst);
  hn::StoreU(hn::InterleaveUpper(d, a, b), d, dst + dst_row);
}
#else
template <class T>
constexpr int64_t kSquare = 1;
template <class T>
HWY_INLINE void transpose_square(T* dst, int64_t, const T* src, int64_t, T factor) {
  *dst = *src * factor;
}
#endif

template <class T>
void transpose(T* dst, int64_t dst_row, const T* src, int64_t src_row, int64_t rows, int64_t columns, T factor) {
  const int64_t whole_rows = rows - rows % kSquare<T>;
  const int64_t whole = columns - columns % kSquare<T>;
  for (int64_t i = 0; i < whole_rows; i += kSquare<T>) {
    for (int64_t j = 0; j < whole; j += kSquare<T>) {
      transpose_square(dst + j * dst_row + i, dst_row, src + i * src_row + j, src_row, factor);
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i < whole_rows ? whole : 0; j < columns; ++j) dst[j * dst_row + i] = src[i * src_row + j] * factor;
  }
}

// Replaces every vector of n values by f(vector).
template <class T, class F>
HWY_INLINE void change(T* values, int64_t n, F f) {
  const D<T> d;
  const int64_t lanes = lane_count<T>();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, values + i)), d, values + i);
  for (; i < n; ++i) values[i] = hn::GetLane(f(hn::Set(d, values[i])));
}

template <class T>
void cap(T* values, int64_t n, T greatest) {
  const V<T> by = hn::Set(D<T>(), greatest);
  change(values, n, [by](V<T> x) HWY_ATTR { return hn::Mul(tanh_of(hn::Div(x, by)), by); });
}

template <class T>
void add(const Scores<T>& scores, const T* other) {
  const D<T> d;
  for (int64_t i = 0; i < scores.keys * scores.columns; i += lane_count<T>()) {
    hn::StoreU(hn::Add(hn::LoadU(d, scores.values + i), hn::LoadU(d, other + i)), d, scores.values + i);
  }
}

template <class T>
void add_to_keys(const Scores<T>& scores, const T* other) {
  for (int64_t j = 0; j < scores.keys; ++j) {
    const V<T> by = hn::Set(D<T>(), other[j]);
    change(scores.values + j * scores.columns, scores.columns, [by](V<T> x) HWY_ATTR { return hn::Add(x, by); });
  }
}

template <class T>
void mask(const Scores<T>& scores, const KeyIndex<T>* low, const KeyIndex<T>* high) {
  const D<T> d;
  const hn::RebindToSigned<D<T>> di;
  const V<T> none = hn::Set(d, kNone<T>);
  for (int64_t q = 0; q < scores.columns; q += lane_count<T>()) {
    const auto least = hn::LoadU(di, low + q);
    const auto greatest = hn::LoadU(di, high + q);
    T* at = scores.values + q;
    for (int64_t j = 0; j < scores.keys; ++j, at += scores.columns) {
      const auto key = hn::Set(di, static_cast<KeyIndex<T>>(j));
      const auto out = hn::RebindMask(d, hn::Or(hn::Lt(key, least), hn::Gt(key, greatest)));
      hn::StoreU(hn::IfThenElse(out, none, hn::LoadU(d, at)), d, at);
    }
  }
}

// The greatest score, or 0 if all are -inf, so that exp(-inf - 0) is 0.
template <class T>
HWY_INLINE V<T> offset_of(V<T> most) {
  const D<T> d;
  return hn::IfThenElse(hn::Eq(most, hn::Set(d, kNone<T>)), hn::Zero(d), most);
}

template <class T>
bool soften(const Scores<T>& scores, const Running<T>& running) {
  const D<T> d;
  const V<T> one = hn::Set(d, T{1});
  bool changes = false;
  for (int64_t q = 0; q < scores.columns; q += lane_count<T>()) {
    const V<T> before = hn::LoadU(d, running.most + q);
    V<T> most = before;
    V<T> most_2 = before;
    T* at = scores.values + q;
    int64_t j = 0;
    for (; j + 2 <= scores.keys; j += 2, at += 2 * scores.columns) {
      most = hn::Max(most, hn::LoadU(d, at));
      most_2 = hn::Max(most_2, hn::LoadU(d, at + scores.columns));
    }
    if (j < scores.keys) most = hn::Max(most, hn::LoadU(d, at));
    most = hn::Max(most, most_2);
    const V<T> offset = offset_of<T>(most);
    V<T> sum = hn::Zero(d);
    at = scores.values + q;
    for (j = 0; j < scores.keys; ++j, at += scores.columns) {
      const V<T> y = exp_of(hn::Sub(hn::LoadU(d, at), offset));
      hn::StoreU(y, d, at);
      sum = hn::Add(sum, y);
    }
    const V<T> factor = exp_of(hn::Sub(before, offset));
    changes = changes || !hn::AllTrue(d, hn::Eq(factor, one));
    hn::StoreU(factor, d, running.factor + q);
    hn::StoreU(most, d, running.most + q);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, running.sum + q), factor, sum), d, running.sum + q);
  }
  return changes;
}

template <class T>
void scale(T* values, int64_t rows, int64_t columns, const T* factor) {
  const D<T> d;
  for (int64_t q = 0; q < columns; q += lane_count<T>()) {
    const V<T> by = hn::LoadU(d, factor + q);
    T* at = values + q;
    for (int64_t row = 0; row < rows; ++row, at += columns) hn::StoreU(hn::Mul(hn::LoadU(d, at), by), d, at);
  }
}

template <class T>
void scale_row(T* values, int64_t n, T factor) {
  const V<T> by = hn::Set(D<T>(), factor);
  change(values, n, [by](V<T> x) HWY_ATTR { return hn::Mul(x, by); });
}

// Processes four keys at a time, so that independent sums hide the latency of an addition.
template <class T>
void row_scores(const Row<T>& row, T* scores, T factor) {
  const D<T> d;
  const int64_t lanes = lane_count<T>();
  const int64_t whole = row.width - row.width % lanes;
  const auto rest = [&](const T* key) {
    T sum = 0;
    for (int64_t p = whole; p < row.width; ++p) sum += row.query[p] * key[p];
    return sum;
  };
  int64_t j = 0;
  for (; j + 4 <= row.count; j += 4) {
    const T* a = row.keys + j * row.key_row;
    const T* b = a + row.key_row;
    const T* c = b + row.key_row;
    const T* e = c + row.key_row;
    V<T> sum_a = hn::Zero(d), sum_b = sum_a, sum_c = sum_a, sum_e = sum_a;
    for (int64_t p = 0; p < whole; p += lanes) {
      const V<T> x = hn::LoadU(d, row.query + p);
      sum_a = hn::MulAdd(x, hn::LoadU(d, a + p), sum_a);
      sum_b = hn::MulAdd(x, hn::LoadU(d, b + p), sum_b);
      sum_c = hn::MulAdd(x, hn::LoadU(d, c + p), sum_c);
      sum_e = hn::MulAdd(x, hn::LoadU(d, e + p), sum_e);
    }
    scores[j] = (hn::GetLane(hn::SumOfLanes(d, sum_a)) + rest(a)) * factor;
    scores[j + 1] = (hn::GetLane(hn::SumOfLanes(d, sum_b)) + rest(b)) * factor;
    scores[j + 2] = (hn::GetLane(hn::SumOfLanes(d, sum_c)) + rest(c)) * factor;
    scores[j + 3] = (hn::GetLane(hn::SumOfLanes(d, sum_e)) + rest(e)) * factor;
  }
  for (; j < row.count; ++j) {
    const T* key = row.keys + j * row.key_row;
    V<T> sum = hn::Zero(d);
    for (int64_t p = 0; p < whole; p += lanes) {
      sum = hn::MulAdd(hn::LoadU(d, row.query + p), hn::LoadU(d, key + p), sum);
    }
    scores[j] = (hn::GetLane(hn::SumOfLanes(d, sum)) + rest(key)) * factor;
  }
}

template <class T>
T row_soften(T* scores, int64_t count, T* most, T* sum) {
  const D<T> d;
  const int64_t lanes = lane_count<T>();
  V<T> greatest = hn::Set(d, *most);
  int64_t j = 0;
  for (; j + lanes <= count; j += lanes) greatest = hn::Max(greatest, hn::LoadU(d, scores + j));
  T limit = hn::GetLane(hn::MaxOfLanes(d, greatest));
  for (; j < count; ++j) limit = scores[j] > limit ? scores[j] : limit;
  const T offset = limit == kNone<T> ? 0 : limit;
  const V<T> off = hn::Set(d, offset);
  V<T> total = hn::Zero(d);
  for (j = 0; j + lanes <= count; j += lanes) {
    const V<T> y = exp_of(hn::Sub(hn::LoadU(d, scores + j), off));
    hn::StoreU(y, d, scores + j);
    total = hn::Add(total, y);
  }
  T rest = 0;
  for (; j < count; ++j) {
    scores[j] = hn::GetLane(exp_of(hn::Set(d, scores[j] - offset)));
    rest += scores[j];
  }
  const T factor = hn::GetLane(exp_of(hn::Set(d, *most - offset)));
  *most = limit;
  *sum = *sum * factor + hn::GetLane(hn::SumOfLanes(d, total)) + rest;
  return factor;
}

// Processes kVectors vectors of columns. Each has two sums, which hide the latency of an addition.
template <int kVectors, class T>
HWY_INLINE void sum_columns(const Row<T>& row, const T* scores, T* dst, int64_t column, T factor) {
  const D<T> d;
  const int64_t lanes = lane_count<T>();
  const V<T> by = hn::Set(d, factor);
  V<T> even[kVectors];
  V<T> odd[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    even[v] = hn::Mul(hn::LoadU(d, dst + column + v * lanes), by);
    odd[v] = hn::Zero(d);
  }
  const T* at = row.values + column;
  int64_t j = 0;
  for (; j + 2 <= row.count; j += 2, at += 2 * row.value_row) {
    const V<T> x = hn::Set(d, scores[j]);
    const V<T> y = hn::Set(d, scores[j + 1]);
    for (int v = 0; v < kVectors; ++v) {
      even[v] = hn::MulAdd(x, hn::LoadU(d, at + v * lanes), even[v]);
      odd[v] = hn::MulAdd(y, hn::LoadU(d, at + row.value_row + v * lanes), odd[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    V<T> sum = hn::Add(even[v], odd[v]);
    if (j < row.count) sum = hn::MulAdd(hn::Set(d, scores[j]), hn::LoadU(d, at + v * lanes), sum);
    hn::StoreU(sum, d, dst + column + v * lanes);
  }
}

template <class T>
void row_sum(const Row<T>& row, const T* scores, T* dst, T factor) {
  const int64_t lanes = lane_count<T>();
  int64_t column = 0;
  for (; column + 4 * lanes <= row.columns; column += 4 * lanes) sum_columns<4>(row, scores, dst, column, factor);
  for (; column + lanes <= row.columns; column += lanes) sum_columns<1>(row, scores, dst, column, factor);
  for (; column < row.columns; ++column) {
    T sum = dst[column] * factor;
    for (int64_t j = 0; j < row.count; ++j) sum += scores[j] * row.values[j * row.value_row + column];
    dst[column] = sum;
  }
}

template <class T>
const AttentionKernels<T>& kernels_of_attention() {
  static const AttentionKernels<T> table = {static_cast<int32_t>(hn::Lanes(D<T>())),
                                            transpose<T>,
                                            cap<T>,
                                            add<T>,
                                            add_to_keys<T>,
                                            mask<T>,
                                            soften<T>,
                                            scale<T>,
                                            row_scores<T>,
                                            row_soften<T>,
                                            scale_row<T>,
                                            row_sum<T>};
  return table;
}

}  // namespace

const AttentionKernels<float>& attention_of_f32() { return kernels_of_attention<float>(); }
const AttentionKernels<double>& attention_of_f64() { return kernels_of_attention<double>(); }

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

template <>
const AttentionKernels<float>& attention_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, attention_of_f32)();
}
template <>
const AttentionKernels<double>& attention_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, attention_of_f64)();
}

}  // namespace tenon::provider::cpu
#endif
