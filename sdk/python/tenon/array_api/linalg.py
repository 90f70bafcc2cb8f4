"""The standard's linalg extension. Matrices are the last two axes. The axes before them are a batch and broadcast."""

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
    """Orthogonal Q and upper triangular R."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The sign of a determinant and the logarithm of its magnitude."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """U, the singular values S, and Vh, the transpose of V."""

    U: Tensor
    S: Tensor
    Vh: Tensor


# ---- products ----

def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Product of matrices (..., m, k) and (..., k, n). A tensor of rank 1 is a row on the left and a column on the
    right."""
    return tenon.matmul(*promote(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Returns a view with the last two axes exchanged.

    Errors: the rank is below 2."""
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Union[int, tuple[Sequence[int], Sequence[int]]] = 2) -> Tensor:
    """Sum of products over the last `axes` axes of `x1` and the first of `x2`, or over two lists of axes."""
    a, b = promote(x1, x2)
    if isinstance(axes, int):
        return tenon.tensordot(a, b, axes)
    return tenon.tensordot(a, b, as_axes(tuple(axes[0]), a.ndim, "tensordot"), as_axes(tuple(axes[1]), b.ndim, "tensordot"))


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sum of products along the axis, a negative number. Other axes broadcast."""
    a, b = promote(x1, x2)
    if not -min(a.ndim, b.ndim) <= axis < 0 or a.shape[axis] != b.shape[axis]:
        raise ValueError(f"vecdot: axis {axis} of shapes {tuple(a.shape)} and {tuple(b.shape)} must be negative, exist in both and have the same length.")
    return tenon.sum(a * b, (axis,), False, dtype=a.dtype)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of the elements of two tensors of rank 1: (n,) and (m,) give (n, m)."""
    return tenon.outer(*promote(x1, x2))


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Cross product along an axis of length 3. Other axes broadcast."""
    a, b = tenon.broadcast_tensors(list(promote(x1, x2)))
    return tenon.cross(a, b, axis)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Power n of square matrices. A negative n takes powers of the inverse."""
    return tenon.linalg_matrix_power(x, n)


# ---- parts ----

def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Returns a view of diagonal `offset` of each matrix. Positive offsets are above the main diagonal."""
    return tenon.diagonal(x, offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Optional[DType] = None) -> Tensor:
    """Sum of diagonal `offset` of each matrix. The dtype is that of sum."""
    return _statistics.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


# ---- decompositions ----

def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Cholesky factor: L with x = L @ L.T, or with `upper` U with x = U.T @ U.

    Errors: a matrix is not positive definite."""
    return tenon.linalg_cholesky(x, upper=upper)


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Decomposition x = Q @ R with Q (..., m, k) and R (..., k, n). k is min(m, n), or m for mode "complete"."""
    return QRResult(*tenon.linalg_qr(x, mode))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Decomposition x = U @ diag(S) @ Vh with S in descending order. U and Vh are square if `full_matrices`, else
    they have as many columns or rows as S has elements."""
    return SVDResult(*tenon.linalg_svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """Singular values of each matrix, in descending order."""
    return tenon.linalg_svdvals(x)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues of symmetric matrices in ascending order, and eigenvectors as columns."""
    return EighResult(*tenon.linalg_eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric matrices in ascending order."""
    return tenon.linalg_eigvalsh(x)


# ---- solutions ----

def det(x: Tensor, /) -> Tensor:
    """Determinant of each matrix."""
    return tenon.linalg_det(x)


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Sign of the determinant of each matrix, and the logarithm of its magnitude."""
    return SlogdetResult(*tenon.linalg_slogdet(x))


def inv(x: Tensor, /) -> Tensor:
    """Inverse of each matrix.

    Errors: a matrix is singular."""
    return tenon.linalg_inv(x)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Returns X with x1 @ X = x2, where x1 is (..., n, n). x2 is (..., n, k), or (n,), a column for every matrix.

    Errors: a matrix is singular."""
    a, b = promote(x1, x2)
    if b.ndim == 1:
        return tenon.squeeze(tenon.linalg_solve(a, tenon.unsqueeze(b, -1)), -1)
    return tenon.linalg_solve(a, b)


def pinv(x: Tensor, /, *, rtol: Optional[Union[float, Tensor]] = None) -> Tensor:
    """Pseudo-inverse (..., n, m). Singular values up to rtol times the greatest count as 0. rtol defaults to
    max(m, n) * epsilon."""
    u, s, vh = tenon.linalg_svd(x, False)
    kept = s > _cutoff(x, s, rtol)
    inverse = tenon.where(kept, 1 / tenon.where(kept, s, 1.0), 0.0)
    return tenon.matmul(vh.mT * tenon.unsqueeze(inverse, -2), u.mT)


def matrix_rank(x: Tensor, /, *, rtol: Optional[Union[float, Tensor]] = None) -> Tensor:
    """i64 number of singular values of each matrix greater than rtol times the greatest. rtol defaults to
    max(m, n) * epsilon."""
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
    """Norm of order `ord` along the axes, or of all elements: (sum of |x| ** ord) ** (1 / ord). inf and -inf take
    the greatest and the least |x|; 0 counts the nonzero elements."""
    axes = as_axes(axis, x.ndim, "vector_norm")
    if not axes:
        return tenon.vector_norm(tenon.unsqueeze(x, -1), float(ord), (-1,))
    return tenon.vector_norm(x, float(ord), axes, keepdims)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Union[int, float, str, None] = "fro") -> Tensor:
    """Norm of each matrix.

    ord: "fro" for the root of the sum of squares, "nuc" for the sum of singular values; 2 and -2 for the greatest
    and least singular value; 1 and -1 for the greatest and least sum of |x| in a column, inf and -inf in a row.

    Errors: another order.
    """
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
