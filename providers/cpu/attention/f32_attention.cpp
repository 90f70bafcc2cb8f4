// The kernels of attention, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/attention/f32_attention.cpp"
#include "hwy/foreach_target.h"
//
#include <cmath>
#include <limits>

#include "providers/cpu/attention/kernel.h"
#include "providers/cpu/simd/prelude-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr float kNone = -std::numeric_limits<float>::infinity();

HWY_INLINE int64_t lane_count() { return static_cast<int64_t>(hn::Lanes(D())); }

#if HWY_TARGET != HWY_SCALAR
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
constexpr int64_t kSquare = 4;
#else
HWY_INLINE void transpose_square(float* dst, int64_t, const float* src, int64_t, float factor) { *dst = *src * factor; }
constexpr int64_t kSquare = 1;
#endif

void transpose(float* dst, int64_t dst_row, const float* src, int64_t src_row, int64_t rows, int64_t columns,
               float factor) {
  const int64_t whole_rows = rows - rows % kSquare;
  const int64_t whole = columns - columns % kSquare;
  for (int64_t i = 0; i < whole_rows; i += kSquare) {
    for (int64_t j = 0; j < whole; j += kSquare) {
      transpose_square(dst + j * dst_row + i, dst_row, src + i * src_row + j, src_row, factor);
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i < whole_rows ? whole : 0; j < columns; ++j) dst[j * dst_row + i] = src[i * src_row + j] * factor;
  }
}

// Replaces every vector of n values by f(vector).
template <class F>
HWY_INLINE void change(float* values, int64_t n, F f) {
  const D d;
  const int64_t lanes = lane_count();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, values + i)), d, values + i);
  for (; i < n; ++i) values[i] = hn::GetLane(f(hn::Set(d, values[i])));
}

void cap(float* values, int64_t n, float greatest) {
  const V by = hn::Set(D(), greatest);
  change(values, n, [by](V x) HWY_ATTR { return hn::Mul(ep_tanh(hn::Div(x, by)), by); });
}

void add(const Scores& scores, const float* other) {
  const D d;
  for (int64_t i = 0; i < scores.keys * scores.columns; i += lane_count()) {
    hn::StoreU(hn::Add(hn::LoadU(d, scores.values + i), hn::LoadU(d, other + i)), d, scores.values + i);
  }
}

void add_to_keys(const Scores& scores, const float* other) {
  for (int64_t j = 0; j < scores.keys; ++j) {
    const V by = hn::Set(D(), other[j]);
    change(scores.values + j * scores.columns, scores.columns, [by](V x) HWY_ATTR { return hn::Add(x, by); });
  }
}

void mask(const Scores& scores, const int32_t* low, const int32_t* high) {
  const D d;
  const hn::RebindToSigned<D> di;
  const V none = hn::Set(d, kNone);
  for (int64_t q = 0; q < scores.columns; q += lane_count()) {
    const auto least = hn::LoadU(di, low + q);
    const auto greatest = hn::LoadU(di, high + q);
    float* at = scores.values + q;
    for (int64_t j = 0; j < scores.keys; ++j, at += scores.columns) {
      const auto key = hn::Set(di, static_cast<int32_t>(j));
      const auto out = hn::RebindMask(d, hn::Or(hn::Lt(key, least), hn::Gt(key, greatest)));
      hn::StoreU(hn::IfThenElse(out, none, hn::LoadU(d, at)), d, at);
    }
  }
}

// The greatest score, or 0 if all are -inf, so that exp(-inf - 0) is 0.
HWY_INLINE V offset_of(V most) {
  const D d;
  return hn::IfThenElse(hn::Eq(most, hn::Set(d, kNone)), hn::Zero(d), most);
}

bool soften(const Scores& scores, const Running& running) {
  const D d;
  const V one = hn::Set(d, 1.0F);
  bool changes = false;
  for (int64_t q = 0; q < scores.columns; q += lane_count()) {
    const V before = hn::LoadU(d, running.most + q);
    V most = before;
    V most_2 = before;
    float* at = scores.values + q;
    int64_t j = 0;
    for (; j + 2 <= scores.keys; j += 2, at += 2 * scores.columns) {
      most = hn::Max(most, hn::LoadU(d, at));
      most_2 = hn::Max(most_2, hn::LoadU(d, at + scores.columns));
    }
    if (j < scores.keys) most = hn::Max(most, hn::LoadU(d, at));
    most = hn::Max(most, most_2);
    const V offset = offset_of(most);
    V sum = hn::Zero(d);
    at = scores.values + q;
    for (j = 0; j < scores.keys; ++j, at += scores.columns) {
      const V y = exp_of_nonpositive(hn::Sub(hn::LoadU(d, at), offset));
      hn::StoreU(y, d, at);
      sum = hn::Add(sum, y);
    }
    const V factor = exp_of_nonpositive(hn::Sub(before, offset));
    changes = changes || !hn::AllTrue(d, hn::Eq(factor, one));
    hn::StoreU(factor, d, running.factor + q);
    hn::StoreU(most, d, running.most + q);
    hn::StoreU(hn::MulAdd(hn::LoadU(d, running.sum + q), factor, sum), d, running.sum + q);
  }
  return changes;
}

void scale(float* values, int64_t rows, int64_t columns, const float* factor) {
  const D d;
  for (int64_t q = 0; q < columns; q += lane_count()) {
    const V by = hn::LoadU(d, factor + q);
    float* at = values + q;
    for (int64_t row = 0; row < rows; ++row, at += columns) hn::StoreU(hn::Mul(hn::LoadU(d, at), by), d, at);
  }
}

void scale_row(float* values, int64_t n, float factor) {
  const V by = hn::Set(D(), factor);
  change(values, n, [by](V x) HWY_ATTR { return hn::Mul(x, by); });
}

// Processes four keys at a time, so that independent sums hide the latency of an addition.
void row_scores(const Row& row, float* scores, float factor) {
  const D d;
  const int64_t lanes = lane_count();
  const int64_t whole = row.width - row.width % lanes;
  const auto rest = [&](const float* key) {
    float sum = 0;
    for (int64_t p = whole; p < row.width; ++p) sum += row.query[p] * key[p];
    return sum;
  };
  int64_t j = 0;
  for (; j + 4 <= row.count; j += 4) {
    const float* a = row.keys + j * row.key_row;
    const float* b = a + row.key_row;
    const float* c = b + row.key_row;
    const float* e = c + row.key_row;
    V sum_a = hn::Zero(d), sum_b = sum_a, sum_c = sum_a, sum_e = sum_a;
    for (int64_t p = 0; p < whole; p += lanes) {
      const V x = hn::LoadU(d, row.query + p);
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
    const float* key = row.keys + j * row.key_row;
    V sum = hn::Zero(d);
    for (int64_t p = 0; p < whole; p += lanes) {
      sum = hn::MulAdd(hn::LoadU(d, row.query + p), hn::LoadU(d, key + p), sum);
    }
    scores[j] = (hn::GetLane(hn::SumOfLanes(d, sum)) + rest(key)) * factor;
  }
}

float row_soften(float* scores, int64_t count, float* most, float* sum) {
  const D d;
  const int64_t lanes = lane_count();
  V greatest = hn::Set(d, *most);
  int64_t j = 0;
  for (; j + lanes <= count; j += lanes) greatest = hn::Max(greatest, hn::LoadU(d, scores + j));
  float limit = hn::GetLane(hn::MaxOfLanes(d, greatest));
  for (; j < count; ++j) limit = scores[j] > limit ? scores[j] : limit;
  const float offset = limit == kNone ? 0 : limit;
  const V off = hn::Set(d, offset);
  V total = hn::Zero(d);
  for (j = 0; j + lanes <= count; j += lanes) {
    const V y = exp_of_nonpositive(hn::Sub(hn::LoadU(d, scores + j), off));
    hn::StoreU(y, d, scores + j);
    total = hn::Add(total, y);
  }
  float rest = 0;
  for (; j < count; ++j) {
    scores[j] = hn::GetLane(exp_of_nonpositive(hn::Set(d, scores[j] - offset)));
    rest += scores[j];
  }
  const float factor = hn::GetLane(exp_of_nonpositive(hn::Set(d, *most - offset)));
  *most = limit;
  *sum = *sum * factor + hn::GetLane(hn::SumOfLanes(d, total)) + rest;
  return factor;
}

// Processes kVectors vectors of columns. Each has two sums, which hide the latency of an addition.
template <int kVectors>
HWY_INLINE void sum_columns(const Row& row, const float* scores, float* dst, int64_t column, float factor) {
  const D d;
  const int64_t lanes = lane_count();
  const V by = hn::Set(d, factor);
  V even[kVectors];
  V odd[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    even[v] = hn::Mul(hn::LoadU(d, dst + column + v * lanes), by);
    odd[v] = hn::Zero(d);
  }
  const float* at = row.values + column;
  int64_t j = 0;
  for (; j + 2 <= row.count; j += 2, at += 2 * row.value_row) {
    const V x = hn::Set(d, scores[j]);
    const V y = hn::Set(d, scores[j + 1]);
    for (int v = 0; v < kVectors; ++v) {
      even[v] = hn::MulAdd(x, hn::LoadU(d, at + v * lanes), even[v]);
      odd[v] = hn::MulAdd(y, hn::LoadU(d, at + row.value_row + v * lanes), odd[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    V sum = hn::Add(even[v], odd[v]);
    if (j < row.count) sum = hn::MulAdd(hn::Set(d, scores[j]), hn::LoadU(d, at + v * lanes), sum);
    hn::StoreU(sum, d, dst + column + v * lanes);
  }
}

void row_sum(const Row& row, const float* scores, float* dst, float factor) {
  const int64_t lanes = lane_count();
  int64_t column = 0;
  for (; column + 4 * lanes <= row.columns; column += 4 * lanes) sum_columns<4>(row, scores, dst, column, factor);
  for (; column + lanes <= row.columns; column += lanes) sum_columns<1>(row, scores, dst, column, factor);
  for (; column < row.columns; ++column) {
    float sum = dst[column] * factor;
    for (int64_t j = 0; j < row.count; ++j) sum += scores[j] * row.values[j * row.value_row + column];
    dst[column] = sum;
  }
}

const AttentionKernels& kernels_of_attention() {
  static const AttentionKernels table = {static_cast<int32_t>(hn::Lanes(D())),
                                         transpose,
                                         cap,
                                         add,
                                         add_to_keys,
                                         mask,
                                         soften,
                                         scale,
                                         row_scores,
                                         row_soften,
                                         scale_row,
                                         row_sum};
  return table;
}

}  // namespace
}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

const AttentionKernels& attention_kernels(SimdLevel level) { return TENON_CPU_DISPATCH(level, kernels_of_attention)(); }

}  // namespace tenon::provider::cpu
#endif
