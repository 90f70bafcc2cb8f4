"""Special functions, with the names of torch.special. Functions that are not ops are computed in f64 by ops and
rounded once.

The Bessel functions are power series, integrals by the trapezoidal rule where that converges exponentially
(Trefethen and Weideman 2014), and asymptotic series (Abramowitz and Stegun, chapters 9 and 10).
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable

import tenon
from tenon import Tensor
from tenon._spellings import with_out

digamma = psi = tenon.digamma
gammaln = tenon.lgamma
erf, erfc, erfinv, exp2, expm1, expit = tenon.erf, tenon.erfc, tenon.erfinv, tenon.exp2, tenon.expm1, tenon.sigmoid
log1p, logit, round, sinc, logsumexp, xlogy = tenon.log1p, tenon.logit, tenon.round, tenon.sinc, tenon.logsumexp, tenon.xlogy
softmax, log_softmax = tenon.softmax, tenon.log_softmax


def _dtype_of(arguments: Any) -> Any:
    """Returns the dtype of the result: the promoted dtype of the float arguments, or f32 without any."""
    tensors = [each for each in arguments if isinstance(each, Tensor)]
    floats = [each.dtype for each in tensors if each.dtype.is_floating_point]
    if not floats:
        return tenon.f32
    shaped = [each.dtype for each in tensors if each.dtype.is_floating_point and each.ndim] or floats
    return functools.reduce(tenon.promote_types, shaped)


def _in_f64(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """Wraps a function so that it gets its tensors as f64 and its result is cast to the dtype of the float
    arguments."""
    @with_out
    @functools.wraps(function)
    def compute(*args: Any) -> Tensor:
        if not any(isinstance(each, Tensor) for each in args):
            raise tenon.InvalidCall(f"{function.__name__}(): one of the arguments must be a Tensor.")
        wide = [tenon.cast(each, tenon.f64) if isinstance(each, Tensor) else each for each in args]
        return tenon.cast(function(*wide), _dtype_of(args))
    return compute


# ---- normal distribution and entropy ----

@_in_f64
def erfcx(input: Tensor) -> Tensor:
    """exp(input ** 2) * erfc(input), without overflow. For large input a continued fraction."""
    far = tenon.clamp(input, 5.0)
    fraction = far
    for k in range(40, 0, -1):
        fraction = far + (k / 2) / fraction
    near = tenon.clamp(input, None, 5.0)
    return tenon.where(input < 5.0, tenon.exp(near * near) * tenon.erfc(near), 1 / (math.sqrt(math.pi) * fraction))


@_in_f64
def ndtr(input: Tensor) -> Tensor:
    """Standard normal distribution function: the probability of a value below input."""
    return tenon.erfc(input * -math.sqrt(0.5)) * 0.5


@_in_f64
def log_ndtr(input: Tensor) -> Tensor:
    """Logarithm of ndtr, without underflow."""
    low = tenon.clamp(input, None, -1.0)
    high = tenon.clamp(input, -1.0)
    tail = tenon.log(erfcx(low * -math.sqrt(0.5)) * 0.5) - low * low * 0.5
    return tenon.where(input < -1.0, tail, tenon.log1p(tenon.erfc(high * math.sqrt(0.5)) * -0.5))


@_in_f64
def ndtri(input: Tensor) -> Tensor:
    """Inverse of ndtr. Starts with a rational approximation (Abramowitz and Stegun 26.2.23) and makes Newton steps
    on the logarithm."""
    tail = tenon.minimum(input, 1 - input)
    inside = tenon.logical_and(input > 0, input < 1)
    wanted = tenon.log(tenon.where(inside, tail, 0.25))
    t = tenon.sqrt(wanted * -2)
    x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t
    for _ in range(5):
        logarithm = log_ndtr(x)
        x = x - (logarithm - wanted) * tenon.exp(logarithm + x * x * 0.5) * math.sqrt(2 * math.pi)
    x = tenon.where(input > 0.5, -x, x)
    ends = tenon.where(input == 0, -math.inf, tenon.where(input == 1, math.inf, math.nan))
    return tenon.where(inside, x, ends)


@_in_f64
def entr(input: Tensor) -> Tensor:
    """-input * log(input); 0 at 0 and -inf below."""
    return tenon.where(input < 0, -math.inf, -tenon.xlogy(input, input))


@_in_f64
def _xlog1py(input: Any, other: Any) -> Any:
    product = input * tenon.log1p(other if isinstance(other, Tensor) else tenon.tensor(other, dtype=tenon.f64))
    return tenon.where(tenon.logical_and(_equal(input, 0), tenon.logical_not(_is_nan(other))), 0.0, product)


def _equal(value: Any, number: float) -> Tensor:
    return tenon.eq(value, number) if isinstance(value, Tensor) else tenon.tensor(value == number)


def _is_nan(value: Any) -> Tensor:
    return tenon.isnan(value) if isinstance(value, Tensor) else tenon.tensor(math.isnan(value))


@with_out
def xlog1py(input: Any, other: Any) -> Tensor:
    """input * log(1 + other); 0 where input is 0 and other is not NaN."""
    return _xlog1py(input, other)


# ---- gamma and zeta ----

def _bernoulli_terms(s: Any, a: Any, count: int = 12) -> Any:
    """Bernoulli terms of the Euler-Maclaurin formula for the sum of (a + k) ** -s over k = 0, 1, ..."""
    numbers = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330, 854513 / 138, -236364091 / 2730]
    rising, factorial, total = s, 2.0, 0.0
    power = tenon.pow(a, -s - 1)
    for k in range(1, count + 1):
        total = total + rising * power * (numbers[k - 1] / factorial)
        rising = rising * (s + (2 * k - 1)) * (s + 2 * k)
        factorial *= (2 * k + 1) * (2 * k + 2)
        power = power / (a * a)
    return total


def _hurwitz(s: Any, q: Any) -> Any:
    """Sum of (q + k) ** -s over k = 0, 1, ... for q > 0: twelve terms, and the Euler-Maclaurin formula for the rest."""
    total = sum((tenon.pow(q + k, -s) for k in range(1, 12)), tenon.pow(q, -s))
    a = q + 12
    return total + tenon.pow(a, 1 - s) / (s - 1) + tenon.pow(a, -s) * 0.5 + _bernoulli_terms(s, a)


@_in_f64
def zeta(input: Any, other: Any) -> Tensor:
    """Hurwitz zeta function: the sum of (other + k) ** -input over k = 0, 1, ... input must be greater than 1."""
    s = input if isinstance(input, Tensor) else tenon.tensor(float(input), dtype=tenon.f64)
    q = other if isinstance(other, Tensor) else tenon.tensor(float(other), dtype=tenon.f64)
    whole = tenon.eq(q, tenon.floor(q))
    inside = tenon.logical_and(q < 0, tenon.logical_not(whole))
    # For q < 0: the sum from the fraction of q on, plus the terms from q up to it, which have the sign of (-1)^s.
    fraction = tenon.where(inside, q - tenon.floor(q), 0.5)
    sign = tenon.where(tenon.eq(tenon.remainder(s, 2.0), 0), 1.0, -1.0)
    negative = _hurwitz(s, fraction) + sign * (_hurwitz(s, 1 - fraction) - _hurwitz(s, 1 - tenon.where(inside, q, -0.5)))
    below = tenon.where(whole, math.inf, tenon.where(tenon.eq(s, tenon.floor(s)), negative, math.nan))
    total = tenon.where(q <= 0, below, tenon.where(q > 0, _hurwitz(s, tenon.where(q > 0, q, 1.0)), math.nan))
    return tenon.where(s > 1, total, tenon.where(s == 1, math.inf, math.nan))


@with_out
def polygamma(n: int, input: Tensor) -> Tensor:
    """n-th derivative of digamma."""
    if n < 0:
        raise tenon.InvalidArgument(f"polygamma(n, x) does not support negative n; n is {n}.")
    if n == 0:
        return tenon.digamma(input)
    sign = 1.0 if n % 2 else -1.0
    return zeta(float(n + 1), input) * (sign * math.factorial(n))


@with_out
def multigammaln(input: Tensor, p: int) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension p."""
    if p < 1:
        raise tenon.InvalidArgument(f"mvlgamma: p is {p}; it has to be greater than or equal to 1.")
    total = tenon.lgamma(input)
    for i in range(1, p):
        total = total + tenon.lgamma(input - i / 2)
    return total + p * (p - 1) / 4 * math.log(math.pi)


def _lower_series(a: Tensor, x: Tensor) -> Tensor:
    term = 1 / a
    total, place = term, a
    for _ in range(400):
        place = place + 1
        term = term * x / place
        total = total + term
    return total


def _upper_fraction(a: Tensor, x: Tensor) -> Tensor:
    """Legendre's continued fraction, evaluated from its 400th level upwards."""
    fraction = x + (2 * 400 + 1) - a
    for k in range(400, 0, -1):
        fraction = x + (2 * k - 1) - a - (a - k) * -k / fraction
    return 1 / fraction


_LARGE = 2000.0  # above this the asymptotic series is exact to 1e-8, and the others would need more terms


def _lower_large(a: Tensor, x: Tensor) -> Tensor:
    """Lower part for large a: the first two terms of Temme's uniform series (1979)."""
    ratio = x / a - 1
    eta = tenon.sqrt(tenon.clamp((ratio - tenon.log1p(ratio)) * 2, 0)) * tenon.sign(ratio)
    close = tenon.abs(ratio) < 1e-3
    step = tenon.where(close, 1.0, ratio)
    correction = tenon.where(close, -1 / 3 + ratio / 12, 1 / step - 1 / tenon.where(close, 1.0, eta))
    return tenon.erfc(eta * tenon.sqrt(a / 2) * -1) * 0.5 - tenon.exp(a * eta * eta * -0.5) / tenon.sqrt(a * (2 * math.pi)) * correction


def _incomplete(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the lower and the upper incomplete gamma function of a at x, both divided by gamma(a)."""
    valid = tenon.logical_and(tenon.logical_and(a > 0, x > 0), tenon.logical_and(tenon.isfinite(a), tenon.isfinite(x)))
    large = tenon.logical_and(valid, a > _LARGE)
    usual = tenon.logical_and(valid, a <= _LARGE)
    shape, cut = tenon.where(usual, a, 1.0), tenon.where(usual, x, 1.0)
    scale = tenon.exp(shape * tenon.log(cut) - cut - tenon.lgamma(shape))
    series = cut < shape + 1
    lower = scale * _lower_series(shape, tenon.where(series, cut, 0.5))
    upper = scale * _upper_fraction(shape, tenon.where(series, shape + 2, cut))
    lower, upper = tenon.where(series, lower, 1 - upper), tenon.where(series, 1 - lower, upper)
    asymptotic = _lower_large(tenon.where(large, a, _LARGE), tenon.where(large, x, _LARGE))
    lower, upper = tenon.where(large, asymptotic, lower), tenon.where(large, 1 - asymptotic, upper)
    whole = tenon.logical_and(tenon.logical_or(tenon.eq(a, 0), tenon.eq(x, math.inf)), tenon.logical_and(x > 0, tenon.isfinite(a)))
    none = tenon.logical_or(tenon.logical_and(tenon.eq(x, 0), a > 0), tenon.logical_and(tenon.eq(a, math.inf), tenon.isfinite(x)))
    result = []
    for part, at_whole in ((lower, 1.0), (upper, 0.0)):
        part = tenon.where(valid, part, math.nan)
        result.append(tenon.where(none, 1.0 - at_whole, tenon.where(whole, at_whole, part)))
    return result[0], result[1]


@_in_f64
def gammainc(input: Tensor, other: Tensor) -> Tensor:
    """Lower incomplete gamma function of input at other, divided by gamma(input)."""
    return _incomplete(input, other)[0]


@_in_f64
def gammaincc(input: Tensor, other: Tensor) -> Tensor:
    """1 - gammainc(input, other), precise where gammainc is near 1."""
    return _incomplete(input, other)[1]


# ---- Bessel functions ----

def _modified_series(order: int, x: Tensor) -> Tensor:
    """Power series of I. All terms are positive."""
    square, term = x * x * 0.25, 1.0
    total: Any = 1.0
    for k in range(1, 61):
        term = square * (1.0 / (k * (k + order))) * term
        total = total + term
    return total * tenon.pow(x * 0.5, order) if order else total


def _modified_far(order: int, x: Tensor, sign: int) -> Any:
    """Asymptotic series of I (sign -1) or K (sign 1), without its exponential and its root."""
    term: Any = 1.0
    total: Any = 1.0
    for k in range(1, 25):
        term = term * (sign * (4 * order * order - (2 * k - 1) ** 2) / (8.0 * k)) / x
        total = total + term
    return total


def _modified_first(order: int, input: Tensor, scaled: bool) -> Tensor:
    near, far = tenon.clamp(input, -25.0, 25.0), tenon.clamp(tenon.abs(input), 25.0)
    low = _modified_series(order, near)
    high = _modified_far(order, far, -1) / tenon.sqrt(far * (2 * math.pi))
    low = low * tenon.exp(-tenon.abs(near)) if scaled else low
    high = high if scaled else high * tenon.exp(far)
    high = tenon.where(input < 0, -high, high) if order else high
    return tenon.where(tenon.isnan(input), input, tenon.where(tenon.abs(input) < 25.0, low, high))


def _modified_second(order: int, x: Tensor, scaled: bool) -> Tensor:
    """Integral of exp(-x * cosh(t)) * cosh(order * t) over t > 0. By the trapezoidal rule for x up to 30, else by
    the asymptotic series."""
    step, near = 1 / 8, tenon.clamp(x, None, 30.0)
    total = tenon.exp(near * 0) * 0.5
    for k in range(1, 200):
        t = k * step
        total = total + tenon.exp(near * -(math.cosh(t) - 1)) * math.cosh(order * t)
    far = tenon.clamp(x, 30.0)
    result = tenon.where(x < 30.0, total * step, tenon.sqrt(math.pi / (far * 2)) * _modified_far(order, far, 1))
    result = result if scaled else result * tenon.exp(-x)
    result = tenon.where(tenon.eq(x, math.inf), 0.0, result)
    return tenon.where(x > 0, result, tenon.where(tenon.eq(x, 0), math.inf, math.nan))


def _modified(name: str, order: int, scaled: bool, second: bool, doc: str) -> Callable[[Tensor], Tensor]:
    def function(input: Tensor) -> Tensor:
        return (_modified_second if second else _modified_first)(order, input, scaled)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return _in_f64(function)


i0 = modified_bessel_i0 = _modified("i0", 0, False, False, "The modified Bessel function of the first kind, of order 0.")
i1 = modified_bessel_i1 = _modified("i1", 1, False, False, "The modified Bessel function of the first kind, of order 1.")
i0e = _modified("i0e", 0, True, False, "i0(input) exp(-|input|).")
i1e = _modified("i1e", 1, True, False, "i1(input) exp(-|input|).")
modified_bessel_k0 = _modified("modified_bessel_k0", 0, False, True, "The modified Bessel function of the second kind, of order 0.")
modified_bessel_k1 = _modified("modified_bessel_k1", 1, False, True, "The modified Bessel function of the second kind, of order 1.")
scaled_modified_bessel_k0 = _modified("scaled_modified_bessel_k0", 0, True, True, "modified_bessel_k0(x) exp(x).")
scaled_modified_bessel_k1 = _modified("scaled_modified_bessel_k1", 1, True, True, "modified_bessel_k1(x) exp(x).")


def _far_phase(order: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns P and Q, the factors of cosine and sine in Hankel's asymptotic series (Abramowitz and Stegun 9.2.9)."""
    p: Any = 1.0
    q: Any = 0.0
    term: Any = 1.0
    for k in range(1, 21):
        term = term * ((4 * order * order - (2 * k - 1) ** 2) / (8.0 * k)) / x
        sign = -1.0 if (k // 2) % 2 else 1.0
        if k % 2:
            q = q + term * sign
        else:
            p = p + term * sign
    return p, q


def _oscillating_far(order: int, x: Tensor, second: bool) -> Tensor:
    p, q = _far_phase(order, x)
    phase = x - (2 * order + 1) * math.pi / 4
    cosine, sine = tenon.cos(phase), tenon.sin(phase)
    return tenon.sqrt(2 / (math.pi * x)) * (p * sine + q * cosine if second else p * cosine - q * sine)


def _first_near(order: int, x: Tensor) -> Tensor:
    """Mean of cos(order * t - x * sin(t)) over a period. For |x| <= 25 the sum over 64 positions is exact."""
    total = x * 0
    for k in range(64):
        t = 2 * math.pi * k / 64
        total = total + tenon.cos(x * -math.sin(t) + order * t)
    return total / 64


def _second_near(order: int, x: Tensor, first: Tensor) -> Tensor:
    """Power series of Y, with its logarithm."""
    square, term, harmonic = x * x * 0.25, x * 0 + 1, 0.0
    total = term * (0.0 if order == 0 else 1.0)
    for k in range(1, 46):
        term = term * square * (-1.0 / (k * (k + order)))
        harmonic += 1 / k
        total = total + term * (2 * harmonic if order == 0 else 2 * harmonic + 1 / (k + 1))
    logarithm = (tenon.log(x * 0.5) + 0.5772156649015329) * first * (2 / math.pi)
    return logarithm - total / math.pi if order == 0 else logarithm - 2 / (math.pi * x) - x * total / (2 * math.pi)


def _bessel_first(order: int, input: Tensor) -> Tensor:
    x = tenon.abs(input)
    result = tenon.where(x < 25.0, _first_near(order, tenon.clamp(x, None, 25.0)), _oscillating_far(order, tenon.clamp(x, 25.0), False))
    result = tenon.where(tenon.isinf(input), 0.0, tenon.where(tenon.isnan(input), math.nan, result))
    return tenon.where(input < 0, -result, result) if order else result


def _bessel_second(order: int, x: Tensor) -> Tensor:
    near = tenon.clamp(tenon.where(x > 0, x, 1.0), None, 14.0)
    result = tenon.where(x < 14.0, _second_near(order, near, _first_near(order, near)), _oscillating_far(order, tenon.clamp(x, 14.0), True))
    result = tenon.where(tenon.eq(x, math.inf), 0.0, result)
    return tenon.where(x > 0, result, tenon.where(tenon.eq(x, 0), -math.inf, math.nan))


@_in_f64
def bessel_j0(input: Tensor) -> Tensor:
    """Bessel function of the first kind of order 0."""
    return _bessel_first(0, input)


@_in_f64
def bessel_j1(input: Tensor) -> Tensor:
    """Bessel function of the first kind of order 1."""
    return _bessel_first(1, input)


@_in_f64
def bessel_y0(input: Tensor) -> Tensor:
    """Bessel function of the second kind of order 0."""
    return _bessel_second(0, input)


@_in_f64
def bessel_y1(input: Tensor) -> Tensor:
    """Bessel function of the second kind of order 1."""
    return _bessel_second(1, input)


@_in_f64
def spherical_bessel_j0(input: Tensor) -> Tensor:
    """sin(input) / input; 1 at 0."""
    finite = tenon.where(tenon.isinf(input), 1.0, input)
    return tenon.where(tenon.isinf(input), 0.0, tenon.sinc(finite / math.pi))


# ---- orthogonal polynomials ----

_MOST_STEPS = 20000  # greatest degree by recurrence; each step is a pass over the tensor


def _polynomial(name: str, first: Callable[[Any], Any], following: Callable[[int, Any, Any, Any], Any], doc: str, shifted: bool = False,
                high: Callable[[Any, Any], Any] | None = None) -> Callable[..., Tensor]:
    """Returns a function of (x, n) by a recurrence: p0 = 1, p1 = first(x), p(k + 1) = following(k, x, pk, p(k - 1)).
    It is 0 for n < 0. `high` is a closed form for degrees above 64."""
    def function(x: Any, n: Any) -> Any:
        points = x if isinstance(x, Tensor) else tenon.tensor(float(x), dtype=tenon.f64)
        points = points * 2 - 1 if shifted else points
        degrees = tenon.trunc(n) if isinstance(n, Tensor) else tenon.tensor(float(int(n)), dtype=tenon.f64)
        degrees = tenon.where(tenon.abs(degrees) < 2.0**62, degrees, -1.0)  # conversion to i64 makes such numbers and NaN negative
        before, now = points * 0 + 1, first(points)
        result = tenon.where(degrees < 0, 0.0, before)
        most = int(tenon.amax(degrees).item()) if degrees.numel() else 0
        if high is not None and most > 64:
            result, most = tenon.where(degrees > 64, high(points, degrees), result), 64
        if most > _MOST_STEPS:
            raise tenon.Unsupported(f"{name}: the degree is {most}; at most {_MOST_STEPS} is supported.")
        for k in range(1, most + 1):
            result = tenon.where(tenon.eq(degrees, k), now, result)
            before, now = now, following(k, points, now, before)
        return result
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc + " This function reads the degrees n, so a recorded program cannot contain it."
    return _in_f64(function)


def _chebyshev(k: int, x: Any, now: Any, before: Any) -> Any:
    return x * 2 * now - before


def _high(letter: str) -> Callable[[Any, Any], Any]:
    """Returns the trigonometric form of Chebyshev polynomials, and the hyperbolic form outside of [-1, 1]."""
    shift = {"t": 0.0, "u": 1.0, "v": 0.5, "w": 0.5}[letter]
    top, wide = (tenon.cos, tenon.cosh) if letter in "tv" else (tenon.sin, tenon.sinh)
    divisor = {"t": 0.0, "u": 1.0, "v": 0.5, "w": 0.5}[letter]

    def compute(x: Any, n: Any) -> Any:
        inside = tenon.abs(x) < 1
        angle = tenon.acos(tenon.where(inside, x, 0.5))
        near = top((n + shift) * angle)
        far_angle = tenon.acosh(tenon.clamp(tenon.abs(x), 1.0 + 1e-12))
        far = wide((n + shift) * far_angle)
        if divisor:
            near, far = near / top(angle * divisor), far / wide(far_angle * divisor)
        odd = tenon.ne(tenon.remainder(n, 2.0), 0)
        if letter in "vw":  # v and w are exchanged at -x
            other = tenon.sinh if letter == "v" else tenon.cosh
            turned = other((n + shift) * far_angle) / other(far_angle * divisor)
            mirrored = tenon.where(odd, -turned, turned)
        else:
            mirrored = tenon.where(odd, -far, far)
        return tenon.where(inside, near, tenon.where(x > 0, far, mirrored))
    return compute


for _letter, _first, _kind in (("t", lambda x: x, "first"), ("u", lambda x: x * 2, "second"), ("v", lambda x: x * 2 - 1, "third"), ("w", lambda x: x * 2 + 1, "fourth")):
    for _prefix in ("", "shifted_"):
        _name = f"{_prefix}chebyshev_polynomial_{_letter}"
        globals()[_name] = _polynomial(_name, _first, _chebyshev, f"Chebyshev's polynomials of the {_kind} kind{', at 2 x - 1' if _prefix else ''}.",
                                       bool(_prefix), _high(_letter))



def _limited(polynomial: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Returns the polynomial with NaN for degrees above 512, or above 128 for results other than f64, as in PyTorch."""
    @with_out
    @functools.wraps(polynomial)
    def compute(x: Any, n: Any) -> Tensor:
        most = 512 if _dtype_of((x, n)) == tenon.f64 else 128
        if not isinstance(n, Tensor):
            return polynomial(x, n) if n <= most else tenon.full_like(polynomial(x, 0), math.nan)
        return tenon.where(n > most, math.nan, polynomial(x, tenon.clamp(n, None, most)))
    return compute


hermite_polynomial_h = _limited(_polynomial("hermite_polynomial_h", lambda x: x * 2, lambda k, x, now, before: (x * now - before * k) * 2,
                                            "The physicist's Hermite polynomials."))
hermite_polynomial_he = _limited(_polynomial("hermite_polynomial_he", lambda x: x, lambda k, x, now, before: x * now - before * k,
                                             "The probabilist's Hermite polynomials."))
laguerre_polynomial_l = _polynomial("laguerre_polynomial_l", lambda x: 1 - x,
                                    lambda k, x, now, before: ((2 * k + 1 - x) * now - before * k) / (k + 1), "Laguerre's polynomials.")
legendre_polynomial_p = _polynomial("legendre_polynomial_p", lambda x: x,
                                    lambda k, x, now, before: (x * now * (2 * k + 1) - before * k) / (k + 1), "Legendre's polynomials.")
