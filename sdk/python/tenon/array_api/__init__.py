"""The namespace of the array API standard (data-apis.org/array-api), over tenon.Tensor.

    xp = x.__array_namespace__()          # tenon.array_api, of any tensor
    xp.mean(xp.asarray([1.0, 2.0]))

What it has, and what not: ARRAY_API.md beside the package's README."""

from tenon import Device, Tensor, bool, e, float32, float64, inf, int8, int16, int32, int64, nan, newaxis, pi, uint8, uint16, uint32, uint64
from tenon.array_api.creation import (arange, asarray, empty, empty_like, eye, from_dlpack, full, full_like, linspace, meshgrid, ones,
                                      ones_like, tril, triu, zeros, zeros_like)
from tenon.array_api.dtypes import astype, can_cast, finfo, iinfo, isdtype, result_type
from tenon.array_api.elementwise import (
    abs, acos, acosh, add, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_or,
    bitwise_right_shift, bitwise_xor, ceil, clip, conj, copysign, cos, cosh, divide, equal, exp, expm1, floor, floor_divide, greater,
    greater_equal, hypot, imag, isfinite, isinf, isnan, less, less_equal, log, log1p, log2, log10, logaddexp, logical_and, logical_not,
    logical_or, logical_xor, maximum, minimum, multiply, negative, nextafter, not_equal, positive, pow, real, reciprocal, remainder,
    round, sign, signbit, sin, sinh, sqrt, square, subtract, tan, tanh, trunc)
from tenon.array_api.info import __array_namespace_info__
from tenon.array_api.manipulation import (broadcast_arrays, broadcast_shapes, broadcast_to, concat, expand_dims, flip, moveaxis,
                                          permute_dims, repeat, reshape, roll, squeeze, stack, tile, unstack)
from tenon.array_api.searching import (argmax, argmin, argsort, count_nonzero, isin, nonzero, searchsorted, sort, take, take_along_axis,
                                       unique_all, unique_counts, unique_inverse, unique_values, where)
from tenon.array_api.statistics import (all, any, cumulative_prod, cumulative_sum, diff, max, mean, min, prod, std, sum, var)
from tenon.array_api import fft, linalg
from tenon.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot

# A program of an older version finds what it asks for, since the standard only adds.
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
__array_api_version__ = VERSIONS[-1]
