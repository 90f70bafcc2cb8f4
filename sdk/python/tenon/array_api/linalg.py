"""The standard's linalg extension. Matrices lie on the last two axes; axes before them are a batch, which broadcasts."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Optional, Sequence, Union

import tenon
from tenon import DType, Tensor
from tenon.array_api import _statistics
from tenon.array_api._dtypes import finfo
from tenon.array_api._elementwise import promote
from tenon.array_api._manipulation import Axes, as_axes


class EighResult(NamedTuple):
    """Eigenvalues (..., n) and eigenvectors (..., n, n) as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """Q orthogonal, R upper triangular."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its magnitude."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """U, the singular values, V transposed."""

    U: Tensor
    S: Tensor
    Vh: Tensor


# ---- products ----

def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices (..., m, k) and (..., k, n); a tensor of rank 1 is a row on the left, a column on the right."""
    return tenon.matmul(*promote(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two axes exchanged.

    Errors: the rank is below 2."""
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Union[int, tuple[Sequence[int], Sequence[int]]] = 2) -> Tensor:
    """The sum of products over the last axes of `x1` and the first of `x2`, as many as `axes`, or over those it names."""
    a, b = promote(x1, x2)
    if isinstance(axes, int):
        return tenon.tensordot(a, b, axes)
    return tenon.tensordot(a, b, as_axes(tuple(axes[0]), a.ndim, "tensordot"), as_axes(tuple(axes[1]), b.ndim, "tensordot"))


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum of products along the axis, counted from the end; the other axes broadcast."""
    a, b = promote(x1, x2)
    if not -min(a.ndim, b.ndim) <= axis < 0 or a.shape[axis] != b.shape[axis]:
        raise ValueError(f"vecdot: axis {axis} of shapes {tuple(a.shape)} and {tuple(b.shape)} must be negative, in both and of one length.")
    return tenon.sum(a * b, (axis,), False, dtype=a.dtype)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of the elements of two tensors of rank 1: (n,), (m,) gives (n, m)."""
    return tenon.outer(*promote(x1, x2))


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product along an axis of length 3; the others broadcast."""
    a, b = tenon.broadcast_tensors(list(promote(x1, x2)))
    return tenon.cross(a, b, axis)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Square matrices times themselves n times; of a negative n the inverse."""
    return tenon.linalg_matrix_power(x, n)


# ---- parts ----

def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A view of the diagonal `offset` of each matrix, above the main one if positive."""
    return tenon.diagonal(x, offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Optional[DType] = None) -> Tensor:
    """The sum of the diagonal `offset` of each matrix. Dtypes: as sum."""
    return _statistics.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


# ---- decompositions ----

def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """L with x = L times its transpose, or the upper U with x = U transposed times U.

    Errors: a matrix is not positive definite."""
    return tenon.linalg_cholesky(x, upper=upper)


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """x = Q R, with Q (..., m, k), R (..., k, n) and k = min(m, n), or k = m if complete."""
    return QRResult(*tenon.linalg_qr(x, mode))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """x = U diag(S) Vh, S from the greatest on; U and Vh are square if `full_matrices`, else as long as S."""
    return SVDResult(*tenon.linalg_svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of each matrix, from the greatest on."""
    return tenon.linalg_svdvals(x)


def eigh(x: Tensor, /) -> EighResult:
    """The eigenvalues of symmetric matrices, from the least on, and the eigenvectors as columns."""
    return EighResult(*tenon.linalg_eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of symmetric matrices, from the least on."""
    return tenon.linalg_eigvalsh(x)


# ---- solutions ----

def det(x: Tensor, /) -> Tensor:
    """The determinant of each matrix."""
    return tenon.linalg_det(x)


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The sign of the determinant of each matrix, and the logarithm of its magnitude."""
    return SlogdetResult(*tenon.linalg_slogdet(x))


def inv(x: Tensor, /) -> Tensor:
    """The inverse of each matrix.

    Errors: a matrix is singular."""
    return tenon.linalg_inv(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """X with x1 X = x2: x1 (..., n, n), x2 (..., n, k), or (n,), one column for each matrix.

    Errors: a matrix is singular."""
    a, b = promote(x1, x2)
    if b.ndim == 1:
        return tenon.squeeze(tenon.linalg_solve(a, tenon.unsqueeze(b, -1)), -1)
    return tenon.linalg_solve(a, b)


def pinv(x: Tensor, /, *, rtol: Optional[Union[float, Tensor]] = None) -> Tensor:
    """The pseudo-inverse (..., n, m). Singular values up to rtol times the greatest count as 0; max(m, n) * epsilon by default."""
    u, s, vh = tenon.linalg_svd(x, False)
    kept = s > _cutoff(x, s, rtol)
    inverse = tenon.where(kept, 1 / tenon.where(kept, s, 1.0), 0.0)
    return tenon.matmul(vh.mT * tenon.unsqueeze(inverse, -2), u.mT)


def matrix_rank(x: Tensor, /, *, rtol: Optional[Union[float, Tensor]] = None) -> Tensor:
    """How many singular values of each matrix are above rtol times the greatest; max(m, n) * epsilon by default. i64."""
    s = tenon.linalg_svdvals(x)
    return tenon.sum(tenon.cast(s > _cutoff(x, s, rtol), tenon.int64), (-1,))


def _cutoff(x: Tensor, s: Tensor, rtol: Optional[Union[float, Tensor]]) -> Tensor:
    if s.shape[-1] == 0:
        return s
    limit = max(x.shape[-2:]) * finfo(x.dtype).eps if rtol is None else rtol
    if isinstance(limit, Tensor):
        limit = tenon.unsqueeze(limit, -1)
    return tenon.amax(s, (-1,), True) * limit


# ---- norms ----

def vector_norm(x: Tensor, /, *, axis: Optional[Axes] = None, keepdims: bool = False, ord: Union[int, float] = 2) -> Tensor:
    """The norm of order `ord` along the axes, or of all elements: the sum of |x| ** ord to the power 1 / ord; the greatest
    or least |x| for infinite ord, the count of what is not 0 for 0."""
    axes = as_axes(axis, x.ndim, "vector_norm")
    if not axes:
        return tenon.vector_norm(tenon.unsqueeze(x, -1), float(ord), (-1,))
    return tenon.vector_norm(x, float(ord), axes, keepdims)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Union[int, float, str, None] = "fro") -> Tensor:
    """A norm of each matrix: "fro", the root of the sum of squares; "nuc", the sum of singular values; 2 and -2, the
    greatest and the least of them; 1 and -1, the greatest and the least sum of magnitudes of a column, inf and -inf of a row.

    Errors: another order."""
    if ord == "fro" or ord is None:
        return tenon.vector_norm(x, 2.0, (-2, -1), keepdims)
    if ord in ("nuc", 2, -2):
        s = tenon.linalg_svdvals(x)
        result: Any = tenon.sum(s, (-1,)) if ord == "nuc" else _extreme(s, ord, -1)
        return tenon.unsqueeze(tenon.unsqueeze(result, -1), -1) if keepdims else result
    if ord not in (1, -1, tenon.inf, -tenon.inf):
        raise ValueError(f"matrix_norm: ord is {ord!r}; it must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf.")
    summed, over = (-2, -1) if ord in (1, -1) else (-1, -2)
    sums = tenon.sum(tenon.abs(x), (summed,), True)
    result = _extreme(sums, ord, over)
    return tenon.unsqueeze(result, over) if keepdims else tenon.squeeze(result, -1)


def _extreme(x: Tensor, ord: Any, axis: int) -> Tensor:
    return (tenon.amax if ord > 0 else tenon.amin)(x, (axis,))
