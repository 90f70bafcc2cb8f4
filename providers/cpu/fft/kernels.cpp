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
HWY_INLINE void butterfly(Value<T> (&x)[2]) {
  const Value<T> a = x[0];
  x[0] = sum(a, x[1]);
  x[1] = difference(a, x[1]);
}
template <class T>
HWY_INLINE void butterfly(Value<T> (&x)[3]) {
  const Value<T> both = sum(x[1], x[2]);
  const Value<T> side = turned(scaled(difference(x[1], x[2]), static_cast<T>(0.86602540378443864676)));
  const Value<T> middle = difference(x[0], scaled(both, T(0.5)));
  x[0] = sum(x[0], both);
  x[1] = sum(middle, side);
  x[2] = difference(middle, side);
}
template <class T>
HWY_INLINE void butterfly(Value<T> (&x)[4]) {
  const Value<T> a = sum(x[0], x[2]), b = difference(x[0], x[2]);
  const Value<T> c = sum(x[1], x[3]), e = turned(difference(x[1], x[3]));
  x[0] = sum(a, c);
  x[1] = sum(b, e);
  x[2] = difference(a, c);
  x[3] = difference(b, e);
}
template <class T>
HWY_INLINE void butterfly(Value<T> (&x)[8]) {
  constexpr T side = static_cast<T>(0.70710678118654752440);
  Value<T> even[4] = {x[0], x[2], x[4], x[6]};
  Value<T> odd[4] = {x[1], x[3], x[5], x[7]};
  butterfly(even);
  butterfly(odd);
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
HWY_INLINE void butterfly(Value<T> (&x)[5]) {
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
      butterfly(x);
      store(x[0], out, (i + inner * k) * lanes);
      for (int j = 1; j < radix; ++j) {
        const Value<T> y = i == 0 ? x[j] : times(x[j], roots + 2 * j * before * i);
        store(y, out, (i + inner * (k + before * j)) * lanes);
      }
    }
  }
}

// The sums of `count` adjacent results of a butterfly: x0 + sum of root * x[b] over all b > 0. For each pair of inputs
// b and radix - b, `sums` and `sides` hold their sum and difference, which are multiplied by the cosine and the sine.
template <int count, class T>
HWY_INLINE void odd_sums(Value<T> x0, const Value<T>* sums, const Value<T>* sides, int64_t half, const T* roots,
                         int64_t first, int64_t step, int64_t end, Value<T>* low, Value<T>* high) {
  const D<T> d;
  Value<T> middle[count], side[count];
  int64_t at[count];  // in `roots`
  for (int r = 0; r < count; ++r) {
    middle[r] = x0;
    side[r] = {hn::Zero(d), hn::Zero(d)};
    at[r] = 0;
  }
  for (int64_t b = 0; b < half; ++b) {
    for (int r = 0; r < count; ++r) {
      at[r] += (first + r) * step;
      if (at[r] >= end) at[r] -= end;
      const V<T> c = hn::Set(d, roots[at[r]]), s = hn::Set(d, roots[at[r] + 1]);
      middle[r] = {hn::MulAdd(sums[b].re, c, middle[r].re), hn::MulAdd(sums[b].im, c, middle[r].im)};
      side[r] = {hn::MulAdd(sides[b].re, s, side[r].re), hn::MulAdd(sides[b].im, s, side[r].im)};
    }
  }
  for (int r = 0; r < count; ++r) {
    low[r] = {hn::Sub(middle[r].re, side[r].im), hn::Add(middle[r].im, side[r].re)};
    high[r] = {hn::Add(middle[r].re, side[r].im), hn::Sub(middle[r].im, side[r].re)};
  }
}

// One pass of an odd prime; `fixed` is 0 if the compiler does not know it.
template <int64_t fixed, class T>
void odd_pass(const FftPlan<T>& plan, int64_t given, int64_t before, Complex<T> in, Complex<T> out) {
  const int64_t radix = fixed == 0 ? given : fixed, half = radix / 2;
  const int64_t lanes = lanes_of<T>(), inner = plan.length / (before * radix), end = 2 * plan.length;
  const T* const roots = plan.roots.data();
  Value<T> sums[fft_greatest_factor / 2], sides[fft_greatest_factor / 2];
  for (int64_t k = 0; k < before; ++k) {
    for (int64_t i = 0; i < inner; ++i) {
      const auto input = [&](int64_t b) { return load(in, (i + inner * (b + radix * k)) * lanes); };
      const auto result = [&](Value<T> y, int64_t j) {
        if (i != 0) y = times(y, roots + 2 * j * before * i);
        store(y, out, (i + inner * (k + before * j)) * lanes);
      };
      const Value<T> x0 = input(0);
      Value<T> all = x0;
      for (int64_t b = 0; b < half; ++b) {
        const Value<T> x = input(b + 1), y = input(radix - 1 - b);
        sums[b] = sum(x, y);
        sides[b] = difference(x, y);
        all = sum(all, sums[b]);
      }
      store(all, out, (i + inner * k) * lanes);
      const int64_t step = end / radix;
      Value<T> low[2], high[2];
      int64_t j = 1;
      for (; j < half; j += 2) {
        odd_sums<2>(x0, sums, sides, half, roots, j, step, end, low, high);
        for (int r = 0; r < 2; ++r) {
          result(low[r], j + r);
          result(high[r], radix - j - r);
        }
      }
      if (j > half) continue;
      odd_sums<1>(x0, sums, sides, half, roots, j, step, end, low, high);
      result(low[0], j);
      result(high[0], radix - j);
    }
  }
}

template <class T>
void run_pass(const FftPlan<T>& plan, int64_t radix, int64_t before, Complex<T> in, Complex<T> out) {
  switch (radix) {
    case 2: return pass<2>(plan, before, in, out);
    case 3: return pass<3>(plan, before, in, out);
    case 4: return pass<4>(plan, before, in, out);
    case 5: return pass<5>(plan, before, in, out);
    case 7: return odd_pass<7>(plan, radix, before, in, out);
    case 8: return pass<8>(plan, before, in, out);
    case 11: return odd_pass<11>(plan, radix, before, in, out);
    case 13: return odd_pass<13>(plan, radix, before, in, out);
    default: return odd_pass<0>(plan, radix, before, in, out);
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

// What a line holds: real numbers, complex numbers, or real numbers two of which make a complex one.
enum class Kind : uint8_t { REAL, PAIRS, NEIGHBOURS };

// Returns the position of number i of the lines. Unless they are real, every second number is an imaginary part.
template <class T>
HWY_INLINE T* place_of(Complex<T> numbers, int64_t i, Kind kind) {
  if (kind == Kind::REAL) return numbers.re + i * lanes_of<T>();
  return (i % 2 == 0 ? numbers.re : numbers.im) + i / 2 * lanes_of<T>();
}

// Loads the n real or complex numbers of every line. If step > 0, the lines are adjacent, and the next numbers of all
// lines are `step` further.
template <class T>
HWY_INLINE void gather_lines(const T* const* src, int64_t step, int64_t n, Complex<T> to, Kind kind) {
  const D<T> d;
  const int64_t lanes = lanes_of<T>();
  if (step > 0) {
    for (int64_t i = 0; i < n; ++i) {
      V<T> re, im = hn::Zero(d);
      if (kind == Kind::PAIRS) {
        hn::LoadInterleaved2(d, src[0] + i * step, re, im);
      } else if (kind == Kind::NEIGHBOURS) {
        re = hn::LoadU(d, src[0] + 2 * i * step);
        im = hn::LoadU(d, src[0] + (2 * i + 1) * step);
      } else {
        re = hn::LoadU(d, src[0] + i * step);
      }
      store(Value<T>{re, im}, to, i * lanes);
    }
    return;
  }
  const int64_t count = kind == Kind::REAL ? n : 2 * n;
  if (kind == Kind::REAL) std::fill_n(to.im, n * lanes, T{0});
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
      for (int64_t k = 0; k < piece<T>; ++k) hn::StoreU(x[k], d, place_of(to, i + j * piece<T> + k, kind));
    }
  }
#endif
  for (; i < count; ++i) {
    T* const place = place_of(to, i, kind);
    for (int64_t l = 0; l < lanes; ++l) place[l] = src[l][i];
  }
}
// Stores the n pairs of adjacent lines times their factors, or times the conjugates of these.
template <class T>
HWY_INLINE void scatter_products(Complex<T> from, int64_t n, const FftLines<T>& lines) {
  const D<T> d;
  for (int64_t i = 0; i < n; ++i) {
    const Value<T> x = load(from, i * lanes_of<T>());
    V<T> c, s;
    hn::LoadInterleaved2(d, lines.factors + i * lines.dst_step, c, s);
    if (lines.inverse) s = hn::Neg(s);
    const V<T> re = hn::MulSub(x.re, c, hn::Mul(x.im, s)), im = hn::MulAdd(x.re, s, hn::Mul(x.im, c));
    hn::StoreInterleaved2(re, im, d, lines.dst[0] + i * lines.dst_step);
  }
}
// Stores what gather_lines() loads, times `scale`.
template <class T>
HWY_INLINE void scatter_lines(Complex<T> from, int64_t n, T* const* dst, int64_t step, Kind kind, T scale) {
  const D<T> d;
  const int64_t lanes = lanes_of<T>();
  const V<T> factor = hn::Set(d, scale);
  if (step > 0) {
    for (int64_t i = 0; i < n; ++i) {
      const V<T> re = hn::Mul(hn::LoadU(d, from.re + i * lanes), factor);
      const V<T> im = hn::Mul(hn::LoadU(d, from.im + i * lanes), factor);
      if (kind == Kind::PAIRS) {
        hn::StoreInterleaved2(re, im, d, dst[0] + i * step);
      } else if (kind == Kind::NEIGHBOURS) {
        hn::StoreU(re, d, dst[0] + 2 * i * step);
        hn::StoreU(im, d, dst[0] + (2 * i + 1) * step);
      } else {
        hn::StoreU(re, d, dst[0] + i * step);
      }
    }
    return;
  }
  const int64_t count = kind == Kind::REAL ? n : 2 * n;
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; i + lanes <= count; i += lanes) {
    V<T> y[piece<T>][pieces<T>];
    for (int64_t j = 0; j < pieces<T>; ++j) {
      V<T> x[piece<T>];
      for (int64_t k = 0; k < piece<T>; ++k)
        x[k] = hn::Mul(hn::LoadU(d, place_of(from, i + j * piece<T> + k, kind)), factor);
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
    const T* const place = place_of(from, i, kind);
    for (int64_t l = 0; l < lanes; ++l) dst[l][i] = place[l] * scale;
  }
}

// Numbers k and half - k of a spectrum, x and y: their sum and difference, where y is conjugated, the difference being
// multiplied by the root and by -i, or by i if it `joins`. The results are sum + difference for k, and for half - k the
// conjugate of sum - difference.
template <bool joins, class Vector>
HWY_INLINE void combine(Vector* re, Vector* im, Vector* far_re, Vector* far_im, Vector c, Vector s) {
  const Vector sum = hn::Add(*re, *far_re), side = hn::Sub(*im, *far_im);
  const Vector p = hn::Sub(*re, *far_re), q = hn::Add(*im, *far_im);
  Vector left = hn::MulAdd(p, s, hn::Mul(q, c)), up = hn::MulSub(q, s, hn::Mul(p, c));
  if (joins) {
    left = hn::Neg(left);
    up = hn::Neg(up);
  }
  *re = hn::Add(sum, left);
  *im = hn::Add(side, up);
  *far_re = hn::Sub(sum, left);
  *far_im = hn::Sub(up, side);
}
// Combines all pairs of lines of `half` numbers; `to` has one number more if it does not join, `from` otherwise.
template <bool joins, class T>
void halves_of(Complex<T> from, int64_t half, const T* roots, bool inverse, Complex<T> to) {
  const D<T> d;
  const int64_t lanes = lanes_of<T>();
  const Value<T> first = load(from, 0);
  const V<T> zero = hn::Zero(d);
  if (joins) {
    const V<T> last = load(from, half * lanes).re;
    store(Value<T>{hn::Add(first.re, last), hn::Sub(first.re, last)}, to, 0);
  } else {
    store(Value<T>{hn::Add(first.re, first.im), zero}, to, 0);
    store(Value<T>{hn::Sub(first.re, first.im), zero}, to, half * lanes);
  }
  for (int64_t k = 1; k <= half / 2; ++k) {
    Value<T> x = load(from, k * lanes), y = load(from, (half - k) * lanes);
    const V<T> s = hn::Set(d, inverse ? -roots[2 * k + 1] : roots[2 * k + 1]);
    combine<joins>(&x.re, &x.im, &y.re, &y.im, hn::Set(d, roots[2 * k]), s);
    store(joins ? x : scaled(x, T{0.5}), to, k * lanes);
    store(joins ? y : scaled(y, T{0.5}), to, (half - k) * lanes);
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
    run_pass(plan, radix, before, from, other);
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
  if (lines.form == FftForm::COMPLEX) {
    gather_lines(lines.src, lines.src_step, n, x, Kind::PAIRS);
    const Complex<T> z = transform(plan, lines.inverse, x, y);
    if (lines.factors != nullptr) return scatter_products(z, n, lines);
    return scatter_lines(z, n, lines.dst, lines.dst_step, Kind::PAIRS, lines.scale);
  }
  const bool even = lines.half_roots != nullptr;
  if (lines.form == FftForm::REAL_TO_HALF) {
    gather_lines(lines.src, lines.src_step, n, x, even ? Kind::NEIGHBOURS : Kind::REAL);
    const Complex<T> z = transform(plan, lines.inverse, x, y);
    const Complex<T> other = z.re == x.re ? y : x;
    if (even) halves_of<false>(z, n, lines.half_roots, lines.inverse, other);
    if (!even) std::fill_n(z.im, lanes, T{0});
    return scatter_lines(even ? other : z, even ? n + 1 : n / 2 + 1, lines.dst, lines.dst_step, Kind::PAIRS,
                         lines.scale);
  }
  gather_lines(lines.src, lines.src_step, even ? n + 1 : n / 2 + 1, even ? y : x, Kind::PAIRS);
  if (even) {
    halves_of<true>(y, n, lines.half_roots, lines.inverse, x);
  } else {
    std::fill_n(x.im, lanes, T{0});
    for (int64_t k = 1; k <= n / 2; ++k) {
      const Value<T> value = load(x, k * lanes);
      store(Value<T>{value.re, hn::Neg(value.im)}, x, (n - k) * lanes);
    }
  }
  scatter_lines(transform(plan, lines.inverse, x, y), n, lines.dst, lines.dst_step,
                even ? Kind::NEIGHBOURS : Kind::REAL, lines.scale);
}

template <class Tag, class T>
HWY_INLINE void multiply_from(Tag d, const T* a, const T* b, bool conjugate, T scale, T* dst, int64_t* i,
                              int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale), sign = hn::Set(d, conjugate ? -scale : scale);
  for (; *i + lanes <= count; *i += lanes) {
    hn::Vec<Tag> x, y, c, s;
    hn::LoadInterleaved2(d, a + 2 * *i, x, y);
    hn::LoadInterleaved2(d, b + 2 * *i, c, s);
    c = hn::Mul(c, factor);
    s = hn::Mul(s, sign);
    hn::StoreInterleaved2(hn::MulSub(x, c, hn::Mul(y, s)), hn::MulAdd(x, s, hn::Mul(y, c)), d, dst + 2 * *i);
  }
}
template <class T>
void multiply(const T* a, const T* b, bool conjugate, T scale, T* dst, int64_t count) {
  int64_t i = 0;
  multiply_from(D<T>(), a, b, conjugate, scale, dst, &i, count);
  multiply_from(hn::CappedTag<T, 1>(), a, b, conjugate, scale, dst, &i, count);
}

// Pairs k and half - k of a spectrum, for as many k from `*at` on as fill vectors. `joins`: as in FftKernels::join,
// otherwise as in FftKernels::split.
template <bool joins, class Tag, class T>
HWY_INLINE void halves_from(Tag d, const FftHalves<T>& halves, const T* src, T* dst, int64_t* at) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool turns_back = halves.inverse;
  const auto factor = hn::Set(d, halves.scale);
  for (; *at + lanes - 1 <= halves.half / 2; *at += lanes) {
    const int64_t near = 2 * *at, far = 2 * (halves.half - *at - lanes + 1);
    hn::Vec<Tag> x, y, u, v, c, s;
    hn::LoadInterleaved2(d, src + near, x, y);
    hn::LoadInterleaved2(d, src + far, u, v);
    hn::LoadInterleaved2(d, halves.roots + near, c, s);
    if (turns_back) s = hn::Neg(s);
    u = hn::Reverse(d, u);
    v = hn::Reverse(d, v);
    combine<joins>(&x, &y, &u, &v, c, s);
    hn::StoreInterleaved2(hn::Mul(x, factor), hn::Mul(y, factor), d, dst + near);
    hn::StoreInterleaved2(hn::Reverse(d, hn::Mul(u, factor)), hn::Reverse(d, hn::Mul(v, factor)), d, dst + far);
  }
}
template <class T>
void split(const FftHalves<T>& halves, const T* src, T* dst) {
  FftHalves<T> by_two = halves;
  by_two.scale *= T{0.5};
  dst[0] = halves.scale * (src[0] + src[1]);
  dst[2 * halves.half] = halves.scale * (src[0] - src[1]);
  dst[1] = dst[2 * halves.half + 1] = 0;
  int64_t at = 1;
  halves_from<false>(D<T>(), by_two, src, dst, &at);
  halves_from<false>(hn::CappedTag<T, 1>(), by_two, src, dst, &at);
}
template <class T>
void join(const FftHalves<T>& halves, const T* src, T* dst) {
  dst[0] = halves.scale * (src[0] + src[2 * halves.half]);
  dst[1] = halves.scale * (src[0] - src[2 * halves.half]);
  int64_t at = 1;
  halves_from<true>(D<T>(), halves, src, dst, &at);
  halves_from<true>(hn::CappedTag<T, 1>(), halves, src, dst, &at);
}

template <class T>
FftKernels<T> kernels() {
  return {lanes_of<T>(), run<T>, multiply<T>, split<T>, join<T>};
}

}  // namespace

FftKernels<float> fft_kernels_f32() { return kernels<float>(); }
FftKernels<double> fft_kernels_f64() { return kernels<double>(); }

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cmath>

#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

std::vector<int64_t> fft_radices(int64_t n) {
  std::vector<int64_t> radices;
  int64_t rest = n;
  for (; rest % 8 == 0 && rest / 8 % 4 != 2; rest /= 8) radices.push_back(8);  // 16 is split as 4 times 4
  for (; rest % 4 == 0; rest /= 4) radices.push_back(4);
  for (int64_t factor = 2; factor <= fft_greatest_factor; ++factor) {
    for (; rest % factor == 0; rest /= factor) radices.push_back(factor);
  }
  if (rest != 1) radices.clear();
  return radices;
}

template <class T>
FftPlan<T>::FftPlan(int64_t n) : length(n), radices(fft_radices(n)) {
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
