// Stockham's transform by mixed radices (as pocketfft's passes), each lane a line, compiled once per dispatch target.
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

// Numbers, a vector each.
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
// x times -i.
template <class T>
HWY_INLINE Value<T> turned(Value<T> x) {
  return {x.im, hn::Neg(x.re)};
}
// x times the root.
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
// Of any radix: `step` is the number of the root exp(-2 pi i / radix).
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

// One pass, as pocketfft's: `before` is the product of the radices of the passes before.
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
Pass<T> pass_of(int32_t radix) {
  switch (radix) {
    case 2: return pass<2, T>;
    case 3: return pass<3, T>;
    case 4: return pass<4, T>;
    case 5: return pass<5, T>;
    case 7: return pass<7, T>;
    case 11: return pass<11, T>;
    default: return pass<13, T>;
  }
}

// Of four lines: their elements i to i + 8, side by side.
template <class T>
using Eight = hn::CappedTag<T, 8>;
constexpr int64_t group = 4;

// to[i * lanes + l] = src[l][i * step] of every line l and i < n. The step is 1 or 2.
template <class T>
HWY_INLINE void gather_lines(const T* const* src, int64_t n, Complex<T> to, bool pairs) {
  const int64_t lanes = lanes_of<T>();
  const Eight<T> d;
  const auto few = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T mixed[2][group * 8];
  int64_t i = 0;
  if (lanes >= group) {
    for (; i + few <= n; i += few) {
      for (int64_t l = 0; l < lanes; l += group) {
        hn::Vec<Eight<T>> re[group];
        hn::Vec<Eight<T>> im[group];
        for (int64_t k = 0; k < group; ++k) {
          if (pairs) {
            hn::LoadInterleaved2(d, src[l + k] + 2 * i, re[k], im[k]);
          } else {
            re[k] = im[k] = hn::LoadU(d, src[l + k] + i);
          }
        }
        hn::StoreInterleaved4(re[0], re[1], re[2], re[3], d, mixed[0]);
        if (pairs) hn::StoreInterleaved4(im[0], im[1], im[2], im[3], d, mixed[1]);
        for (int64_t k = 0; k < few; ++k) {
          hwy::CopyBytes<group * sizeof(T)>(mixed[0] + k * group, to.re + (i + k) * lanes + l);
          if (pairs) hwy::CopyBytes<group * sizeof(T)>(mixed[1] + k * group, to.im + (i + k) * lanes + l);
        }
      }
    }
  }
  for (; i < n; ++i) {
    for (int64_t l = 0; l < lanes; ++l) {
      to.re[i * lanes + l] = src[l][pairs ? 2 * i : i];
      if (pairs) to.im[i * lanes + l] = src[l][2 * i + 1];
    }
  }
}
// The way back, times `scale`.
template <class T>
HWY_INLINE void scatter_lines(Complex<T> from, int64_t n, T* const* dst, bool pairs, T scale) {
  const int64_t lanes = lanes_of<T>();
  const Eight<T> d;
  const auto few = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  HWY_ALIGN T mixed[2][group * 8];
  int64_t i = 0;
  if (lanes >= group) {
    for (; i + few <= n; i += few) {
      for (int64_t l = 0; l < lanes; l += group) {
        for (int64_t k = 0; k < few; ++k) {
          hwy::CopyBytes<group * sizeof(T)>(from.re + (i + k) * lanes + l, mixed[0] + k * group);
          if (pairs) hwy::CopyBytes<group * sizeof(T)>(from.im + (i + k) * lanes + l, mixed[1] + k * group);
        }
        hn::Vec<Eight<T>> re[group];
        hn::Vec<Eight<T>> im[group];
        hn::LoadInterleaved4(d, mixed[0], re[0], re[1], re[2], re[3]);
        if (pairs) hn::LoadInterleaved4(d, mixed[1], im[0], im[1], im[2], im[3]);
        for (int64_t k = 0; k < group; ++k) {
          if (pairs) {
            hn::StoreInterleaved2(hn::Mul(re[k], factor), hn::Mul(im[k], factor), d, dst[l + k] + 2 * i);
          } else {
            hn::StoreU(hn::Mul(re[k], factor), d, dst[l + k] + i);
          }
        }
      }
    }
  }
  for (; i < n; ++i) {
    for (int64_t l = 0; l < lanes; ++l) {
      dst[l][pairs ? 2 * i : i] = from.re[i * lanes + l] * scale;
      if (pairs) dst[l][2 * i + 1] = from.im[i * lanes + l] * scale;
    }
  }
}

// z = a + i b of the half spectra a and b of real lines, of all frequencies.
template <class T>
void join_halves(Complex<T> a, Complex<T> b, int64_t n, Complex<T> z) {
  const D<T> d;
  const int64_t lanes = lanes_of<T>();
  for (int64_t k = 0; k <= n / 2; ++k) {
    Value<T> x = load(a, k * lanes), y = load(b, k * lanes);
    if (k == 0 || 2 * k == n) x.im = y.im = hn::Zero(d);  // the transform of real lines has none
    const Value<T> left = {hn::Sub(x.re, y.im), hn::Add(x.im, y.re)};
    const Value<T> right = {hn::Add(x.re, y.im), hn::Sub(y.re, x.im)};
    store(left, z, k * lanes);
    if (k != 0) store(right, z, (n - k) * lanes);
  }
}
// The half spectra of the parts of the complex lines whose spectrum is z.
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
  if (inverse) {  // the forward one of the parts exchanged
    std::swap(from.re, from.im);
    std::swap(other.re, other.im);
  }
  int64_t before = 1;
  for (const int32_t radix : plan.radices) {
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
  // Two half spectra take the room of a whole one and two more numbers.
  const auto parts_of = [&](Complex<T> whole) {
    return std::pair(Complex<T>{whole.re, whole.re + half * lanes}, Complex<T>{whole.im, whole.im + half * lanes});
  };
  if (lines.form == FftForm::COMPLEX) {
    gather_lines(lines.src, n, x, true);
    scatter_lines(transform(plan, lines.inverse, x, y), n, lines.dst, true, lines.scale);
    return;
  }
  if (lines.form == FftForm::REAL_TO_HALF) {
    gather_lines(lines.src, n, x, false);
    gather_lines(lines.src + lanes, n, Complex<T>{x.im, x.re}, false);
    const Complex<T> z = transform(plan, lines.inverse, x, y);
    const bool in_x = std::min(z.re, z.im) == x.re;
    const auto [a, b] = parts_of(in_x ? y : x);
    split_halves(z, n, a, b);
    scatter_lines(a, half, lines.dst, true, lines.scale);
    scatter_lines(b, half, lines.dst + lanes, true, lines.scale);
    return;
  }
  const auto [a, b] = parts_of(y);
  gather_lines(lines.src, half, a, true);
  gather_lines(lines.src + lanes, half, b, true);
  join_halves(a, b, n, x);
  const Complex<T> z = transform(plan, lines.inverse, x, y);
  scatter_lines(z, n, lines.dst, false, lines.scale);
  scatter_lines(Complex<T>{z.im, z.re}, n, lines.dst + lanes, false, lines.scale);
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
  for (const int32_t radix : {4, 2, 3, 5, 7, 11, 13}) {
    for (; rest % radix == 0; rest /= radix) radices.push_back(radix);
  }
  if (rest != 1) radices.clear();
  if (!usable()) return;
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
