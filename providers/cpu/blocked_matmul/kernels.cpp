// The kernels of a product in blocks, compiled once per dispatch target. A tile of the result stays in registers while
// a loop reads a strip of b (K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", 2008).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/blocked_matmul/kernels.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <type_traits>

#include "ep_api/ep_api.h"
#include "hwy/highway.h"
#include "providers/cpu/blocked_matmul/kernel.h"
#include "providers/cpu/elementwise/narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using D = hn::ScalableTag<T>;
template <class T>
using V = hn::Vec<D<T>>;

constexpr int vectors = 2;                                  // width of a strip
constexpr int most_rows = HWY_TARGET == HWY_AVX3 ? 12 : 6;  // rows of a tile: all sums fit in registers

template <class T>
HWY_INLINE V<T> multiply_add(V<T> x, V<T> y, V<T> sum) {
  if constexpr (std::is_floating_point_v<T>) {
    return hn::MulAdd(x, y, sum);
  } else {
    return hn::Add(sum, hn::Mul(x, y));
  }
}

template <class T>
HWY_INLINE T multiplied_and_added(T x, T y, T sum) {
  if constexpr (std::is_floating_point_v<T>) {
    return sum + x * y;
  } else {
    return static_cast<T>(sum + uint64_t{1} * x * y);
  }
}

// Computes kRows rows of the result, starting at row i, over kVectors vectors.
template <int kRows, int kVectors, class T>
HWY_INLINE void tile(const StripProduct<T>& p, int64_t i) {
  const D<T> d;
  constexpr auto most_lanes = static_cast<int64_t>(hn::MaxLanes(D<T>()));
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V<T> sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const T* HWY_RESTRICT a = p.a + i * p.a_row;
  const T* HWY_RESTRICT b = p.b;
  for (int64_t step = 0; step < p.k; ++step, a += p.a_column, b += p.b_row) {
    V<T> right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + v * lanes);
    for (int r = 0; r < kRows; ++r) {
      const V<T> left = hn::Set(d, a[r * p.a_row]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = multiply_add<T>(left, right[v], sums[r][v]);
    }
  }
  T* c = p.c + i * p.c_row;
  if (p.n == kVectors * lanes) {
    for (int r = 0; r < kRows; ++r, c += p.c_row) {
      for (int v = 0; v < kVectors; ++v) {
        hn::StoreU(p.adds ? hn::Add(hn::LoadU(d, c + v * lanes), sums[r][v]) : sums[r][v], d, c + v * lanes);
      }
    }
    return;
  }
  HWY_ALIGN T row[vectors * most_lanes] = {};
  for (int r = 0; r < kRows; ++r, c += p.c_row) {
    for (int v = 0; v < kVectors; ++v) hn::Store(sums[r][v], d, row + v * lanes);
    for (int64_t j = 0; j < p.n; ++j) c[j] = p.adds ? static_cast<T>(c[j] + row[j]) : row[j];
  }
}

template <int kVectors, class T>
HWY_INLINE void tiles(const StripProduct<T>& p) {
  int64_t i = 0;
  for (; i + most_rows <= p.m; i += most_rows) tile<most_rows, kVectors>(p, i);
  if constexpr (most_rows > 6) {
    if (i + 6 <= p.m) {
      tile<6, kVectors>(p, i);
      i += 6;
    }
  }
  switch (p.m - i) {
    case 1: return tile<1, kVectors>(p, i);
    case 2: return tile<2, kVectors>(p, i);
    case 3: return tile<3, kVectors>(p, i);
    case 4: return tile<4, kVectors>(p, i);
    case 5: return tile<5, kVectors>(p, i);
    default: return;
  }
}

template <class T>
void product(const StripProduct<T>& p) {
  if (p.n <= static_cast<int64_t>(hn::Lanes(D<T>()))) {
    tiles<1>(p);
  } else {
    tiles<vectors>(p);
  }
}

// Loads elements of type E as T.
template <class T, class E>
HWY_INLINE V<T> load(const E* from) {
  const D<T> d;
  if constexpr (std::is_same_v<T, E>) {
    return hn::LoadU(d, from);
  } else if constexpr (is_narrow_float<E>) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
    return load_narrow(from);
#else
    return hn::Set(d, to_f32(*from));
#endif
  } else {
    using Wide = std::conditional_t<std::is_signed_v<E>, std::make_signed_t<T>, T>;
    const hn::Rebind<Wide, D<T>> wide;
    return hn::BitCast(d, hn::PromoteTo(wide, hn::LoadU(hn::Rebind<E, D<T>>(), from)));
  }
}
template <class T, class E>
HWY_INLINE T one(E value) {
  if constexpr (is_narrow_float<E>) {
    return to_f32(value);
  } else {
    return static_cast<T>(value);
  }
}

// Adds the products of kRows rows and kSteps columns of a, from row i and column p on. The columns that do not fill a
// vector are added with the last whole vector, or one by one if there is none.
template <int kRows, int kSteps, class T, class E>
HWY_INLINE void add_steps(const ThinProduct<T>& x, int64_t i, int64_t p) {
  const D<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const E* HWY_RESTRICT b = static_cast<const E*>(x.b) + p * x.b_row;
  const T* a = x.a + i * x.a_row + p * x.a_column;
  T* HWY_RESTRICT c = x.c + i * x.c_row;
  V<T> factors[kRows][kSteps];
  for (int r = 0; r < kRows; ++r) {
    for (int s = 0; s < kSteps; ++s) factors[r][s] = hn::Set(d, a[r * x.a_row + s * x.a_column]);
  }
  const auto sum_at = [&](int64_t j, V<T>(&sums)[kRows]) HWY_ATTR {
    for (int r = 0; r < kRows; ++r) sums[r] = hn::LoadU(d, c + r * x.c_row + j);
    for (int s = 0; s < kSteps; ++s) {
      const V<T> right = load<T>(b + s * x.b_row + j);
      for (int r = 0; r < kRows; ++r) sums[r] = multiply_add<T>(factors[r][s], right, sums[r]);
    }
  };
  V<T> sums[kRows];
  int64_t j = 0;
  for (; j + lanes <= x.n; j += lanes) {
    sum_at(j, sums);
    for (int r = 0; r < kRows; ++r) hn::StoreU(sums[r], d, c + r * x.c_row + j);
  }
  if (j == x.n) return;
  if (x.n < lanes) {
    for (int r = 0; r < kRows; ++r) {
      for (int s = 0; s < kSteps; ++s) {
        const T factor = a[r * x.a_row + s * x.a_column];
        for (int64_t q = 0; q < x.n; ++q) {
          T& sum = c[r * x.c_row + q];
          sum = multiplied_and_added(factor, one<T>(b[s * x.b_row + q]), sum);
        }
      }
    }
    return;
  }
  const auto done = hn::FirstN(d, static_cast<size_t>(lanes - (x.n - j)));
  j = x.n - lanes;
  sum_at(j, sums);
  for (int r = 0; r < kRows; ++r) {
    T* const to = c + r * x.c_row + j;
    hn::StoreU(hn::IfThenElse(done, hn::LoadU(d, to), sums[r]), d, to);
  }
}

template <int kRows, int kSteps, class T, class E>
HWY_INLINE void add_rows(const ThinProduct<T>& x, int64_t i) {
  int64_t p = 0;
  for (; p + kSteps <= x.k; p += kSteps) add_steps<kRows, kSteps, T, E>(x, i, p);
  for (; p < x.k; ++p) add_steps<kRows, 1, T, E>(x, i, p);
}

template <class T, class E>
void thin(const ThinProduct<T>& x) {
  constexpr int steps = HWY_TARGET == HWY_AVX3 ? 2 : 1;  // factors and sums fit in the registers
  int64_t i = 0;
  for (; i + 4 <= x.m; i += 4) add_rows<4, 2 * steps, T, E>(x, i);
  for (; i + 2 <= x.m; i += 2) add_rows<2, 4 * steps, T, E>(x, i);
  if (i < x.m) add_rows<1, 8, T, E>(x, i);
}

template <class T>
ThinKernel<T> thin_of(int32_t dtype) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == EP_DTYPE_f32) return thin<float, float>;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_SCALAR
    if (dtype == EP_DTYPE_f16) return thin<float, F16Bits>;
    if (dtype == EP_DTYPE_bf16) return thin<float, Bf16Bits>;
#endif
  } else if constexpr (std::is_same_v<T, double>) {
    if (dtype == EP_DTYPE_f64) return thin<double, double>;
  } else {
    if constexpr (sizeof(T) == 2) {
      if (dtype == EP_DTYPE_i8) return thin<T, int8_t>;
      if (dtype == EP_DTYPE_u8) return thin<T, uint8_t>;
    }
    constexpr int32_t of_size[2] = {sizeof(T) == 2   ? EP_DTYPE_i16
                                    : sizeof(T) == 4 ? EP_DTYPE_i32
                                                     : EP_DTYPE_i64,
                                    sizeof(T) == 2   ? EP_DTYPE_u16
                                    : sizeof(T) == 4 ? EP_DTYPE_u32
                                                     : EP_DTYPE_u64};
    if (dtype == of_size[0] || dtype == of_size[1]) return thin<T, T>;
  }
  return nullptr;
}

template <class T>
void spread(T* to, int64_t step, const T* row, int64_t n) {
  const D<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < n; j += vectors * lanes, to += step) {
    for (int v = 0; v < vectors; ++v) hn::StoreU(hn::LoadU(d, row + j + v * lanes), d, to + v * lanes);
  }
}

#if HWY_TARGET != HWY_SCALAR
// Transposes 4 x 4 elements of four bytes, or 2 x 2 of eight.
template <class T>
HWY_INLINE void transpose_square(T* to, int64_t to_row, const T* from, int64_t from_row) {
  const hn::FixedTag<T, 16 / sizeof(T)> d;
  if constexpr (sizeof(T) == 8) {
    const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_row);
    hn::StoreU(hn::InterleaveLower(d, a, b), d, to);
    hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + to_row);
  } else {
    const hn::FixedTag<uint64_t, 2> pairs;
    const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_row);
    const auto c = hn::LoadU(d, from + 2 * from_row), e = hn::LoadU(d, from + 3 * from_row);
    const auto ab = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
    const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
    const auto ce = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
    const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ce)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ce)), d, to + to_row);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, to + 2 * to_row);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, to + 3 * to_row);
  }
}
#endif

template <class T>
void transpose(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t rows, int64_t columns) {
  int64_t whole_rows = 0, whole = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) >= 4) {
    constexpr auto square = static_cast<int64_t>(16 / sizeof(T));
    whole_rows = rows - rows % square;
    whole = columns - columns % square;
    for (int64_t j = 0; j < whole; j += square) {
      for (int64_t i = 0; i < whole_rows; i += square) {
        transpose_square(to + j * to_row + i, to_row, from + i * from_row + j, from_row);
      }
    }
  }
#endif
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = j < whole ? whole_rows : 0; i < rows; ++i) to[j * to_row + i] = from[i * from_row + j];
  }
}

template <class To, class From>
void convert(void* to, int64_t, const void* from, int64_t, int64_t n) {
  To* HWY_RESTRICT out = static_cast<To*>(to);
  const From* HWY_RESTRICT in = static_cast<const From*>(from);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<To>(in[i]);
}

template <class To>
ConvertFunction read_as(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_i8: return convert<To, int8_t>;
    case EP_DTYPE_u8: return convert<To, uint8_t>;
    case EP_DTYPE_i16: return convert<To, int16_t>;
    case EP_DTYPE_u16: return convert<To, uint16_t>;
    case EP_DTYPE_i32: return convert<To, int32_t>;
    case EP_DTYPE_u32: return convert<To, uint32_t>;
    case EP_DTYPE_i64:
    case EP_DTYPE_u64: return convert<To, uint64_t>;
    default: return nullptr;
  }
}

template <class From>
ConvertFunction write_from(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_i8:
    case EP_DTYPE_u8: return convert<uint8_t, From>;
    case EP_DTYPE_i16:
    case EP_DTYPE_u16: return convert<uint16_t, From>;
    case EP_DTYPE_i32:
    case EP_DTYPE_u32: return convert<uint32_t, From>;
    case EP_DTYPE_i64:
    case EP_DTYPE_u64: return convert<uint64_t, From>;
    default: return nullptr;
  }
}

template <class T>
BlockKernels<T> kernels() {
  return {vectors * static_cast<int64_t>(hn::Lanes(D<T>())), product<T>, spread<T>, transpose<T>};
}

}  // namespace

BlockKernels<float> block_kernels_f32() { return kernels<float>(); }
BlockKernels<double> block_kernels_f64() { return kernels<double>(); }
BlockKernels<uint16_t> block_kernels_u16() { return kernels<uint16_t>(); }
BlockKernels<uint32_t> block_kernels_u32() { return kernels<uint32_t>(); }
BlockKernels<uint64_t> block_kernels_u64() { return kernels<uint64_t>(); }
ThinKernel<float> thin_kernel_f32(int32_t dtype) { return thin_of<float>(dtype); }
ThinKernel<double> thin_kernel_f64(int32_t dtype) { return thin_of<double>(dtype); }
ThinKernel<uint16_t> thin_kernel_u16(int32_t dtype) { return thin_of<uint16_t>(dtype); }
ThinKernel<uint32_t> thin_kernel_u32(int32_t dtype) { return thin_of<uint32_t>(dtype); }
ThinKernel<uint64_t> thin_kernel_u64(int32_t dtype) { return thin_of<uint64_t>(dtype); }

ConvertFunction integer_read_of(int32_t dtype, int32_t bytes) {
  return bytes == 2 ? read_as<uint16_t>(dtype) : bytes == 4 ? read_as<uint32_t>(dtype) : read_as<uint64_t>(dtype);
}
ConvertFunction integer_write_of(int32_t bytes, int32_t dtype) {
  return bytes == 2   ? write_from<uint16_t>(dtype)
         : bytes == 4 ? write_from<uint32_t>(dtype)
                      : write_from<uint64_t>(dtype);
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

template <>
BlockKernels<float> block_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, block_kernels_f32)();
}
template <>
BlockKernels<double> block_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, block_kernels_f64)();
}
template <>
BlockKernels<uint16_t> block_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, block_kernels_u16)();
}
template <>
BlockKernels<uint32_t> block_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, block_kernels_u32)();
}
template <>
BlockKernels<uint64_t> block_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, block_kernels_u64)();
}

template <>
ThinKernel<float> thin_kernel(SimdLevel level, int32_t dtype) {
  return TENON_CPU_DISPATCH(level, thin_kernel_f32)(dtype);
}
template <>
ThinKernel<double> thin_kernel(SimdLevel level, int32_t dtype) {
  return TENON_CPU_DISPATCH(level, thin_kernel_f64)(dtype);
}
template <>
ThinKernel<uint16_t> thin_kernel(SimdLevel level, int32_t dtype) {
  return TENON_CPU_DISPATCH(level, thin_kernel_u16)(dtype);
}
template <>
ThinKernel<uint32_t> thin_kernel(SimdLevel level, int32_t dtype) {
  return TENON_CPU_DISPATCH(level, thin_kernel_u32)(dtype);
}
template <>
ThinKernel<uint64_t> thin_kernel(SimdLevel level, int32_t dtype) {
  return TENON_CPU_DISPATCH(level, thin_kernel_u64)(dtype);
}

ConvertFunction integer_read(SimdLevel level, int32_t dtype, int32_t bytes) {
  return TENON_CPU_DISPATCH(level, integer_read_of)(dtype, bytes);
}
ConvertFunction integer_write(SimdLevel level, int32_t bytes, int32_t dtype) {
  return TENON_CPU_DISPATCH(level, integer_write_of)(bytes, dtype);
}

}  // namespace tenon::provider::cpu
#endif
