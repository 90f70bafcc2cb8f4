// Host loops over numbers: element-wise functions, ranges, and transforms.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/interpreter/host_loops/parts.h"
#include "core/ops/attributes.h"
#include "core/ops/composite.h"
#include "core/ops/floating_point.h"
#include "core/ops/ops.h"

namespace tenon::host_loops {
namespace {

// The number next to each of `from` in the direction of `to`, by adding to its bits.
template <class F, class I>
[[gnu::always_inline]] inline void write_next(F* result, const F* from, const F* to, int32_t n) {
  using U = std::make_unsigned_t<I>;
  constexpr I sign = std::numeric_limits<I>::min();
  for (int32_t i = 0; i < n; ++i) {
    const F x = from[i], y = to[i];
    const I bits = std::bit_cast<I>(x);
    const I nearer = -static_cast<I>((y > x) != (bits >= 0));  // -1: towards 0, 0: away from it
    const I stepped = static_cast<I>(static_cast<U>(bits) + static_cast<U>(nearer | I{1}));  // for -0 it wraps around
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
  const int32_t exponent = (bits - 0x3f3504f3) >> 23;  // so that the significand m is from sqrt(1/2) to sqrt(2)
  const auto m = std::bit_cast<float>(bits - exponent * (1 << 23));
  const float s = (m - 1) / (m + 1), q = s * s;
  const float series = 1 + q * (1 / 3.F + q * (1 / 5.F + q * (1 / 7.F + q * (1 / 9.F))));
  return static_cast<float>(exponent) * 0.693147182F + (2 * s) * series;
}

// M. Giles: Approximating the erfinv function (GPU Computing Gems 2, 2011), in single precision: the error is at most
// 6e-7.
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

// Negates every second number. Uses integers, since compilers do not vectorise this for floats.
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

// Fills a given tensor. Several threads fill long ones.
bool fill(const OpCall& call, const Scalar& value) {
  constexpr int64_t most = int64_t{16} << 10;  // bytes
  const Tensor& output = call.outputs[0];
  const TensorImpl& impl = *output.impl();
  const int64_t bytes = impl.elements * dtype_size(impl.dtype);
  if (impl.storage == nullptr || impl.stand_in != nullptr || !impl.contiguous || bytes == 0 || bytes > most)
    return false;
  if ((impl.dtype != DType::f32 && impl.dtype != DType::f64) || !on_host(impl.device)) return false;
  if (impl.dtype == DType::f32) {
    std::fill_n(static_cast<float*>(output.data()), impl.elements, static_cast<float>(value.to_double()));
  } else {
    std::fill_n(static_cast<double*>(output.data()), impl.elements, value.to_double());
  }
  impl.storage.note_write(call.op->name);
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

bool run_linspace(const OpCall& call) {
  constexpr int64_t most = int64_t{1} << 24;  // f32 counts exactly up to here
  const auto& a = call.attributes_as<LinspaceAttributes>();
  const DType dtype = a.dtype == DType::none ? DType::f32 : a.dtype;
  if (a.steps < 2 || a.steps > most || (dtype != DType::f32 && dtype != DType::f64)) return false;
  DeviceState* host = host_of(call);
  if (host == nullptr) return false;
  const double start = call.scalars[0].to_double(), end = call.scalars[1].to_double();
  const auto steps = static_cast<int32_t>(a.steps);
  Tensor result = made(Dims{a.steps}, dtype, host);
  const DefaultFloatingPoint floating_point;
  if (dtype == DType::f32) {
    spaced(static_cast<float*>(result.data()), start, end, steps);
  } else {
    spaced(static_cast<double*>(result.data()), start, end, steps);
  }
  call.outputs[0] = std::move(result);
  return true;
}

bool run_logspace(const OpCall& call) {
  constexpr int64_t most = 64;  // for more numbers, the device's vectorised power is faster
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
  constexpr int64_t most = int64_t{512} << 10;  // bytes; for longer ones several threads are faster
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

bool run_fill_(const OpCall& call) { return call.inputs.empty() && fill(call, call.scalars[0]); }
bool run_zero_(const OpCall& call) { return fill(call, Scalar(0)); }

// The transform of real numbers; then the signs of the imaginary parts are changed in place.
bool run_fft_ihfft(const OpCall& call) {
  constexpr int64_t most = int64_t{512} << 10;  // bytes; for longer ones several threads are faster
  if (!lies_at_hand(call, 0)) return false;
  const TensorImpl& input = *call.inputs[0]->impl();
  if (!real(input.dtype) || input.elements * dtype_size(input.dtype) > most) return false;
  const auto& a = call.attributes_as<FftIhfftAttributes>();
  const int32_t rank = input.dims.rank();
  // An inverse transform is scaled where a forward one is not.
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

}  // namespace tenon::host_loops
