// Host loops over numbers: elementwise ones, products of places, and choices by a mask.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/interpreter/host_loop_parts.h"
#include "core/ops/attributes.h"
#include "core/ops/composite.h"
#include "core/ops/floating_point.h"
#include "core/ops/ops.h"

namespace tenon::host_loops {
namespace {

// Whether input `index` is row-major at hand, of the dtype and on the device of input 0.
bool alike(const OpCall& call, size_t index) {
  if (!at_hand(call, index)) return false;
  const TensorImpl &first = *call.inputs[0]->impl(), &other = *call.inputs[index]->impl();
  return first.dtype == other.dtype && first.device == other.device;
}
// Whether it is of the same dims besides.
bool same_shape(const OpCall& call, size_t index) {
  return alike(call, index) && call.inputs[0]->impl()->dims == call.inputs[index]->impl()->dims;
}

bool real(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

// The number next to each of `from` on the way to that of `to`, by steps of its bits.
template <class F, class I>
[[gnu::always_inline]] inline void write_next(F* result, const F* from, const F* to, int32_t n) {
  using U = std::make_unsigned_t<I>;
  constexpr I sign = std::numeric_limits<I>::min();
  for (int32_t i = 0; i < n; ++i) {
    const F x = from[i], y = to[i];
    const I bits = std::bit_cast<I>(x);
    const I nearer = -static_cast<I>((y > x) != (bits >= 0));  // -1: to 0, 0: away from it
    const I stepped = static_cast<I>(static_cast<U>(bits) + static_cast<U>(nearer | I{1}));  // of -0 it wraps around
    const I least = (std::bit_cast<I>(y) & sign) | I{1};
    const I next = (bits & ~sign) == 0 ? least : stepped;
    const F kept = x == y ? y : std::bit_cast<F>(next);
    result[i] = ((x != x) | (y != y)) ? x + y : kept;
  }
}

template <class F, class I>
void next_of(void* result, const void* from, const void* to, int64_t count) {
  auto* out = static_cast<F*>(result);
  const auto *x = static_cast<const F*>(from), *y = static_cast<const F*>(to);
  by_blocks(
      count, [&](int64_t first, int32_t n)
                 __attribute__((always_inline)) { write_next<F, I>(out + first, x + first, y + first, n); });
}

// The natural logarithm of normal numbers.
[[gnu::always_inline]] inline float log_of(float x) {
  const auto bits = std::bit_cast<int32_t>(x);
  const int32_t exponent = (bits - 0x3f3504f3) >> 23;  // of a significand from the root of 1/2 to that of 2
  const auto m = std::bit_cast<float>(bits - exponent * (1 << 23));
  const float s = (m - 1) / (m + 1), q = s * s;
  const float series = 1 + q * (1 / 3.F + q * (1 / 5.F + q * (1 / 7.F + q * (1 / 9.F))));
  return static_cast<float>(exponent) * 0.693147182F + (2 * s) * series;
}

// M. Giles: Approximating the erfinv function (GPU Computing Gems 2, 2011), in single precision: within 6e-7 of the
// value.
[[gnu::always_inline]] inline float erfinv_of(float x) {
  const float w = -log_of((1 - x) * (1 + x));
  const float n = w - 2.5F;
  const float f = std::sqrt(w < 5 ? 5 : w) - 3;
  const float near =
      1.50140941F +
      n * (0.246640727F + n * (-0.00417768164F +
                               n * (-0.00125372503F +
                                    n * (0.00021858087F +
                                         n * (-4.39150654e-06F +
                                              n * (-3.5233877e-06F + n * (3.43273939e-07F + n * 2.81022636e-08F)))))));
  const float far =
      2.83297682F +
      f * (1.00167406F + f * (0.00943887047F +
                              f * (-0.0076224613F +
                                   f * (0.00573950773F +
                                        f * (-0.00367342844F +
                                             f * (0.00134934322F + f * (0.000100950558F + f * -0.000200214257F)))))));
  const float inside = (w < 5 ? near : far) * x;
  const float size = std::fabs(x);
  const float end = size == 1 ? x * std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  return size < 1 ? inside : end;
}

template <class T>
void add_quotients(T* to, const T* input, const T* above, const T* below, T value, int64_t count) {
  by_blocks(
      count, [&](int64_t first, int32_t n) __attribute__((always_inline)) {
        const T *x = input + first, *a = above + first, *b = below + first;
        T* result = to + first;
        for (int32_t i = 0; i < n; ++i) result[i] = x[i] + value * (a[i] / b[i]);
      });
}

// Of vectors whose three numbers are `step` apart.
template <class T>
void cross_of(T* to, const T* a, const T* b, int64_t outer, int64_t step) {
  for (int64_t o = 0; o < outer; ++o, a += 3 * step, b += 3 * step, to += 3 * step) {
    for (int64_t i = 0; i < step; ++i) {
      const T a0 = a[i], a1 = a[i + step], a2 = a[i + 2 * step];
      const T b0 = b[i], b1 = b[i + step], b2 = b[i + 2 * step];
      to[i] = a1 * b2 - a2 * b1;
      to[i + step] = a2 * b0 - a0 * b2;
      to[i + 2 * step] = a0 * b1 - a1 * b0;
    }
  }
}

template <class T>
void kron_of(T* to, const T* a, const T* b, const Dims& of_a, const Dims& of_b) {
  for (int64_t i = 0; i < of_a[0]; ++i) {
    for (int64_t k = 0; k < of_b[0]; ++k) {
      for (int64_t j = 0; j < of_a[1]; ++j, to += of_b[1]) {
        const T x = a[i * of_a[1] + j];
        const T* from = b + k * of_b[1];
        for (int64_t l = 0; l < of_b[1]; ++l) to[l] = x * from[l];
      }
    }
  }
}

// to[i][j] = x[i] * y[j]
template <class T>
[[gnu::always_inline]] inline void rows_of_products(T* to, const T* x, const T* y, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i, to += columns) {
    const T factor = x[i];
    in_blocks(
        columns, [&](int64_t first, int32_t n) __attribute__((always_inline)) {
          for (int32_t k = 0; k < n; ++k) to[first + k] = factor * y[first + k];
        });
  }
}

#if defined(__x86_64__)
// All rows at once: a call for each of 256 rows of 256 took a third of the time.
template <class T>
[[gnu::target("avx2")]] void products_by_avx2(T* to, const T* x, const T* y, int64_t rows, int64_t columns) {
  rows_of_products(to, x, y, rows, columns);
}
#endif

template <class T>
void products_of(T* to, const T* x, const T* y, int64_t rows, int64_t columns) {
#if defined(__x86_64__)
  if (columns > 16 && __builtin_cpu_supports("avx2") != 0) return products_by_avx2(to, x, y, rows, columns);
#endif
  rows_of_products(to, x, y, rows, columns);
}

#if defined(__x86_64__)
bool rounds_once() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0; }
#define TENON_FUSED [[gnu::target("avx2,fma")]]
#else
bool rounds_once() { return true; }
#define TENON_FUSED
#endif

// to[i][j] = x[i] * y[j] + added[i][j], rounded once, as the device does.
template <class T>
TENON_FUSED void sums_of(T* to, const T* x, const T* y, const T* added, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i, to += columns, added += columns) {
    const T factor = x[i];
    in_blocks(
        columns, [&](int64_t first, int32_t n) __attribute__((always_inline)) {
          for (int32_t k = 0; k < n; ++k) to[first + k] = std::fma(factor, y[first + k], added[first + k]);
        });
  }
}
#undef TENON_FUSED

// Whether inputs `first` and `first` + 1 are lists of few products: more of them a device's wide vectors write faster.
bool two_lists(const OpCall& call, size_t first) {
  constexpr int64_t most = int64_t{64} << 10;  // bytes
  if (!alike(call, first) || !alike(call, first + 1)) return false;
  const TensorImpl &x = *call.inputs[first]->impl(), &y = *call.inputs[first + 1]->impl();
  return real(x.dtype) && x.dims.rank() == 1 && y.dims.rank() == 1 && x.elements <= most && y.elements <= most &&
         x.elements * y.elements * dtype_size(x.dtype) <= most;
}

// The other sign for every second number. As integers, since a compiler makes no vectors of every second float.
template <class T>
void conjugate(T* pairs, int64_t count) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  by_blocks(
      count, [&](int64_t first, int32_t n) __attribute__((always_inline)) {
        T* const some = pairs + first;
        for (int32_t i = 0; i < n; ++i) {
          const Bits sign = static_cast<Bits>(i & 1) << (8 * sizeof(T) - 1);
          some[i] = std::bit_cast<T>(std::bit_cast<Bits>(some[i]) ^ sign);
        }
      });
}

template <class T>
void choose(void* to, const void* input, const uint8_t* mask, const void* source, int64_t count, int64_t last) {
  auto* result = static_cast<T*>(to);
  const auto *x = static_cast<const T*>(input), *next = static_cast<const T*>(source);
  int64_t taken = 0;
  for (int64_t i = 0; i < count; ++i) {
    const bool takes = mask[i] != 0;
    const T here = x[i], there = next[std::min(taken, last)];
    result[i] = here ^ ((here ^ there) & static_cast<T>(-static_cast<T>(takes)));  // a branch would be guessed wrong
    taken += static_cast<int64_t>(takes);
  }
}

template <class T>
bool equal_in(const void* a, const void* b, int64_t count) {
  const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  for (int64_t first = 0; first < count; first += kBlock) {
    const auto n = static_cast<int32_t>(std::min<int64_t>(kBlock, count - first));
    int32_t different = 0;
    for (int32_t i = 0; i < n; ++i) different += x[first + i] != y[first + i];
    if (different != 0) return false;
  }
  return true;
}

// counts[x] for every element. Equal elements in succession wait for each other, so four lists take turns where they
// are short; of 32 bits, so that more of them fit the nearest cache.
template <class T>
void count_elements(const T* from, int64_t count, int64_t* counts, int64_t length) {
  int64_t i = 0;
  if (length <= count / 8 && length <= 4096 && count <= INT64_C(0xffffffff)) {
    std::vector<uint32_t> all(static_cast<size_t>(4 * length));
    uint32_t* const lists[] = {all.data(), all.data() + length, all.data() + 2 * length, all.data() + 3 * length};
    for (; i + 4 <= count; i += 4) {
      for (int64_t k = 0; k < 4; ++k) ++lists[k][from[i + k]];
    }
    for (int64_t k = 0; k < length; ++k) {
      for (const uint32_t* list : lists) counts[k] += list[k];
    }
  }
  for (; i < count; ++i) ++counts[from[i]];
}

// The same for many elements in one pass, which looks for the greatest element too: into four lists of kMostCounted,
// one after the other. Returns the greatest element; -1: some element is negative or not below kMostCounted.
constexpr int64_t kMostCounted = 4096;
template <class T>
int64_t count_in_one_pass(const T* from, int64_t count, std::vector<uint32_t>* lists) {
  lists->assign(static_cast<size_t>(4 * kMostCounted), 0);
  uint32_t* const all = lists->data();
  T greatest = 0;
  bool fits = true;
  by_blocks(
      count, [&](int64_t first, int32_t n) __attribute__((always_inline)) {
        T low = 0, high = greatest;
        for (int32_t i = 0; i < n; ++i) {
          low = std::min(low, from[first + i]);
          high = std::max(high, from[first + i]);
        }
        fits = fits && low >= 0 && static_cast<int64_t>(high) < kMostCounted;
        if (!fits) return;
        greatest = high;
        int32_t i = 0;
        for (; i + 4 <= n; i += 4) {
          for (int64_t k = 0; k < 4; ++k) ++all[k * kMostCounted + static_cast<int64_t>(from[first + i + k])];
        }
        for (; i < n; ++i) ++all[from[first + i]];
      });
  return fits ? static_cast<int64_t>(greatest) : -1;
}

template <class T>
bool count_into(const OpCall& call, int64_t least_length) {
  constexpr int64_t most = int64_t{1} << 28, many = int64_t{1} << 17;  // counts, elements
  const TensorImpl& input = *call.inputs[0]->impl();
  const T* from = elements_of<T>(*call.inputs[0]);
  if (input.elements >= many && input.elements <= INT64_C(0xffffffff) && least_length <= most) {
    std::vector<uint32_t> lists;
    const int64_t greatest_counted = count_in_one_pass(from, input.elements, &lists);
    if (greatest_counted >= 0) {
      const int64_t length = std::max(least_length, greatest_counted + 1);
      Tensor result = made(Dims{length}, DType::i64, input.device);
      auto* const counts = static_cast<int64_t*>(result.data());
      std::memset(counts, 0, static_cast<size_t>(length) * sizeof(int64_t));
      for (int64_t i = 0; i < 4 * kMostCounted; ++i) {
        if (i % kMostCounted <= greatest_counted) counts[i % kMostCounted] += lists[static_cast<size_t>(i)];
      }
      call.outputs[0] = std::move(result);
      return true;
    }
  }
  T least = from[0], greatest = from[0];
  by_blocks(
      input.elements, [&](int64_t first, int32_t n) __attribute__((always_inline)) {
        T low = least, high = greatest;
        for (int32_t i = 0; i < n; ++i) {
          low = std::min(low, from[first + i]);
          high = std::max(high, from[first + i]);
        }
        least = low;
        greatest = high;
      });
  if (least < 0 || static_cast<int64_t>(greatest) >= most || least_length > most) return false;
  const int64_t length = std::max(least_length, static_cast<int64_t>(greatest) + 1);
  Tensor result = made(Dims{length}, DType::i64, input.device);
  auto* const counts = static_cast<int64_t*>(result.data());
  std::memset(counts, 0, static_cast<size_t>(length) * sizeof(int64_t));
  count_elements(from, input.elements, counts, length);
  call.outputs[0] = std::move(result);
  return true;
}

}  // namespace

bool run_nextafter(const OpCall& call) {
  if (!same_shape(call, 0) || !same_shape(call, 1)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  if (!real(input.dtype)) return false;
  Tensor result = made(input.dims, input.dtype, input.device);
  const DefaultFloatingPoint floating_point;
  const auto run = input.dtype == DType::f32 ? next_of<float, int32_t> : next_of<double, int64_t>;
  run(result.data(), call.inputs[0]->data(), call.inputs[1]->data(), input.elements);
  call.outputs[0] = std::move(result);
  return true;
}

bool run_erfinv(const OpCall& call) {
  if (!at_hand(call, 0)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  if (input.dtype != DType::f32) return false;
  Tensor result = made(input.dims, input.dtype, input.device);
  const DefaultFloatingPoint floating_point;
  const float* from = elements_of<float>(*call.inputs[0]);
  auto* to = static_cast<float*>(result.data());
  by_blocks(
      input.elements, [&](int64_t first, int32_t n) __attribute__((always_inline)) {
        for (int32_t i = 0; i < n; ++i) to[first + i] = erfinv_of(from[first + i]);
      });
  call.outputs[0] = std::move(result);
  return true;
}

bool run_logspace(const OpCall& call) {
  constexpr int64_t most = 64;  // the device takes powers of more numbers by vectors
  const auto& a = call.attributes_as<LogspaceAttributes>();
  const DType dtype = a.dtype == DType::none ? DType::f32 : a.dtype;
  if (a.steps < 2 || a.steps > most || !real(dtype)) return false;
  DeviceState* host = host_of(call);
  if (host == nullptr) return false;
  const double start = call.scalars[0].to_double(), end = call.scalars[1].to_double(),
               base = call.scalars[2].to_double();
  const auto steps = static_cast<int32_t>(a.steps);
  Tensor result = made(Dims{a.steps}, dtype, host);
  const DefaultFloatingPoint floating_point;
  if (dtype == DType::f32) {
    auto* to = static_cast<float*>(result.data());
    spaced(to, start, end, steps);
    for (int32_t i = 0; i < steps; ++i) to[i] = static_cast<float>(std::pow(base, static_cast<double>(to[i])));
  } else {
    auto* to = static_cast<double*>(result.data());
    spaced(to, start, end, steps);
    for (int32_t i = 0; i < steps; ++i) to[i] = std::pow(base, to[i]);
  }
  call.outputs[0] = std::move(result);
  return true;
}

bool run_addcdiv(const OpCall& call) {
  constexpr int64_t most = int64_t{512} << 10;  // bytes; several threads take longer ones
  if (!same_shape(call, 0) || !same_shape(call, 1) || !same_shape(call, 2)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  if (!real(input.dtype) || input.elements * dtype_size(input.dtype) > most) return false;
  const double value = call.scalars[0].to_double();
  Tensor result = made(input.dims, input.dtype, input.device);
  const DefaultFloatingPoint floating_point;
  if (input.dtype == DType::f32) {
    add_quotients(static_cast<float*>(result.data()), elements_of<float>(*call.inputs[0]),
                  elements_of<float>(*call.inputs[1]), elements_of<float>(*call.inputs[2]), static_cast<float>(value),
                  input.elements);
  } else {
    add_quotients(static_cast<double*>(result.data()), elements_of<double>(*call.inputs[0]),
                  elements_of<double>(*call.inputs[1]), elements_of<double>(*call.inputs[2]), value, input.elements);
  }
  call.outputs[0] = std::move(result);
  return true;
}

bool run_cross(const OpCall& call) {
  if (!same_shape(call, 0) || !same_shape(call, 1)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  if (!real(input.dtype)) return false;
  const auto& a = call.attributes_as<CrossAttributes>();
  const int32_t rank = input.dims.rank();
  int64_t axis = 0;
  if (a.dim_given != 0) {
    axis = a.dim < 0 ? a.dim + rank : a.dim;
  } else {
    while (axis < rank && input.dims[static_cast<int32_t>(axis)] != 3) ++axis;
  }
  if (axis < 0 || axis >= rank || input.dims[static_cast<int32_t>(axis)] != 3) return false;
  int64_t step = 1;
  for (int32_t k = static_cast<int32_t>(axis) + 1; k < rank; ++k) step *= input.dims[k];
  const int64_t outer = input.elements / (3 * step);
  Tensor result = made(input.dims, input.dtype, input.device);
  const DefaultFloatingPoint floating_point;
  if (input.dtype == DType::f32) {
    cross_of(static_cast<float*>(result.data()), elements_of<float>(*call.inputs[0]),
             elements_of<float>(*call.inputs[1]), outer, step);
  } else {
    cross_of(static_cast<double*>(result.data()), elements_of<double>(*call.inputs[0]),
             elements_of<double>(*call.inputs[1]), outer, step);
  }
  call.outputs[0] = std::move(result);
  return true;
}

// Of two matrices.
bool run_kron(const OpCall& call) {
  constexpr int64_t most = int64_t{512} << 10;  // bytes; several threads take longer ones
  if (!alike(call, 0) || !alike(call, 1)) return false;
  const TensorImpl &a = *call.inputs[0]->impl(), &b = *call.inputs[1]->impl();
  if (!real(a.dtype) || a.dims.rank() != 2 || b.dims.rank() != 2) return false;
  if (a.elements > most || b.elements > most || a.elements * b.elements * dtype_size(a.dtype) > most) return false;
  Tensor result = made(Dims{a.dims[0] * b.dims[0], a.dims[1] * b.dims[1]}, a.dtype, a.device);
  const DefaultFloatingPoint floating_point;
  if (a.dtype == DType::f32) {
    kron_of(static_cast<float*>(result.data()), elements_of<float>(*call.inputs[0]),
            elements_of<float>(*call.inputs[1]), a.dims, b.dims);
  } else {
    kron_of(static_cast<double*>(result.data()), elements_of<double>(*call.inputs[0]),
            elements_of<double>(*call.inputs[1]), a.dims, b.dims);
  }
  call.outputs[0] = std::move(result);
  return true;
}

bool run_outer(const OpCall& call) {
  if (!two_lists(call, 0)) return false;
  const TensorImpl &x = *call.inputs[0]->impl(), &y = *call.inputs[1]->impl();
  Tensor result = made(Dims{x.elements, y.elements}, x.dtype, x.device);
  const DefaultFloatingPoint floating_point;
  if (x.dtype == DType::f32) {
    products_of(static_cast<float*>(result.data()), elements_of<float>(*call.inputs[0]),
                elements_of<float>(*call.inputs[1]), x.elements, y.elements);
  } else {
    products_of(static_cast<double*>(result.data()), elements_of<double>(*call.inputs[0]),
                elements_of<double>(*call.inputs[1]), x.elements, y.elements);
  }
  call.outputs[0] = std::move(result);
  return true;
}

// Without factors.
bool run_addr(const OpCall& call) {
  if (call.scalars[0].to_double() != 1 || call.scalars[1].to_double() != 1 || !rounds_once()) return false;
  if (!at_hand(call, 0) || !two_lists(call, 1)) return false;
  const TensorImpl &input = *call.inputs[0]->impl(), &x = *call.inputs[1]->impl(), &y = *call.inputs[2]->impl();
  const Dims dims{x.elements, y.elements};
  if (!(input.dims == dims)) return false;
  Tensor result = made(dims, x.dtype, x.device);
  const DefaultFloatingPoint floating_point;
  if (x.dtype == DType::f32) {
    sums_of(static_cast<float*>(result.data()), elements_of<float>(*call.inputs[1]),
            elements_of<float>(*call.inputs[2]), elements_of<float>(*call.inputs[0]), x.elements, y.elements);
  } else {
    sums_of(static_cast<double*>(result.data()), elements_of<double>(*call.inputs[1]),
            elements_of<double>(*call.inputs[2]), elements_of<double>(*call.inputs[0]), x.elements, y.elements);
  }
  call.outputs[0] = std::move(result);
  return true;
}

// The transform of real numbers, whose imaginary parts then change their signs in place.
bool run_fft_ihfft(const OpCall& call) {
  constexpr int64_t most = int64_t{512} << 10;  // bytes; several threads write longer ones
  if (!lies_at_hand(call, 0)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  if (!real(input.dtype) || input.elements * dtype_size(input.dtype) > most) return false;
  const auto& a = call.attributes_as<FftIhfftAttributes>();
  const int32_t rank = input.dims.rank();
  // An inverse transform is divided where another one is not.
  const std::string_view norm = a.norm.view();
  const std::string_view other = norm == "backward" ? "forward" : norm == "forward" ? "backward" : norm;
  if (rank == EP_MAX_RANK || a.n_given != 0 || a.dim < -rank || a.dim >= rank) return false;
  if (norm != "ortho" && other == norm) return false;
  Tensor pairs;
  composite::called(call.op->named, [&] {
    const InterpreterScope scope(eager_interpreter());
    pairs = tenon::fft_rfft(*call.inputs[0], std::nullopt, a.dim, other);
  });
  if (!pairs.impl()->contiguous) return false;
  if (input.dtype == DType::f32) {
    conjugate(static_cast<float*>(pairs.data()), pairs.elements());
  } else {
    conjugate(static_cast<double*>(pairs.data()), pairs.elements());
  }
  call.outputs[0] = std::move(pairs);
  return true;
}

bool run_masked_scatter(const OpCall& call) {
  if (!at_hand(call, 0) || !at_hand(call, 1) || !alike(call, 2)) return false;
  const TensorImpl &input = *call.inputs[0]->impl(), &mask = *call.inputs[1]->impl(), &source = *call.inputs[2]->impl();
  if (mask.dtype != DType::boolean || !(mask.dims == input.dims) || mask.device != input.device) return false;
  const int64_t size = dtype_size(input.dtype);
  if (size != 2 && size != 4 && size != 8) return false;
  const auto* chosen = elements_of<uint8_t>(*call.inputs[1]);
  int64_t wanted = 0;
  for (int64_t i = 0; i < input.elements; ++i) wanted += chosen[i] != 0 ? 1 : 0;
  if (wanted > source.elements) return false;
  Tensor result = made(input.dims, input.dtype, input.device);
  const auto run = size == 2 ? choose<uint16_t> : size == 4 ? choose<uint32_t> : choose<uint64_t>;
  run(result.data(), call.inputs[0]->data(), chosen, call.inputs[2]->data(), input.elements, source.elements - 1);
  call.outputs[0] = std::move(result);
  return true;
}

bool run_equal(const OpCall& call) {
  constexpr int64_t most = int64_t{64} << 10;  // elements; several threads compare more
  if (!same_shape(call, 0) || !same_shape(call, 1)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  if (input.elements > most) return false;
  bool (*compare)(const void*, const void*, int64_t) = nullptr;
  switch (input.dtype) {
    case DType::f32: compare = equal_in<float>; break;
    case DType::f64: compare = equal_in<double>; break;
    case DType::i32: compare = equal_in<int32_t>; break;
    case DType::i64: compare = equal_in<int64_t>; break;
    default: return false;
  }
  Tensor result = made(Dims(), DType::boolean, input.device);
  const DefaultFloatingPoint floating_point;
  *static_cast<uint8_t*>(result.data()) =
      compare(call.inputs[0]->data(), call.inputs[1]->data(), input.elements) ? 1 : 0;
  call.outputs[0] = std::move(result);
  return true;
}

// Without weights.
bool run_bincount(const OpCall& call) {
  const int64_t least_length = call.attributes_as<BincountAttributes>().minlength;
  if (!at_hand(call, 0) || call.inputs[0]->rank() != 1 || least_length < 0) return false;
  if (call.inputs.size() > 1 && call.inputs[1] != nullptr) return false;
  switch (call.inputs[0]->dtype()) {
    case DType::i64: return count_into<int64_t>(call, least_length);
    case DType::i32: return count_into<int32_t>(call, least_length);
    case DType::u8: return count_into<uint8_t>(call, least_length);
    default: return false;
  }
}

}  // namespace tenon::host_loops
