// Stockham's mixed-radix transform (like pocketfft's passes), one line per lane, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/fft/kernels.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <utility>

#include "hwy/highway.h"
#include "providers/cpu/fft/kernel.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using D = hn::ScalableTag<T>;
template <class T>
using V = hn::Vec<D<T>>;

template <class T>
HWY_INLINE int64_t lanes_of() {
  return static_cast<int64_t>(hn::Lanes(D<T>()));
}

// Complex numbers, one vector each for real and imaginary part.
template <class T>
struct Complex {
  T* re;
  T* im;
};
template <class T>
struct Value {
  V<T> re, im;
};
template <class T>
HWY_INLINE Value<T> load(Complex<T> from, int64_t at) {
  const D<T> d;
  return {hn::LoadU(d, from.re + at), hn::LoadU(d, from.im + at)};
}
template <class T>
HWY_INLINE void store(Value<T> x, Complex<T> to, int64_t at) {
  const D<T> d;
  hn::StoreU(x.re, d, to.re + at);
  hn::StoreU(x.im, d, to.im + at);
}
template <class T>
HWY_INLINE Value<T> sum(Value<T> x, Value<T> y) {
  return {hn::Add(x.re, y.re), hn::Add(x.im, y.im)};
}
template <class T>
HWY_INLINE Value<T> difference(Value<T> x, Value<T> y) {
  return {hn::Sub(x.re, y.re), hn::Sub(x.im, y.im)};
}
template <class T>
HWY_INLINE Value<T> scaled(Value<T> x, T by) {
  const V<T> factor = hn::Set(D<T>(), by);
  return {hn::Mul(x.re, factor), hn::Mul(x.im, factor)};
}
// Returns -i x.
template <class T>
HWY_INLINE Value<T> turned(Value<T> x) {
  return {x.im, hn::Neg(x.re)};
}
// Returns x times the root.
template <class T>
HWY_INLINE Value<T> times(Value<T> x, const T* root) {
  const D<T> d;
  const V<T> c = hn::Set(d, root[0]), s = hn::Set(d, root[1]);
  return {hn::MulSub(x.re, c, hn::Mul(x.im, s)), hn::MulAdd(x.re, s, hn::Mul(x.im, c))};
}

template <class T>
HWY_INLINE void butterfly(Value<T> (&x)[2], const T*, int64_t) {
  const Value<T> a = x[0];
  x[0] = sum(a, x[1]);
  x[1] = difference(a, x[1]);
}
template <class T>
HWY_INLINE void butterfly(Value<T> (&x)[3], const T*, int64_t) {
  const Value<T> both = sum(x[1], x[2]);
  const Value<T> side = turned(scaled(difference(x[1], x[2]), static_cast<T>(0.86602540378443864676)));
  const Value<T> middle = difference(x[0], scaled(both, T(0.5)));
  x[0] = sum(x[0], both);
  x[1] = sum(middle, side);
  x[2] = difference(middle, side);
}
template <class T>
HWY_INLINE void butterfly(Value<T> (&x)[4], const T*, int64_t) {
  const Value<T> a = sum(x[0], x[2]), b = difference(x[0], x[2]);
  const Value<T> c = sum(x[1], x[3]), e = turned(difference(x[1], x[3]));
  x[0] = sum(a, c);
  x[1] = sum(b, e);
  x[2] = difference(a, c);
  x[3] = difference(b, e);
}
template <class T>
HWY_INLINE void butterfly(Value<T> (&x)[8], const T* roots, int64_t step) {
  constexpr T side = static_cast<T>(0.70710678118654752440);
  Value<T> even[4] = {x[0], x[2], x[4], x[6]};
  Value<T> odd[4] = {x[1], x[3], x[5], x[7]};
  butterfly(even, roots, step);
  butterfly(odd, roots, step);
  const auto eighth = [](Value<T> y) {  // times the root exp(-2 pi i / 8)
    return scaled(Value<T>{hn::Add(y.re, y.im), hn::Sub(y.im, y.re)}, side);
  };
  const Value<T> moved[4] = {odd[0], eighth(odd[1]), turned(odd[2]), turned(eighth(odd[3]))};
  for (int k = 0; k < 4; ++k) {
    x[k] = sum(even[k], moved[k]);
    x[k + 4] = difference(even[k], moved[k]);
  }
}
template <class T>
HWY_INLINE void butterfly(Value<T> (&x)[5], const T*, int64_t) {
  constexpr T c1 = static_cast<T>(0.30901699437494742410), c2 = static_cast<T>(-0.80901699437494742410);
  constexpr T s1 = static_cast<T>(0.95105651629515357212), s2 = static_cast<T>(0.58778525229247312917);
  const Value<T> a = sum(x[1], x[4]), b = sum(x[2], x[3]);
  const Value<T> c = difference(x[1], x[4]), e = difference(x[2], x[3]);
  const Value<T> near = sum(x[0], sum(scaled(a, c1), scaled(b, c2)));
  const Value<T> far = sum(x[0], sum(scaled(a, c2), scaled(b, c1)));
  const Value<T> side = turned(sum(scaled(c, s1), scaled(e, s2)));
  const Value<T> other = turned(difference(scaled(c, s2), scaled(e, s1)));
  x[0] = sum(x[0], sum(a, b));
  x[1] = sum(near, side);
  x[2] = sum(far, other);
  x[3] = difference(far, other);
  x[4] = difference(near, side);
}
// A butterfly of any radix. `step` is the number of the root exp(-2 pi i / radix).
template <class T, size_t radix>
HWY_INLINE void butterfly(Value<T> (&x)[radix], const T* roots, int64_t step) {
  Value<T> y[radix];
  for (size_t j = 0; j < radix; ++j) {
    y[j] = x[0];
    for (size_t b = 1; b < radix; ++b) {
      y[j] = sum(y[j], times(x[b], roots + 2 * step * static_cast<int64_t>(j * b % radix)));
    }
  }
  std::copy(y, y + radix, x);
}

// One pass, as in pocketfft. `before` is the product of the radices of earlier passes.
template <int radix, class T>
void pass(const FftPlan<T>& plan, int64_t before, Complex<T> in, Complex<T> out) {
  const int64_t lanes = lanes_of<T>();
  const int64_t inner = plan.length / (before * radix);
  const T* const roots = plan.roots.data();
  for (int64_t k = 0; k < before; ++k) {
    for (int64_t i = 0; i < inner; ++i) {
      Value<T> x[radix];
      for (int b = 0; b < radix; ++b) x[b] = load(in, (i + inner * (b + radix * k)) * lanes);
      butterfly(x, roots, plan.length / radix);
      store(x[0], out, (i + inner * k) * lanes);
      for (int j = 1; j < radix; ++j) {
        const Value<T> y = i == 0 ? x[j] : times(x[j], roots + 2 * j * before * i);
        store(y, out, (i + inner * (k + before * j)) * lanes);
      }
    }
  }
}

template <class T>
using Pass = void (*)(const FftPlan<T>&, int64_t, Complex<T>, Complex<T>);
template <class T>
Pass<T> pass_of(int64_t radix) {
  switch (radix) {
    case 2: return pass<2, T>;
    case 3: return pass<3, T>;
    case 4: return pass<4, T>;
    case 5: return pass<5, T>;
    case 7: return pass<7, T>;
    case 8: return pass<8, T>;
    case 11: return pass<11, T>;
    default: return pass<13, T>;
  }
}

#if HWY_TARGET != HWY_SCALAR
// A piece is 16 bytes of a line; a vector has several. Whole vectors of a line are moved at once: lines are often a
// multiple of 4 KiB apart, so the L1 cache holds few of them.
template <class T>
inline constexpr int64_t piece = 16 / sizeof(T);
template <class T>
inline constexpr int64_t pieces = static_cast<int64_t>(hn::MaxLanes(D<T>())) / piece<T>;

// Swaps piece k of vector j and piece j of vector k.
template <class T>
HWY_INLINE void turn_pieces(V<T> (&x)[pieces<T>]) {
  if constexpr (pieces<T> == 2) {
    const D<T> d;
    const V<T> first = hn::ConcatLowerLower(d, x[1], x[0]);
    x[1] = hn::ConcatUpperUpper(d, x[1], x[0]);
    x[0] = first;
  }
  if constexpr (pieces<T> == 4) {
    const D<T> d;
    const V<T> even = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(x[1]), x[0]);
    const V<T> odd = hn::OddEvenBlocks(x[1], hn::SwapAdjacentBlocks(x[0]));
    const V<T> later_even = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(x[3]), x[2]);
    const V<T> later_odd = hn::OddEvenBlocks(x[3], hn::SwapAdjacentBlocks(x[2]));
    x[0] = hn::ConcatLowerLower(d, later_even, even);
    x[1] = hn::ConcatLowerLower(d, later_odd, odd);
    x[2] = hn::ConcatUpperUpper(d, later_even, even);
    x[3] = hn::ConcatUpperUpper(d, later_odd, odd);
  }
}

// Before: vector k has numbers of lines k, piece + k, ... After: it has the k-th number of every line. Applying it
// twice restores the input.
template <class T>
HWY_INLINE void turn(V<T> (&x)[piece<T>]) {
  const D<T> d;
  V<T> y[piece<T>];
  for (int64_t stage = 1; stage < piece<T>; stage *= 2) {
    for (int64_t k = 0; k < piece<T> / 2; ++k) {
      y[2 * k] = hn::InterleaveLower(d, x[k], x[k + piece<T> / 2]);
      y[2 * k + 1] = hn::InterleaveUpper(d, x[k], x[k + piece<T> / 2]);
    }
    for (int64_t k = 0; k < piece<T>; ++k) x[k] = y[k];
  }
}
#endif

// Returns the position of number i of the lines. For pairs, every second number is an imaginary part.
template <class T>
HWY_INLINE T* place_of(Complex<T> numbers, int64_t i, bool pairs) {
  if (!pairs) return numbers.re + i * lanes_of<T>();
  return (i % 2 == 0 ? numbers.re : numbers.im) + i / 2 * lanes_of<T>();
}

// Loads the n numbers, or pairs, of every line. If step > 0, the lines are adjacent, and the next numbers of all lines
// are `step` further.
template <class T>
HWY_INLINE void gather_lines(const T* const* src, int64_t step, int64_t n, Complex<T> to, bool pairs) {
  const D<T> d;
  const int64_t lanes = lanes_of<T>();
  if (step > 0) {
    for (int64_t i = 0; i < n; ++i) {
      V<T> re, im;
      if (pairs) {
        hn::LoadInterleaved2(d, src[0] + i * step, re, im);
        hn::StoreU(im, d, to.im + i * lanes);
      } else {
        re = hn::LoadU(d, src[0] + i * step);
      }
      hn::StoreU(re, d, to.re + i * lanes);
    }
    return;
  }
  const int64_t count = pairs ? 2 * n : n;
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; i + lanes <= count; i += lanes) {
    V<T> y[piece<T>][pieces<T>];  // first index: number; second index: line
    for (int64_t k = 0; k < piece<T>; ++k) {
      for (int64_t j = 0; j < pieces<T>; ++j) y[k][j] = hn::LoadU(d, src[j * piece<T> + k] + i);
      turn_pieces<T>(y[k]);
    }
    for (int64_t j = 0; j < pieces<T>; ++j) {
      V<T> x[piece<T>];
      for (int64_t k = 0; k < piece<T>; ++k) x[k] = y[k][j];
      turn<T>(x);
      for (int64_t k = 0; k < piece<T>; ++k) hn::StoreU(x[k], d, place_of(to, i + j * piece<T> + k, pairs));
    }
  }
#endif
  for (; i < count; ++i) {
    T* const place = place_of(to, i, pairs);
    for (int64_t l = 0; l < lanes; ++l) place[l] = src[l][i];
  }
}
// Stores what the function above loads, times `scale`.
template <class T>
HWY_INLINE void scatter_lines(Complex<T> from, int64_t n, T* const* dst, int64_t step, bool pairs, T scale) {
  const D<T> d;
  const int64_t lanes = lanes_of<T>();
  const V<T> factor = hn::Set(d, scale);
  if (step > 0) {
    for (int64_t i = 0; i < n; ++i) {
      const V<T> re = hn::Mul(hn::LoadU(d, from.re + i * lanes), factor);
      if (pairs) {
        hn::StoreInterleaved2(re, hn::Mul(hn::LoadU(d, from.im + i * lanes), factor), d, dst[0] + i * step);
      } else {
        hn::StoreU(re, d, dst[0] + i * step);
      }
    }
    return;
  }
  const int64_t count = pairs ? 2 * n : n;
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; i + lanes <= count; i += lanes) {
    V<T> y[piece<T>][pieces<T>];
    for (int64_t j = 0; j < pieces<T>; ++j) {
      V<T> x[piece<T>];
      for (int64_t k = 0; k < piece<T>; ++k)
        x[k] = hn::Mul(hn::LoadU(d, place_of(from, i + j * piece<T> + k, pairs)), factor);
      turn<T>(x);
      for (int64_t k = 0; k < piece<T>; ++k) y[k][j] = x[k];
    }
    for (int64_t k = 0; k < piece<T>; ++k) {
      turn_pieces<T>(y[k]);
      for (int64_t j = 0; j < pieces<T>; ++j) hn::StoreU(y[k][j], d, dst[j * piece<T> + k] + i);
    }
  }
#endif
  for (; i < count; ++i) {
    const T* const place = place_of(from, i, pairs);
    for (int64_t l = 0; l < lanes; ++l) dst[l][i] = place[l] * scale;
  }
}

// Combines the half spectra a and b of real lines into z = a + i b, for all frequencies.
template <class T>
void join_halves(Complex<T> a, Complex<T> b, int64_t n, Complex<T> z) {
  const D<T> d;
  const int64_t lanes = lanes_of<T>();
  for (int64_t k = 0; k <= n / 2; ++k) {
    Value<T> x = load(a, k * lanes), y = load(b, k * lanes);
    if (k == 0 || 2 * k == n) x.im = y.im = hn::Zero(d);  // zero for real lines
    const Value<T> left = {hn::Sub(x.re, y.im), hn::Add(x.im, y.re)};
    const Value<T> right = {hn::Add(x.re, y.im), hn::Sub(y.re, x.im)};
    store(left, z, k * lanes);
    if (k != 0) store(right, z, (n - k) * lanes);
  }
}
// Splits the spectrum z of complex lines into the half spectra of their parts.
template <class T>
void split_halves(Complex<T> z, int64_t n, Complex<T> a, Complex<T> b) {
  const int64_t lanes = lanes_of<T>();
  const T half{0.5};
  for (int64_t k = 0; k <= n / 2; ++k) {
    const Value<T> x = load(z, k * lanes), y = load(z, (k == 0 ? 0 : n - k) * lanes);
    store(scaled(Value<T>{hn::Add(x.re, y.re), hn::Sub(x.im, y.im)}, half), a, k * lanes);
    store(scaled(Value<T>{hn::Add(x.im, y.im), hn::Sub(y.re, x.re)}, half), b, k * lanes);
  }
}

template <class T>
Complex<T> transform(const FftPlan<T>& plan, bool inverse, Complex<T> from, Complex<T> other) {
  if (inverse) {  // the forward transform with real and imaginary part swapped
    std::swap(from.re, from.im);
    std::swap(other.re, other.im);
  }
  int64_t before = 1;
  for (const int64_t radix : plan.radices) {
    pass_of<T>(radix)(plan, before, from, other);
    std::swap(from, other);
    before *= radix;
  }
  if (inverse) std::swap(from.re, from.im);
  return from;
}

template <class T>
void run(const FftPlan<T>& plan, const FftLines<T>& lines) {
  const int64_t n = plan.length, lanes = lanes_of<T>();
  const int64_t size = (n + 2) * lanes;
  const Complex<T> x = {lines.room, lines.room + size};
  const Complex<T> y = {lines.room + 2 * size, lines.room + 3 * size};
  const int64_t half = n / 2 + 1;
  // Two half spectra need the memory of a full one plus two numbers.
  const auto parts_of = [&](Complex<T> whole) {
    return std::pair(Complex<T>{whole.re, whole.re + half * lanes}, Complex<T>{whole.im, whole.im + half * lanes});
  };
  if (lines.form == FftForm::COMPLEX) {
    gather_lines(lines.src, lines.src_step, n, x, true);
    scatter_lines(transform(plan, lines.inverse, x, y), n, lines.dst, lines.dst_step, true, lines.scale);
    return;
  }
  if (lines.form == FftForm::REAL_TO_HALF) {
    gather_lines(lines.src, lines.src_step, n, x, false);
    gather_lines(lines.src + lanes, lines.src_step, n, Complex<T>{x.im, x.re}, false);
    const Complex<T> z = transform(plan, lines.inverse, x, y);
    const bool in_x = std::min(z.re, z.im) == x.re;
    const auto [a, b] = parts_of(in_x ? y : x);
    split_halves(z, n, a, b);
    scatter_lines(a, half, lines.dst, lines.dst_step, true, lines.scale);
    scatter_lines(b, half, lines.dst + lanes, lines.dst_step, true, lines.scale);
    return;
  }
  const auto [a, b] = parts_of(y);
  gather_lines(lines.src, lines.src_step, half, a, true);
  gather_lines(lines.src + lanes, lines.src_step, half, b, true);
  join_halves(a, b, n, x);
  const Complex<T> z = transform(plan, lines.inverse, x, y);
  scatter_lines(z, n, lines.dst, lines.dst_step, false, lines.scale);
  scatter_lines(Complex<T>{z.im, z.re}, n, lines.dst + lanes, lines.dst_step, false, lines.scale);
}

}  // namespace

FftKernels<float> fft_kernels_f32() { return {lanes_of<float>(), run<float>}; }
FftKernels<double> fft_kernels_f64() { return {lanes_of<double>(), run<double>}; }

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cmath>

#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

template <class T>
FftPlan<T>::FftPlan(int64_t n) : length(n) {
  int64_t rest = n;
  for (; rest % 8 == 0 && rest / 8 % 4 != 2; rest /= 8) radices.push_back(8);  // 16 is split as 4 times 4
  for (const int64_t radix : fft_radices) {
    for (; rest % radix == 0; rest /= radix) radices.push_back(radix);
  }
  roots.resize(static_cast<size_t>(2 * n));
  for (int64_t k = 0; k < n; ++k) {
    const double angle = -6.28318530717958647692 * static_cast<double>(k) / static_cast<double>(n);
    roots[static_cast<size_t>(2 * k)] = static_cast<T>(std::cos(angle));
    roots[static_cast<size_t>(2 * k + 1)] = static_cast<T>(std::sin(angle));
  }
}
template struct FftPlan<float>;
template struct FftPlan<double>;

template <>
FftKernels<float> fft_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, fft_kernels_f32)();
}
template <>
FftKernels<double> fft_kernels(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, fft_kernels_f64)();
}

}  // namespace tenon::provider::cpu
#endif
