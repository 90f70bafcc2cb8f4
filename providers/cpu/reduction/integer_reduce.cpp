// The kernels of reduce and arg_reduce over integers, in their own type, compiled once per dispatch target. Sums and
// products wrap, so the order and the width do not matter. The compiler vectorises the loops.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/reduction/integer_reduce.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ep_api/ep_api.h"
#include "hwy/highway.h"
#include "providers/cpu/reduction/kernel.h"
#include "sdk/provider/scalar_rows.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

template <int32_t op, class T>
inline T integer_row(const T* src, int64_t n) {
  const scalar::Op<op> row;
  T value = scalar::reduce_init<T>(row);
  for (int64_t i = 0; i < n; ++i) value = scalar::reduce_combine(row, value, scalar::reduce_map(row, src[i]));
  return value;
}

template <int32_t op, class T>
T integer_block(const void* src, int64_t n) {
  return integer_row<op>(static_cast<const T*>(src), n);
}

template <int32_t op, class T>
void integer_rows(T* dst, const void* from, int64_t row_stride, int64_t rows, int64_t n) {
  const T* src = static_cast<const T*>(from);
  const scalar::Op<op> row;
  if (n > shortest_row) {
    for (int64_t i = 0; i < rows; ++i) dst[i] = integer_row<op>(src + i * row_stride, n);
    return;
  }
  for (int64_t i = 0; i < rows; ++i, src += row_stride) {
    T value = scalar::reduce_combine(row, scalar::reduce_init<T>(row), scalar::reduce_map(row, src[0]));
    for (int64_t k = 1; k < n; ++k) value = scalar::reduce_combine(row, value, scalar::reduce_map(row, src[k]));
    dst[i] = value;
  }
}

template <int32_t op, class T>
void integer_columns(T* HWY_RESTRICT values, const void* from, int64_t row_stride, int64_t rows, int64_t n) {
  const T* HWY_RESTRICT src = static_cast<const T*>(from);
  const scalar::Op<op> row;
  const auto join = [row](T x, T y) { return scalar::reduce_combine(row, x, scalar::reduce_map(row, y)); };
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4, src += 4 * row_stride) {
    const T* const b = src + row_stride;
    const T* const c = b + row_stride;
    const T* const d = c + row_stride;
    for (int64_t i = 0; i < n; ++i) values[i] = join(join(join(join(values[i], src[i]), b[i]), c[i]), d[i]);
  }
  for (; r < rows; ++r, src += row_stride) {
    for (int64_t i = 0; i < n; ++i) values[i] = join(values[i], src[i]);
  }
}

template <int32_t op, class T>
constexpr ReduceKernels<T> kernels_if_defined() {
  constexpr scalar::Domain domain = scalar::reduce_facts(op).domain;
  if constexpr (scalar::in_domain<T>(domain) || domain == scalar::Domain::BOOL)
    return {integer_block<op, T>, integer_columns<op, T>, integer_rows<op, T>};
  else
    return {};
}

// Returns the position of the first (or last) element that equals `value`.
template <class T>
int64_t find_integer(const T* src, int64_t n, T value, bool last) {
  constexpr int64_t block = 256;
  for (int64_t done = 0; done < n; done += block) {
    const int64_t count = std::min(block, n - done), begin = last ? n - done - count : done;
    bool found = false;
    for (int64_t i = 0; i < count; ++i) found |= src[begin + i] == value;
    if (!found) continue;
    int64_t i = last ? count - 1 : 0;
    while (src[begin + i] != value) i += last ? -1 : 1;
    return begin + i;
  }
  return 0;
}

template <bool greatest, bool last, class T>
inline bool replaces(T x, T best) {
  if constexpr (last)
    return greatest ? x >= best : x <= best;
  else
    return greatest ? x > best : x < best;
}

template <bool greatest, class T>
int64_t integer_arg_row(const void* from, int64_t n, bool last) {
  const T* src = static_cast<const T*>(from);
  return find_integer(src, n, integer_row < greatest ? EP_REDUCE_max : EP_REDUCE_min > (src, n), last);
}

template <bool greatest, bool last, class T>
inline void short_arg_rows(int64_t* positions, const T* src, int64_t row_stride, int64_t rows, int64_t n) {
  for (int64_t i = 0; i < rows; ++i, src += row_stride) {
    T best = src[0];
    int64_t at = 0;
    for (int64_t k = 1; k < n; ++k) {
      const bool better = replaces<greatest, last>(src[k], best);
      best = better ? src[k] : best;
      at = better ? k : at;
    }
    positions[i] = at;
  }
}

template <bool greatest, class T>
void integer_arg_rows(int64_t* positions, const void* from, int64_t row_stride, int64_t rows, int64_t n, bool last) {
  const T* src = static_cast<const T*>(from);
  if (n > shortest_row) {
    for (int64_t i = 0; i < rows; ++i) positions[i] = integer_arg_row<greatest, T>(src + i * row_stride, n, last);
  } else if (last) {
    short_arg_rows<greatest, true>(positions, src, row_stride, rows, n);
  } else {
    short_arg_rows<greatest, false>(positions, src, row_stride, rows, n);
  }
}

// Positions within a part of the rows are integers as wide as the elements, so that vectors hold as many of both.
template <bool greatest, bool last, class T>
void arg_columns_part(int64_t* positions, const T* src, int64_t row_stride, int64_t rows, int64_t n) {
  using Place = std::make_signed_t<T>;
  constexpr auto part = std::min<int64_t>(std::numeric_limits<Place>::max(), int64_t{1} << 30);
  T best[most_arg_columns], of_part[most_arg_columns];
  Place places[most_arg_columns];
  for (int64_t begin = 0; begin < rows; begin += part) {
    const int64_t count = std::min(part, rows - begin);
    const T* HWY_RESTRICT row = src + begin * row_stride;
    for (int64_t i = 0; i < n; ++i) of_part[i] = row[i];
    std::fill_n(places, n, Place{0});
    for (int64_t r = 1; r < count; ++r) {
      row += row_stride;
      const auto here = static_cast<Place>(r);
      for (int64_t i = 0; i < n; ++i) {
        const T x = row[i];
        const bool better = replaces<greatest, last>(x, of_part[i]);
        of_part[i] = better ? x : of_part[i];
        places[i] = better ? here : places[i];
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      if (begin > 0 && !replaces<greatest, last>(of_part[i], best[i])) continue;
      best[i] = of_part[i];
      positions[i] = begin + places[i];
    }
  }
}

template <bool greatest, bool last, class T>
void arg_columns_of_integers(int64_t* positions, const T* src, int64_t row_stride, int64_t rows, int64_t n) {
  constexpr int64_t few = 64;
  // Groups of short rows without gaps are rows of more columns; each column of the result has a candidate per member.
  const int64_t members = n < few && row_stride == n ? std::min(most_arg_columns / n, rows) : 1;
  if (members == 1) return arg_columns_part<greatest, last>(positions, src, row_stride, rows, n);
  int64_t candidates[most_arg_columns];
  const int64_t groups = rows / members;
  arg_columns_part<greatest, last>(candidates, src, members * n, groups, members * n);
  for (int64_t j = 0; j < n; ++j) {
    int64_t at = candidates[j] * members;
    const auto consider = [&](int64_t row) {
      const T x = src[row * n + j], best = src[at * n + j];
      const bool beside = last ? row > at : row < at;
      if (x == best ? beside : replaces<greatest, false>(x, best)) at = row;
    };
    for (int64_t member = 1; member < members; ++member) consider(candidates[member * n + j] * members + member);
    for (int64_t row = groups * members; row < rows; ++row) consider(row);
    positions[j] = at;
  }
}

template <bool greatest, class T>
void integer_arg_columns(int64_t* positions, const void* from, int64_t row_stride, int64_t rows, int64_t n, bool last) {
  const T* src = static_cast<const T*>(from);
  return last ? arg_columns_of_integers<greatest, true>(positions, src, row_stride, rows, n)
              : arg_columns_of_integers<greatest, false>(positions, src, row_stride, rows, n);
}

template <class T>
ArgReduceKernels integer_arg_kernels(bool greatest) {
  if (greatest) return {integer_arg_row<true, T>, integer_arg_columns<true, T>, integer_arg_rows<true, T>};
  return {integer_arg_row<false, T>, integer_arg_columns<false, T>, integer_arg_rows<false, T>};
}

}  // namespace

template <class T>
ReduceKernels<T> integer_kernels(int32_t op) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) \
  case id:                                                      \
    return kernels_if_defined<id, T>();
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: return {};
  }
}

ArgReduceKernels integer_arg_table(bool greatest, int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_bool:
    case EP_DTYPE_u8: return integer_arg_kernels<uint8_t>(greatest);
    case EP_DTYPE_i8: return integer_arg_kernels<int8_t>(greatest);
    case EP_DTYPE_i16: return integer_arg_kernels<int16_t>(greatest);
    case EP_DTYPE_i32: return integer_arg_kernels<int32_t>(greatest);
    case EP_DTYPE_i64: return integer_arg_kernels<int64_t>(greatest);
    case EP_DTYPE_u16: return integer_arg_kernels<uint16_t>(greatest);
    case EP_DTYPE_u32: return integer_arg_kernels<uint32_t>(greatest);
    case EP_DTYPE_u64: return integer_arg_kernels<uint64_t>(greatest);
    default: return {};
  }
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

template <class T>
ReduceKernels<T> integer_reduce_kernels(SimdLevel level, int32_t op) {
  return TENON_CPU_DISPATCH(level, integer_kernels<T>)(op);
}
template ReduceKernels<int8_t> integer_reduce_kernels(SimdLevel, int32_t);
template ReduceKernels<int16_t> integer_reduce_kernels(SimdLevel, int32_t);
template ReduceKernels<int32_t> integer_reduce_kernels(SimdLevel, int32_t);
template ReduceKernels<int64_t> integer_reduce_kernels(SimdLevel, int32_t);
template ReduceKernels<uint8_t> integer_reduce_kernels(SimdLevel, int32_t);
template ReduceKernels<uint16_t> integer_reduce_kernels(SimdLevel, int32_t);
template ReduceKernels<uint32_t> integer_reduce_kernels(SimdLevel, int32_t);
template ReduceKernels<uint64_t> integer_reduce_kernels(SimdLevel, int32_t);

ArgReduceKernels integer_arg_reduce_kernels(SimdLevel level, bool greatest, int32_t dtype) {
  return TENON_CPU_DISPATCH(level, integer_arg_table)(greatest, dtype);
}

}  // namespace tenon::provider::cpu
#endif
