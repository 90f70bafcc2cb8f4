// The kernels over one row of f32, and those of the norms over f64 too, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/rows/f32_rows.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>
#include <utility>

#include "ep_api/ep_api.h"
#include "hwy/cache_control.h"
#include "providers/cpu/elementwise/narrow-inl.h"
#include "providers/cpu/rows/kernel.h"
#include "providers/cpu/simd/prelude-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t sum_block = 4096;  // floats summed in f32 before the sum is added to a double

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

template <class T>
HWY_INLINE int64_t lanes_of() {
  return static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}

// Calls vector(i) for whole vectors and scalar(i) for the remaining elements.
template <class T = float, class Vector, class Scalar>
HWY_INLINE void over(int64_t begin, int64_t end, Vector vector, Scalar scalar) {
  const int64_t lanes = lanes_of<T>();
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) vector(i);
  for (; i < end; ++i) scalar(i);
}

// Stores f(vector) to dst for every vector of src. The remaining elements form a partial vector.
template <class T, class F>
HWY_INLINE void transform(T* dst, const T* src, int64_t n, bool stream, F f) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = lanes_of<T>();
  int64_t i = 0;
  if (stream) {
    for (; i < n && reinterpret_cast<uintptr_t>(dst + i) % (hn::MaxLanes(d) * sizeof(T)) != 0; ++i) {
      dst[i] = hn::GetLane(f(hn::Set(d, src[i]), i));
    }
    for (; i + lanes <= n; i += lanes) hn::Stream(f(hn::LoadU(d, src + i), i), d, dst + i);
  } else {
    for (; i + lanes <= n; i += lanes) hn::StoreU(f(hn::LoadU(d, src + i), i), d, dst + i);
  }
  for (; i < n; ++i) dst[i] = hn::GetLane(f(hn::Set(d, src[i]), i));
}

float greatest(const float* src, int64_t n) {
  const D d;
  V most = hn::Set(d, -std::numeric_limits<float>::infinity());
  V most_2 = most;
  const int64_t lanes = lanes_of<float>();
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    most = hn::Max(most, hn::LoadU(d, src + i));
    most_2 = hn::Max(most_2, hn::LoadU(d, src + i + lanes));
  }
  float result = hn::GetLane(hn::MaxOfLanes(d, hn::Max(most, most_2)));
  for (; i < n; ++i) result = src[i] > result ? src[i] : result;
  return result;
}

// Prefetches the same offset of the next row. Usually the next row follows this one; a wrong guess is harmless.
template <class T>
HWY_INLINE void prefetch(const T* src, int64_t i, int64_t n) {
  hwy::Prefetch(src + n + i);
}

// dst = exp(src - most). Returns the sum of dst.
double exponentials(float* dst, const float* src, int64_t n, float most) {
  const D d;
  const V offset = hn::Set(d, most);
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += sum_block) {
    const int64_t end = begin + sum_block < n ? begin + sum_block : n;
    V sum = hn::Zero(d);
    float rest = 0;
    over(
        begin, end,
        [&](int64_t i) HWY_ATTR {
          prefetch(src, i, n);
          const V y = exp_of_nonpositive(hn::Sub(hn::LoadU(d, src + i), offset));
          hn::StoreU(y, d, dst + i);
          sum = hn::Add(sum, y);
        },
        [&](int64_t i) HWY_ATTR {
          dst[i] = hn::GetLane(exp_of_nonpositive(hn::Sub(hn::Set(d, src[i]), offset)));
          rest += dst[i];
        });
    total += hn::GetLane(hn::SumOfLanes(d, sum)) + rest;
  }
  return total;
}

double sum_of_exponentials(const float* src, int64_t n, float most) {
  const D d;
  const V offset = hn::Set(d, most);
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += sum_block) {
    const int64_t end = begin + sum_block < n ? begin + sum_block : n;
    V sum = hn::Zero(d);
    float rest = 0;
    over(
        begin, end,
        [&](int64_t i) HWY_ATTR { sum = hn::Add(sum, exp_of_nonpositive(hn::Sub(hn::LoadU(d, src + i), offset))); },
        [&](int64_t i) HWY_ATTR { rest += hn::GetLane(exp_of_nonpositive(hn::Sub(hn::Set(d, src[i]), offset))); });
    total += hn::GetLane(hn::SumOfLanes(d, sum)) + rest;
  }
  return total;
}

void softmax(float* dst, const float* src, float* buffer, int64_t n, bool log, bool stream) {
  const D d;
  const float most = greatest(src, n);
  if (log) {
    const V offset = hn::Set(d, most);
    const V log_sum = hn::Set(d, static_cast<float>(std::log(sum_of_exponentials(src, n, most))));
    transform(dst, src, n, stream, [&](V x, int64_t) HWY_ATTR { return hn::Sub(hn::Sub(x, offset), log_sum); });
    return;
  }
  float* values = stream ? buffer : dst;
  const V factor = hn::Set(d, static_cast<float>(1.0 / exponentials(values, src, n, most)));
  transform(dst, values, n, stream, [&](V x, int64_t) HWY_ATTR { return hn::Mul(x, factor); });
}

// Loads the first `count` elements, at most a vector; the other lanes come from `rest`.
HWY_INLINE V load_some(const float* src, int64_t count, V rest) {
  const D d;
  const auto some = hn::FirstN(d, static_cast<size_t>(count));
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::IfThenElse(some, hn::MaskedLoad(some, d, src), rest);
#else
  HWY_ALIGN float values[hn::MaxLanes(D())] = {};
  std::copy_n(src, count, values);
  return hn::IfThenElse(some, hn::Load(d, values), rest);
#endif
}

HWY_INLINE void store_some(V x, float* dst, int64_t count) {
  const D d;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  hn::BlendedStore(x, hn::FirstN(d, static_cast<size_t>(count)), d, dst);
#else
  HWY_ALIGN float values[hn::MaxLanes(D())];
  hn::Store(x, d, values);
  std::copy_n(values, count, dst);
#endif
}

// Within a row, each step waits for the previous one: the maximum, the sum, the logarithm. So each step processes all
// rows before the next step.
void softmax_short_rows(float* dst, const float* src, int64_t n, int64_t rows, bool log) {
  const D d;
  const int64_t lanes = lanes_of<float>();
  const int64_t whole = n / lanes * lanes;
  const int64_t rest = n - whole;
  const V none = hn::Set(d, -std::numeric_limits<float>::infinity());
  HWY_ALIGN float most[most_short_rows], sums[most_short_rows];
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = src + row * n;
    V greater = rest > 0 ? load_some(from + whole, rest, none) : none;
    for (int64_t i = 0; i < whole; i += lanes) greater = hn::Max(greater, hn::LoadU(d, from + i));
    most[row] = hn::GetLane(hn::MaxOfLanes(d, greater));
  }
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = src + row * n;
    float* to = dst + row * n;
    const V offset = hn::Set(d, most[row]);
    V sum = hn::Zero(d);
    for (int64_t i = 0; i < whole; i += lanes) {
      const V y = exp_of_nonpositive(hn::Sub(hn::LoadU(d, from + i), offset));
      if (!log) hn::StoreU(y, d, to + i);
      sum = hn::Add(sum, y);
    }
    float sum_of_rest = 0;  // adds one element after another, like the softmax of columns
    if (rest > 0) {
      const V y = exp_of_nonpositive(hn::Sub(load_some(from + whole, rest, none), offset));
      if (!log) store_some(y, to + whole, rest);
      HWY_ALIGN float values[hn::MaxLanes(D())];
      hn::Store(y, d, values);
      for (int64_t i = 0; i < rest; ++i) sum_of_rest += values[i];
    }
    sums[row] = hn::GetLane(hn::SumOfLanes(d, sum)) + sum_of_rest;
  }
  for (int64_t row = rows; row < most_short_rows; ++row) sums[row] = 1;
  for (int64_t row = 0; row < rows; row += lanes) {
    const V sum = hn::Load(d, sums + row);
    hn::Store(log ? ep_log(sum) : hn::Div(hn::Set(d, 1.0f), sum), d, sums + row);
  }
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = (log ? src : dst) + row * n;
    float* to = dst + row * n;
    const V offset = hn::Set(d, most[row]);
    const V factor = hn::Set(d, sums[row]);
    const auto finished = [&](V x) HWY_ATTR { return log ? hn::Sub(hn::Sub(x, offset), factor) : hn::Mul(x, factor); };
    for (int64_t i = 0; i < whole; i += lanes) hn::StoreU(finished(hn::LoadU(d, from + i)), d, to + i);
    if (rest > 0) store_some(finished(load_some(from + whole, rest, none)), to + whole, rest);
  }
}

// One loop reads row r + 1 for its maximum, computes the exponentials of row r, and writes the result of row r - 1. So
// memory reads and writes overlap with the computation.
void softmax_rows(float* dst, const float* src, float* buffer, int64_t n, int64_t rows) {
  const D d;
  const int64_t lanes = lanes_of<float>();
  float* values = buffer;
  float* finished = buffer + n;
  float most = greatest(src, n);
  V factor = hn::Zero(d);
  for (int64_t row = 0; row < rows; ++row, src += n) {
    const float* next = row + 1 < rows ? src + n : src;
    const V offset = hn::Set(d, most);
    V greater = hn::Set(d, -std::numeric_limits<float>::infinity());
    V sum = hn::Zero(d);
    for (int64_t i = 0; i < n; i += lanes) {
      prefetch(next, i, n);
      greater = hn::Max(greater, hn::LoadU(d, next + i));
      const V y = exp_of_nonpositive(hn::Sub(hn::LoadU(d, src + i), offset));
      hn::StoreU(y, d, values + i);
      sum = hn::Add(sum, y);
      if (row > 0) hn::Stream(hn::Mul(hn::LoadU(d, finished + i), factor), d, dst + (row - 1) * n + i);
    }
    most = hn::GetLane(hn::MaxOfLanes(d, greater));
    factor = hn::Set(d, static_cast<float>(1.0 / static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)))));
    std::swap(values, finished);
  }
  transform(dst + (rows - 1) * n, finished, n, true, [&](V x, int64_t) HWY_ATTR { return hn::Mul(x, factor); });
}

// The sum of f(vector) over a row.
template <class T, class F>
HWY_INLINE double sum_of(const T* src, int64_t n, bool ahead, F f) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = lanes_of<T>();
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += sum_block) {
    const int64_t end = begin + sum_block < n ? begin + sum_block : n;
    auto sum = hn::Zero(d), sum_2 = sum;
    int64_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      if (ahead) {
        prefetch(src, i, n);
        prefetch(src, i + lanes, n);
      }
      sum = hn::Add(sum, f(hn::LoadU(d, src + i)));
      sum_2 = hn::Add(sum_2, f(hn::LoadU(d, src + i + lanes)));
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(sum, sum_2))));
    for (; i < end; ++i) total += static_cast<double>(hn::GetLane(f(hn::Set(d, src[i]))));
  }
  return total;
}

template <class T>
void moments(const T* src, int64_t n, double eps, T* out_mean, T* out_inv_std) {
  const auto count = static_cast<double>(n);
  using W = hn::Vec<hn::ScalableTag<T>>;
  const auto mean = static_cast<T>(sum_of(src, n, false, [](W x) HWY_ATTR { return x; }) / count);
  const W center = hn::Set(hn::ScalableTag<T>(), mean);
  const double squares = sum_of(src, n, true, [center](W x) HWY_ATTR {
    const W off = hn::Sub(x, center);
    return hn::Mul(off, off);
  });
  *out_mean = mean;
  *out_inv_std = static_cast<T>(1.0 / std::sqrt(squares / count + eps));
}

// Loads elements of a row of n parameters from i on; `none` if there are no parameters. Partial vectors at both ends
// are read element by element.
template <class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> parameter(const T* from, int64_t i, int64_t n, T none) {
  const hn::ScalableTag<T> d;
  if (from == nullptr) return hn::Set(d, none);
  return i <= n - lanes_of<T>() ? hn::LoadU(d, from + i) : hn::Set(d, from[i]);
}

template <class T>
void layer_norm(T* dst, const T* src, const T* scale, const T* shift, int64_t n, double eps, bool stream, T* out_mean,
                T* out_inv_std) {
  const hn::ScalableTag<T> d;
  using W = hn::Vec<hn::ScalableTag<T>>;
  moments(src, n, eps, out_mean, out_inv_std);
  const W center = hn::Set(d, *out_mean), factor = hn::Set(d, *out_inv_std);
  transform(dst, src, n, stream, [&](W x, int64_t i) HWY_ATTR {
    const W y = hn::Mul(hn::Sub(x, center), factor);
    return hn::MulAdd(y, parameter<T>(scale, i, n, 1), parameter<T>(shift, i, n, 0));
  });
}

template <class T>
T rms_norm(T* dst, const T* src, const T* scale, int64_t n, double eps, bool stream) {
  using W = hn::Vec<hn::ScalableTag<T>>;
  const double squares = sum_of(src, n, !stream, [](W x) HWY_ATTR { return hn::Mul(x, x); });
  const auto inv_std = static_cast<T>(1.0 / std::sqrt(squares / static_cast<double>(n) + eps));
  const W factor = hn::Set(hn::ScalableTag<T>(), inv_std);
  // Past the cache, prefetches the next row while this one is stored; doing so while this one is summed is slower.
  transform(dst, src, n, stream, [&](W x, int64_t i) HWY_ATTR {
    if (stream) prefetch(src, i, n);
    return hn::Mul(hn::Mul(x, factor), parameter<T>(scale, i, n, 1));
  });
  return inv_std;
}

template <class T>
void affine(T* dst, const T* src, T mean, T factor, T shift, int64_t n, bool stream) {
  const hn::ScalableTag<T> d;
  using W = hn::Vec<hn::ScalableTag<T>>;
  const W m = hn::Set(d, mean), f = hn::Set(d, factor), s = hn::Set(d, shift);
  transform(dst, src, n, stream, [&](W x, int64_t) HWY_ATTR { return hn::MulAdd(hn::Sub(x, m), f, s); });
}

template <class T>
void normalize(T* dst, const T* src, const T* mean, const T* factor, const T* shift, int64_t step, int64_t n) {
  const hn::ScalableTag<T> d;
  if (step == 0) return affine(dst, src, *mean, *factor, *shift, n, false);
  over<T>(
      0, n,
      [&](int64_t i) HWY_ATTR {
        const auto off = hn::Sub(hn::LoadU(d, src + i), hn::LoadU(d, mean + i));
        hn::StoreU(hn::MulAdd(off, hn::LoadU(d, factor + i), hn::LoadU(d, shift + i)), d, dst + i);
      },
      [&](int64_t i) HWY_ATTR { dst[i] = (src[i] - mean[i]) * factor[i] + shift[i]; });
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
template <class E>
void affine_narrow(void* dst, const void* src, float mean, float factor, float shift, int64_t n) {
  const D d;
  constexpr auto lanes = static_cast<int64_t>(hn::MaxLanes(D()));
  const V m = hn::Set(d, mean), f = hn::Set(d, factor), s = hn::Set(d, shift);
  const auto some = [&](const E* from, E* to)
                        HWY_ATTR { store_narrow(hn::MulAdd(hn::Sub(load_narrow(from), m), f, s), to); };
  const E* const from = static_cast<const E*>(src);
  E* const to = static_cast<E*>(dst);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) some(from + i, to + i);
  if (i == n) return;
  E rest[lanes] = {};
  std::copy(from + i, from + n, rest);
  some(rest, rest);
  std::copy_n(rest, n - i, to + i);
}
#endif

}  // namespace

NarrowAffine narrow_affine_of([[maybe_unused]] int32_t dtype) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if (dtype == EP_DTYPE_f16) return affine_narrow<F16Bits>;
  if (dtype == EP_DTYPE_bf16) return affine_narrow<Bf16Bits>;
#endif
  return nullptr;
}

void stream_copy(float* dst, const float* src, int64_t n) {
  transform(dst, src, n, true, [](V x, int64_t) HWY_ATTR { return x; });
}

const RowKernels& row_table() {
  static constexpr RowKernels table = {softmax, softmax_short_rows, softmax_rows};
  return table;
}

template <class T>
const NormKernels<T>& norm_table() {
  static constexpr NormKernels<T> table = {layer_norm<T>, rms_norm<T>, moments<T>, affine<T>, normalize<T>};
  return table;
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

const RowKernels& row_kernels(SimdLevel level) { return TENON_CPU_DISPATCH(level, row_table)(); }

template <>
const NormKernels<float>& norm_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, norm_table<float>)();
}
template <>
const NormKernels<double>& norm_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, norm_table<double>)();
}

NarrowAffine narrow_affine(SimdLevel level, int32_t dtype) {
  return TENON_CPU_DISPATCH(level, narrow_affine_of)(dtype);
}

StreamCopy stream_copy_kernel(SimdLevel level) { return TENON_CPU_DISPATCH(level, stream_copy); }

void store_fence() { hwy::FlushStream(); }

}  // namespace tenon::provider::cpu
#endif
