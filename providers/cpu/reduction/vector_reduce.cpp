// The kernels of reduce and arg_reduce over f32 and f64, and of f16 and bf16 reduced in f32, compiled once per dispatch
// target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/reduction/vector_reduce.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ep_api/ep_api.h"
#include "hwy/cache_control.h"
#include "providers/cpu/elementwise/narrow-inl.h"
#include "providers/cpu/reduction/kernel.h"
#include "providers/cpu/simd/prelude-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

template <class T>
using D = hn::ScalableTag<T>;
template <class T>
using V = hn::Vec<D<T>>;
template <class T>
using DI = hn::RebindToSigned<D<T>>;

template <class T>
HWY_INLINE int64_t lane_count() {
  return static_cast<int64_t>(hn::Lanes(D<T>()));
}

// The type in which elements stored as S are reduced.
template <class S>
using Computed = std::conditional_t<is_narrow_float<S>, float, S>;

template <class S>
HWY_INLINE V<Computed<S>> load(const S* src) {
  if constexpr (is_narrow_float<S>)
    return load_narrow(src);
  else
    return hn::LoadU(D<S>(), src);
}

template <class S>
HWY_INLINE V<Computed<S>> load_one(const S* src) {
  if constexpr (is_narrow_float<S>)
    return hn::Set(D<float>(), to_f32(*src));
  else
    return hn::Set(D<S>(), *src);
}

// Twice as many elements as a vector has, in any order.
template <class S>
HWY_INLINE void load_two(const S* src, V<Computed<S>>& a, V<Computed<S>>& b) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if constexpr (std::is_same_v<S, Bf16Bits>) {
    // The odd elements are the upper halves of 32-bit words, the even ones the lower halves.
    const hn::RebindToUnsigned<D<float>> bits;
    const auto both =
        hn::BitCast(bits, hn::LoadU(hn::Repartition<uint16_t, D<float>>(), reinterpret_cast<const uint16_t*>(src)));
    a = hn::BitCast(D<float>(), hn::ShiftLeft<16>(both));
    b = hn::BitCast(D<float>(), hn::And(both, hn::Set(bits, 0xffff0000U)));
    return;
  }
#endif
  a = load(src);
  b = load(src + lane_count<Computed<S>>());
}

template <int32_t id>
using Op = std::integral_constant<int32_t, id>;

// The reductions of scalar_ops.def over vectors. Reductions of bool have no vector form.
#define EP_REDUCE(name, id, domain, init, map, combine, finish)                           \
  template <class T>                                                                      \
  HWY_INLINE T reduce_init(Op<id>) {                                                      \
    [[maybe_unused]] auto ep_lit = [](double v) { return static_cast<T>(v); };            \
    [[maybe_unused]] auto ep_lowest = [] { return -std::numeric_limits<T>::infinity(); }; \
    [[maybe_unused]] auto ep_highest = [] { return std::numeric_limits<T>::infinity(); }; \
    return init;                                                                          \
  }                                                                                       \
  template <class W>                                                                      \
  HWY_INLINE W reduce_map(Op<id>, W x) {                                                  \
    [[maybe_unused]] auto ep_lit = [](double v) HWY_ATTR { return lit<W>(v); };           \
    return map;                                                                           \
  }                                                                                       \
  template <class W>                                                                      \
  HWY_INLINE W reduce_combine(Op<id>, W x, W y) {                                         \
    return TENON_COMBINE_##domain(combine);                                               \
  }                                                                                       \
  template <class W>                                                                      \
  HWY_INLINE W reduce_finish(Op<id>, W x, [[maybe_unused]] W n) {                         \
    return finish;                                                                        \
  }
#define TENON_COMBINE_NUMERIC(combine) combine
#define TENON_COMBINE_FLOAT(combine) combine
#define TENON_COMBINE_BOOL(combine) ep_max(x, y)
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
#undef TENON_COMBINE_NUMERIC
#undef TENON_COMBINE_FLOAT
#undef TENON_COMBINE_BOOL

// Combines all lanes.
template <int32_t op, class T>
HWY_INLINE T fold(V<T> values) {
  const D<T> d;
  const Op<op> row;
  size_t step = 1;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    values = reduce_combine(row, values, hn::Shuffle2301(values));
    values = reduce_combine(row, values, hn::Shuffle1032(values));
    step = 4;
  } else {
    values = reduce_combine(row, values, hn::Shuffle01(values));
    step = 2;
  }
#endif
  HWY_ALIGN T parts[hn::MaxLanes(D<T>())];
  hn::Store(values, d, parts);
  V<T> result = hn::Set(d, parts[0]);
  for (size_t lane = step; lane < hn::Lanes(d); lane += step)
    result = reduce_combine(row, result, hn::Set(d, parts[lane]));
  return hn::GetLane(result);
}

// Combines the last elements of a row, fewer than a vector has.
template <int32_t op, class S>
HWY_INLINE V<Computed<S>> combine_rest(V<Computed<S>> values, const S* src, int64_t n) {
  using T = Computed<S>;
  const D<T> d;
  const Op<op> row;
  HWY_ALIGN S padded[hn::MaxLanes(D<T>())] = {};
  std::copy_n(src, n, padded);
  const auto mapped = reduce_combine(row, values, reduce_map(row, load(padded)));
  return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(n)), mapped, values);
}

template <int32_t op, class S>
HWY_INLINE Computed<S> reduce_row(const S* src, int64_t n) {
  using T = Computed<S>;
  const D<T> d;
  const int64_t lanes = lane_count<T>();
  const Op<op> row;
  V<T> values = hn::Set(d, reduce_init<T>(row));
  int64_t i = 0;
  if (n >= 4 * lanes) {
    V<T> values_1 = values;
    V<T> values_2 = values;
    V<T> values_3 = values;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      V<T> a, b, c, e;
      load_two(src + i, a, b);
      load_two(src + i + 2 * lanes, c, e);
      values = reduce_combine(row, values, reduce_map(row, a));
      values_1 = reduce_combine(row, values_1, reduce_map(row, b));
      values_2 = reduce_combine(row, values_2, reduce_map(row, c));
      values_3 = reduce_combine(row, values_3, reduce_map(row, e));
    }
    values = reduce_combine(row, reduce_combine(row, values, values_1), reduce_combine(row, values_2, values_3));
  }
  for (; i + lanes <= n; i += lanes) values = reduce_combine(row, values, reduce_map(row, load(src + i)));
  if constexpr (is_narrow_float<S>) {
    // One narrow float costs as much as a vector of them.
    if (i < n) values = combine_rest<op>(values, src + i, n - i);
    return fold<op, T>(values);
  }
  V<T> result = hn::Set(d, n < lanes ? reduce_init<T>(row) : fold<op, T>(values));
  for (; i < n; ++i) result = reduce_combine(row, result, reduce_map(row, load_one(src + i)));
  return hn::GetLane(result);
}

template <int32_t op, class S>
Computed<S> reduce_block(const void* src, int64_t n) {
  return reduce_row<op>(static_cast<const S*>(src), n);
}

// Reduces short rows, one per lane.
template <int32_t op, class T>
HWY_INLINE void reduce_short_rows(T* dst, const T* src, int64_t row_stride, int64_t rows, int64_t n) {
  const D<T> d;
  const DI<T> di;
  const Op<op> row;
  const int64_t lanes = lane_count<T>();
  const auto places = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<hn::TFromD<DI<T>>>(row_stride)));
  int64_t i = 0;
  for (; i + lanes <= rows; i += lanes) {
    V<T> values = hn::Set(d, reduce_init<T>(row));
    for (int64_t k = 0; k < n; ++k) {
      values = reduce_combine(row, values, reduce_map(row, hn::GatherIndex(d, src + i * row_stride + k, places)));
    }
    hn::StoreU(values, d, dst + i);
  }
  for (; i < rows; ++i) {
    V<T> values = hn::Set(d, reduce_init<T>(row));
    for (int64_t k = 0; k < n; ++k)
      values = reduce_combine(row, values, reduce_map(row, hn::Set(d, src[i * row_stride + k])));
    dst[i] = hn::GetLane(values);
  }
}

template <int32_t op, class T>
void reduce_finish_all(T* values, int64_t n, int64_t count) {
  const D<T> d;
  const Op<op> row;
  const int64_t lanes = lane_count<T>();
  const V<T> elements = hn::Set(d, static_cast<T>(count));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(reduce_finish(row, hn::LoadU(d, values + i), elements), d, values + i);
  for (; i < n; ++i) values[i] = hn::GetLane(reduce_finish(row, hn::Set(d, values[i]), elements));
}

template <int32_t op, class S>
void reduce_rows(Computed<S>* dst, const void* from, int64_t row_stride, int64_t rows, int64_t n) {
  const S* src = static_cast<const S*>(from);
  if constexpr (!is_narrow_float<S>) {
    if (n < shortest_row && row_stride < (int64_t{1} << 20)) {
      return reduce_short_rows<op, S>(dst, src, row_stride, rows, n);
    }
  }
  for (int64_t i = 0; i < rows; ++i) dst[i] = reduce_row<op>(src + i * row_stride, n);
}

// Processes `width` vectors of columns, whose values stay in registers.
template <int32_t op, int width, class S>
HWY_INLINE void reduce_column_vectors(Computed<S>* sums, const S* src, int64_t row_stride, int64_t rows) {
  using T = Computed<S>;
  const D<T> d;
  const Op<op> row;
  const int64_t lanes = lane_count<T>();
  V<T> values[width];
  for (int k = 0; k < width; ++k) values[k] = hn::LoadU(d, sums + k * lanes);
  for (int64_t r = 0; r < rows; ++r, src += row_stride) {
    for (int k = 0; k < width; ++k) values[k] = reduce_combine(row, values[k], reduce_map(row, load(src + k * lanes)));
  }
  for (int k = 0; k < width; ++k) hn::StoreU(values[k], d, sums + k * lanes);
}

// With more columns, whole rows are read in order, because sequential reads are faster.
constexpr int64_t columns_in_registers = 256;

// Adds `count` rows to `sums`, one sum per column, and prefetches the rows after them.
template <int32_t op, int count, class S>
HWY_INLINE void reduce_rows_into(Computed<S>* HWY_RESTRICT sums, const S* HWY_RESTRICT src, int64_t row_stride,
                                 int64_t n) {
  using T = Computed<S>;
  const D<T> d;
  const Op<op> row;
  const int64_t lanes = lane_count<T>();
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    V<T> sum = hn::LoadU(d, sums + j);
    for (int r = 0; r < count; ++r) {
      hwy::Prefetch(src + (r + count) * row_stride + j);
      sum = reduce_combine(row, sum, reduce_map(row, load(src + r * row_stride + j)));
    }
    hn::StoreU(sum, d, sums + j);
  }
  for (; j < n; ++j) {
    V<T> sum = hn::Set(d, sums[j]);
    for (int r = 0; r < count; ++r) sum = reduce_combine(row, sum, reduce_map(row, load_one(src + r * row_stride + j)));
    sums[j] = hn::GetLane(sum);
  }
}

template <int32_t op, class S>
void reduce_columns(Computed<S>* sums, const void* from, int64_t row_stride, int64_t rows, int64_t n) {
  using T = Computed<S>;
  constexpr int wide = is_narrow_float<S> ? 8 : 4;  // vectors that fill as many cache lines
  const S* src = static_cast<const S*>(from);
  const D<T> d;
  const Op<op> row;
  const int64_t lanes = lane_count<T>();
  if (n > columns_in_registers) {
    constexpr int together = 8;
    int64_t r = 0;
    for (; r + together <= rows; r += together)
      reduce_rows_into<op, together>(sums, src + r * row_stride, row_stride, n);
    for (; r < rows; ++r) reduce_rows_into<op, 1>(sums, src + r * row_stride, row_stride, n);
    return;
  }
  int64_t j = 0;
  for (; j + wide * lanes <= n; j += wide * lanes) reduce_column_vectors<op, wide>(sums + j, src + j, row_stride, rows);
  for (; j + lanes <= n; j += lanes) reduce_column_vectors<op, 1>(sums + j, src + j, row_stride, rows);
  for (; j < n; ++j) {
    V<T> value = hn::Set(d, sums[j]);
    for (int64_t r = 0; r < rows; ++r)
      value = reduce_combine(row, value, reduce_map(row, load_one(src + r * row_stride + j)));
    sums[j] = hn::GetLane(value);
  }
}

// True where `x` replaces `best`: a greater (lesser) number, or the first NaN; with `last` also an equal one.
template <bool greatest, bool last, class W>
HWY_INLINE hn::Mask<hn::DFromV<W>> beyond(W x, W best) {
  const auto number =
      last ? (greatest ? hn::Ge(x, best) : hn::Le(x, best)) : (greatest ? hn::Gt(x, best) : hn::Lt(x, best));
  const auto nan = hn::IsNaN(x);
  return hn::Or(number, last ? nan : hn::AndNot(hn::IsNaN(best), nan));
}

// Returns the position of the first (or last) element that passes the test; 0 if none does.
template <class S, class Test>
HWY_INLINE int64_t find(const S* src, int64_t n, bool last, const Test& test) {
  const D<Computed<S>> d;
  const int64_t lanes = lane_count<Computed<S>>();
  const int64_t whole = n / lanes * lanes;
  if (!last) {
    for (int64_t i = 0; i < whole; i += lanes) {
      const auto lane = hn::FindFirstTrue(d, test(load(src + i)));
      if (lane >= 0) return i + lane;
    }
    for (int64_t i = whole; i < n; ++i) {
      if (hn::FindFirstTrue(d, test(load_one(src + i))) >= 0) return i;
    }
    return 0;
  }
  for (int64_t i = n - 1; i > 0; --i) {
    if (hn::FindFirstTrue(d, test(load_one(src + i))) >= 0) return i;
  }
  return 0;
}

template <bool greatest, class S>
int64_t arg_row(const void* from, int64_t n, bool last) {
  using T = Computed<S>;
  constexpr int32_t op = greatest ? EP_REDUCE_max : EP_REDUCE_min;
  const S* src = static_cast<const S*>(from);
  const D<T> d;
  const V<T> best = hn::Set(d, reduce_row<op>(src, n));
  if (hn::FindFirstTrue(d, hn::IsNaN(best)) >= 0)
    return find(src, n, last, [](V<T> x) HWY_ATTR { return hn::IsNaN(x); });
  return find(src, n, last, [best](V<T> x) HWY_ATTR { return hn::Eq(x, best); });
}

// True if `x` replaces `best`, without branches.
template <bool greatest, bool last, class T>
HWY_INLINE bool replaces_one(T x, T best) {
  const bool number = greatest ? (last ? x >= best : x > best) : (last ? x <= best : x < best);
  const bool nan = x != x, best_nan = best != best;
  return (number && !best_nan) || (nan && (last || !best_nan));
}

// True where `x` replaces `best`. A number does not replace NaN.
template <bool greatest, bool last, class W>
HWY_INLINE hn::Mask<hn::DFromV<W>> takes(W x, W best) {
  const auto better = beyond<greatest, last>(x, best);
  return last ? hn::AndNot(hn::AndNot(hn::IsNaN(x), hn::IsNaN(best)), better) : better;
}

// Short rows, one per lane.
template <bool greatest, bool last, class T>
HWY_INLINE int64_t short_arg_row_vectors(int64_t* positions, const T* src, int64_t row_stride, int64_t rows,
                                         int64_t n) {
  const D<T> d;
  const DI<T> di;
  const int64_t lanes = lane_count<T>();
  const auto places = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<hn::TFromD<DI<T>>>(row_stride)));
  HWY_ALIGN hn::TFromD<DI<T>> numbers[hn::MaxLanes(D<T>())];
  int64_t i = 0;
  for (; i + lanes <= rows; i += lanes) {
    V<T> best = hn::GatherIndex(d, src + i * row_stride, places);
    auto at = hn::Zero(di);
    for (int64_t k = 1; k < n; ++k) {
      const V<T> x = hn::GatherIndex(d, src + i * row_stride + k, places);
      const auto taken = takes<greatest, last>(x, best);
      best = hn::IfThenElse(taken, x, best);
      at = hn::IfThenElse(hn::RebindMask(di, taken), hn::Set(di, static_cast<hn::TFromD<DI<T>>>(k)), at);
    }
    hn::Store(at, di, numbers);
    for (int64_t lane = 0; lane < lanes; ++lane) positions[i + lane] = numbers[lane];
  }
  return i;
}

template <bool greatest, bool last, class S>
HWY_INLINE void short_arg_rows(int64_t* positions, const S* src, int64_t row_stride, int64_t rows, int64_t n) {
  using T = Computed<S>;
  int64_t done = 0;
  if constexpr (!is_narrow_float<S>) {
    if (row_stride < (int64_t{1} << 20))
      done = short_arg_row_vectors<greatest, last>(positions, src, row_stride, rows, n);
  }
  src += done * row_stride;
  for (int64_t i = done; i < rows; ++i, src += row_stride) {
    T best = hn::GetLane(load_one(src));
    int64_t at = 0;
    for (int64_t k = 1; k < n; ++k) {
      const T x = hn::GetLane(load_one(src + k));
      const bool better = replaces_one<greatest, last>(x, best);
      best = better ? x : best;
      at = better ? k : at;
    }
    positions[i] = at;
  }
}

template <bool greatest, class S>
void arg_rows(int64_t* positions, const void* from, int64_t row_stride, int64_t rows, int64_t n, bool last) {
  const S* src = static_cast<const S*>(from);
  if (n >= shortest_row) {
    for (int64_t i = 0; i < rows; ++i) positions[i] = arg_row<greatest, S>(src + i * row_stride, n, last);
  } else if (last) {
    short_arg_rows<greatest, true>(positions, src, row_stride, rows, n);
  } else {
    short_arg_rows<greatest, false>(positions, src, row_stride, rows, n);
  }
}

template <bool greatest, bool last, int width, class S>
HWY_INLINE void arg_column_vectors(int64_t* positions, const S* src, int64_t row_stride, int64_t rows) {
  using T = Computed<S>;
  const DI<T> di;
  const int64_t lanes = lane_count<T>();
  V<T> best[width];
  hn::Vec<DI<T>> at[width];
  for (int k = 0; k < width; ++k) {
    best[k] = load(src + k * lanes);
    at[k] = hn::Zero(di);
  }
  for (int64_t r = 1; r < rows; ++r) {
    src += row_stride;
    const auto here = hn::Set(di, static_cast<hn::TFromD<DI<T>>>(r));
    for (int k = 0; k < width; ++k) {
      const V<T> x = load(src + k * lanes);
      const auto taken = takes<greatest, last>(x, best[k]);
      best[k] = hn::IfThenElse(taken, x, best[k]);
      at[k] = hn::IfThenElse(hn::RebindMask(di, taken), here, at[k]);
    }
  }
  HWY_ALIGN hn::TFromD<DI<T>> numbers[hn::MaxLanes(D<T>())];
  for (int k = 0; k < width; ++k) {
    hn::Store(at[k], di, numbers);
    for (int64_t lane = 0; lane < lanes; ++lane) positions[k * lanes + lane] = numbers[lane];
  }
}

// For columns that fill at least one vector.
template <bool greatest, bool last, class S>
HWY_INLINE void arg_many_columns(int64_t* positions, const S* src, int64_t row_stride, int64_t rows, int64_t n) {
  constexpr int wide = is_narrow_float<S> ? 4 : 2;  // vectors that have as many bytes
  const int64_t lanes = lane_count<Computed<S>>();
  int64_t j = 0;
  for (; j + wide * lanes <= n; j += wide * lanes)
    arg_column_vectors<greatest, last, wide>(positions + j, src + j, row_stride, rows);
  for (; j + lanes <= n; j += lanes) arg_column_vectors<greatest, last, 1>(positions + j, src + j, row_stride, rows);
  // The last vector begins among columns that are done.
  if (j < n) arg_column_vectors<greatest, last, 1>(positions + n - lanes, src + n - lanes, row_stride, rows);
}

// For fewer columns than a vector has lanes: as many rows as a vector has lanes form one row of more columns. Rows with
// gaps are copied first.
template <bool greatest, bool last, class S>
HWY_INLINE void arg_few_columns(int64_t* positions, const S* src, int64_t row_stride, int64_t rows, int64_t n) {
  using T = Computed<S>;
  constexpr int64_t room = 4096;  // elements in the L1 cache
  const int64_t lanes = lane_count<T>(), width = n * lanes, most_groups = room / width;
  S packed[room];
  T best[hn::MaxLanes(D<T>())];
  int64_t candidates[most_arg_columns];
  static_assert(hn::MaxLanes(D<T>()) * hn::MaxLanes(D<T>()) <= most_arg_columns);
  const auto consider = [&](int64_t j, int64_t row) HWY_ATTR {
    const T x = hn::GetLane(load_one(src + row * row_stride + j));
    const bool equal = x == best[j] || (x != x && best[j] != best[j]);
    const bool beside = last ? row > positions[j] : row < positions[j];
    if (equal ? !beside : !replaces_one<greatest, false>(x, best[j])) return;
    best[j] = x;
    positions[j] = row;
  };
  for (int64_t j = 0; j < n; ++j) {
    best[j] = hn::GetLane(load_one(src + j));
    positions[j] = 0;
  }
  int64_t row = 0;
  while (rows - row >= lanes) {
    const int64_t groups = std::min((rows - row) / lanes, most_groups);
    const S* from = src + row * row_stride;
    if (row_stride != n) {
      for (int64_t r = 0; r < groups * lanes; ++r) {
        for (int64_t j = 0; j < n; ++j) packed[r * n + j] = from[r * row_stride + j];
      }
      from = packed;
    }
    arg_many_columns<greatest, last>(candidates, from, width, groups, width);
    for (int64_t member = 0; member < lanes; ++member) {
      for (int64_t j = 0; j < n; ++j) consider(j, row + candidates[member * n + j] * lanes + member);
    }
    row += groups * lanes;
  }
  for (; row < rows; ++row) {
    for (int64_t j = 0; j < n; ++j) consider(j, row);
  }
}

template <bool greatest, bool last, class S>
HWY_INLINE void arg_columns_of(int64_t* positions, const S* src, int64_t row_stride, int64_t rows, int64_t n) {
  if (n < lane_count<Computed<S>>())
    arg_few_columns<greatest, last>(positions, src, row_stride, rows, n);
  else
    arg_many_columns<greatest, last>(positions, src, row_stride, rows, n);
}

template <bool greatest, class S>
void arg_columns(int64_t* positions, const void* from, int64_t row_stride, int64_t rows, int64_t n, bool last) {
  const S* src = static_cast<const S*>(from);
  return last ? arg_columns_of<greatest, true>(positions, src, row_stride, rows, n)
              : arg_columns_of<greatest, false>(positions, src, row_stride, rows, n);
}

}  // namespace

template <class S>
ReduceKernels<Computed<S>> reduce_table_of(int32_t op) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) \
  case id:                                                      \
    return {reduce_block<id, S>, reduce_columns<id, S>, reduce_rows<id, S>};
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: return {};
  }
}

ReduceKernels<float> reduce_f32(int32_t op, int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_f32: return reduce_table_of<float>(op);
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    case EP_DTYPE_f16: return reduce_table_of<F16Bits>(op);
    case EP_DTYPE_bf16: return reduce_table_of<Bf16Bits>(op);
#endif
    default: return {};
  }
}
ReduceKernels<double> reduce_f64(int32_t op, int32_t dtype) {
  return dtype == EP_DTYPE_f64 ? reduce_table_of<double>(op) : ReduceKernels<double>{};
}

using Finish = void (*)(float*, int64_t, int64_t);
Finish finish_f32(int32_t op) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) \
  case id:                                                      \
    return reduce_finish_all<id, float>;
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: return nullptr;
  }
}

template <class S>
ArgReduceKernels arg_table_of(bool greatest) {
  if (greatest) return {arg_row<true, S>, arg_columns<true, S>, arg_rows<true, S>};
  return {arg_row<false, S>, arg_columns<false, S>, arg_rows<false, S>};
}

ArgReduceKernels arg_table(bool greatest, int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_f32: return arg_table_of<float>(greatest);
    case EP_DTYPE_f64: return arg_table_of<double>(greatest);
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    case EP_DTYPE_f16: return arg_table_of<F16Bits>(greatest);
    case EP_DTYPE_bf16: return arg_table_of<Bf16Bits>(greatest);
#endif
    default: return {};
  }
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

template <>
ReduceKernels<float> reduce_kernels(SimdLevel level, int32_t op, int32_t dtype) {
  return TENON_CPU_DISPATCH(level, reduce_f32)(op, dtype);
}
template <>
ReduceKernels<double> reduce_kernels(SimdLevel level, int32_t op, int32_t dtype) {
  return TENON_CPU_DISPATCH(level, reduce_f64)(op, dtype);
}

void (*reduce_finish(SimdLevel level, int32_t op))(float*, int64_t, int64_t) {
  return TENON_CPU_DISPATCH(level, finish_f32)(op);
}

ArgReduceKernels arg_reduce_kernels(SimdLevel level, bool greatest, int32_t dtype) {
  return TENON_CPU_DISPATCH(level, arg_table)(greatest, dtype);
}

}  // namespace tenon::provider::cpu
#endif
