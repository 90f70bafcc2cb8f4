"""Linear algebra, with the names and arguments of torch.linalg. Matrices are the last two axes, other axes are a
batch."""

from __future__ import annotations

import collections
import math
from typing import Any, Sequence

import tenon
from tenon import Tensor
from tenon._spellings import with_out

cholesky, inv, det, slogdet = tenon.linalg_cholesky, tenon.linalg_inv, tenon.linalg_det, tenon.linalg_slogdet
svdvals, matrix_power, cross = tenon.linalg_svdvals, tenon.linalg_matrix_power, tenon.cross

_CholeskyEx = collections.namedtuple("linalg_cholesky_ex", ["L", "info"])
_InvEx = collections.namedtuple("linalg_inv_ex", ["inverse", "info"])
_SolveEx = collections.namedtuple("linalg_solve_ex", ["result", "info"])
_LuFactorEx = collections.namedtuple("linalg_lu_factor_ex", ["LU", "pivots", "info"])
_LuFactor = collections.namedtuple("linalg_lu_factor", ["LU", "pivots"])
_Lu = collections.namedtuple("linalg_lu", ["P", "L", "U"])
_Qr = collections.namedtuple("linalg_qr", ["Q", "R"])
_Svd = collections.namedtuple("linalg_svd", ["U", "S", "Vh"])
_Eigh = collections.namedtuple("linalg_eigh", ["eigenvalues", "eigenvectors"])


def _require_matrices(op: str, *tensors: Tensor) -> None:
    for each in tensors:
        if each.ndim < 2:
            raise tenon.InvalidArgument(f"linalg.{op}: a tensor must have rank at least 2, but its shape is {tuple(each.shape)}.")


def _require_square(op: str, *tensors: Tensor) -> None:
    _require_matrices(op, *tensors)
    for each in tensors:
        if each.shape[-1] != each.shape[-2]:
            raise tenon.InvalidArgument(f"linalg.{op}: matrices must be square, but their shape is {tuple(each.shape)}.")


def _upper(UPLO: str) -> bool:
    if UPLO not in ("L", "U", "l", "u"):
        raise tenon.InvalidArgument(f"linalg.eigh: UPLO is '{UPLO}'; it may be 'L' or 'U'.")
    return UPLO in ("U", "u")


@with_out
def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """Eigenvalues of symmetric matrices in ascending order, and eigenvectors as columns. Reads only the lower
    triangle, or the upper one for UPLO="U".

    Example:
        >>> tenon.linalg.eigh(tenon.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        tensor([1., 2.])
    """
    return _Eigh(*tenon.linalg_eigh(A, _upper(UPLO)))


@with_out
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues of symmetric matrices in ascending order. See eigh."""
    return tenon.linalg_eigvalsh(A, _upper(UPLO))


@with_out
def svd(A: Tensor, full_matrices: bool = True) -> Any:
    """Singular value decomposition A = U @ diag(S) @ Vh, with S in descending order.

    full_matrices: U and Vh are square; otherwise U (..., m, k) and Vh (..., k, n) with k = min(m, n). The
    gradient is valid for singular values that differ and are not 0. Columns that complete U or rows that complete
    Vh have no gradient.
    """
    _require_matrices("svd", A)
    if not A.requires_grad:
        return _Svd(*tenon.linalg_svd(A, full_matrices))
    u, values, vh = tenon.linalg_svd(A.detach(), full_matrices)
    if A.numel() == 0:
        return _Svd(*(each + A.sum() * 0 for each in (u, values, vh)))
    return _Svd(*_svd_with_gradient(A, u, values, vh))


def _svd_with_gradient(A: Tensor, u: Tensor, values: Tensor, vh: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the parts of the decomposition with the derivatives of the eigenvectors of A.T @ A, or A @ A.T if that
    is smaller."""
    turned, k = A.shape[-2] < A.shape[-1], values.shape[-1]
    matrix = tenon.transpose(A, -2, -1) if turned else A
    known = tenon.narrow(u, -1, 0, k) if turned else tenon.transpose(tenon.narrow(vh, -2, 0, k), -2, -1)
    squares, right = (tenon.flip(each, -1) for each in tenon.linalg_eigh(tenon.matmul(tenon.transpose(matrix, -2, -1), matrix)))
    right = right * tenon.sign(tenon.sum(right.detach() * known, -2, True))
    roots = tenon.sqrt(squares)
    left = tenon.matmul(matrix, right) / tenon.unsqueeze(roots, -2)
    columns, rows = (right, tenon.transpose(left, -2, -1)) if turned else (left, tenon.transpose(right, -2, -1))
    columns, roots, rows = (each - each.detach() for each in (columns, roots, rows))
    return (u + tenon.pad(columns, [0, u.shape[-1] - k]), values + roots, vh + tenon.pad(rows, [0, 0, 0, vh.shape[-2] - k]))


@with_out
def qr(A: Tensor, mode: str = "reduced") -> Any:
    """Decomposition A = Q @ R, with orthogonal Q and upper triangular R.

    mode: "reduced" gives Q (..., m, k) and R (..., k, n) with k = min(m, n), "complete" a square Q, "r" an empty
    Q. A gradient needs independent first columns and not mode "r", and in mode "complete" at least as many
    columns as rows.
    """
    _require_matrices("qr", A)
    none = tenon.empty((0,), dtype=A.dtype, device=A.device)
    if not A.requires_grad:
        q, r = tenon.linalg_qr(A, "reduced" if mode == "r" else mode)
        return _Qr(none if mode == "r" else q, r)
    if mode == "r" or (mode == "complete" and A.shape[-2] > A.shape[-1]):
        raise tenon.Unsupported(f"linalg.qr: mode '{mode}' has no gradient for matrices of shape {tuple(A.shape)}, because A alone does not determine Q.")
    q, r = tenon.linalg_qr(A.detach(), mode)
    return _Qr(*_qr_with_gradient(A, q, r)) if A.numel() else _Qr(q + A.sum() * 0, r + A.sum() * 0)


def _qr_with_gradient(A: Tensor, q: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
    """Returns Q and R with the derivatives of R as the Cholesky factor of A.T @ A, with the signs of R."""
    k = q.shape[-1]
    square = tenon.narrow(A, -1, 0, k)
    signs = tenon.unsqueeze(tenon.sign(tenon.diagonal(r, 0, -2, -1)), -1)
    upper = tenon.linalg_cholesky(tenon.matmul(tenon.transpose(square, -2, -1), square), upper=True) * signs
    left = solve_triangular(upper, square, upper=True, left=False)
    right = tenon.matmul(tenon.transpose(left, -2, -1), A) if A.shape[-1] > k else upper
    return q + (left - left.detach()), r + (right - right.detach())


# ---- results with a flag ----

def _flagged(op: str, A: Tensor, check_errors: bool, compute: Any) -> tuple[Any, Tensor]:
    """Returns compute(), and zeros as flags: matrices that fail raise an error, so no other flag can occur."""
    return compute(), tenon.zeros(tuple(A.shape[:-2]), dtype=tenon.i32, device=A.device)


@with_out
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """cholesky, and info, which is always 0: matrices that are not positive definite raise an error."""
    _require_square("cholesky_ex", A)
    return _CholeskyEx(*_flagged("cholesky_ex", A, check_errors, lambda: tenon.linalg_cholesky(A, upper=upper)))


@with_out
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """inv, and info, which is always 0: singular matrices raise an error."""
    _require_square("inv_ex", A)
    return _InvEx(*_flagged("inv_ex", A, check_errors, lambda: tenon.linalg_inv(A)))


@with_out
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Returns X with A @ X = B, or X @ A = B if not left. A is (..., n, n)."""
    if left:
        return tenon.linalg_solve(A, B)
    return tenon.transpose(tenon.linalg_solve(tenon.transpose(A, -2, -1), tenon.transpose(B, -2, -1)), -2, -1)


@with_out
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """solve, and info, which is always 0: singular matrices raise an error."""
    _require_square("solve_ex", A)
    return _SolveEx(*_flagged("solve_ex", A, check_errors, lambda: solve(A, B, left=left)))


@with_out
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """Returns X with A @ X = B, or X @ A = B if not left. Reads only the upper or lower triangle of A; unitriangular
    takes its diagonal as ones."""
    _require_square("solve_triangular", A)
    _require_matrices("solve_triangular", B)
    if left:
        return tenon.linalg_solve_triangular(A, B, upper=upper, unitriangular=unitriangular)
    turned = tenon.linalg_solve_triangular(tenon.transpose(A, -2, -1), tenon.transpose(B, -2, -1), upper=not upper, unitriangular=unitriangular)
    return tenon.transpose(turned, -2, -1)


# ---- L and U ----

def _with_gradient(A: Tensor, order: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Returns L and U with derivatives with respect to A: two Newton steps from their values, exact up to the third
    derivative.

    inv(L) @ P.T @ A @ inv(U) is the identity. Its changes below and above the diagonal are the changes of L and U.
    """
    k = low.shape[-1]
    rows = tenon.matmul(tenon.transpose(order, -2, -1), A)
    square = tenon.narrow(tenon.narrow(rows, -2, 0, k), -1, 0, k)
    l, u = tenon.narrow(low, -2, 0, k), tenon.narrow(high, -1, 0, k)
    eye = tenon.eye(k, dtype=A.dtype, device=A.device)
    for _ in range(2):
        change = solve_triangular(u, solve_triangular(l, square, upper=False, unitriangular=True), upper=True, left=False) - eye
        l, u = tenon.matmul(l, eye + tenon.tril(change, -1)), tenon.matmul(eye + tenon.triu(change), u)
    if rows.shape[-1] > k:
        rest = tenon.narrow(tenon.narrow(rows, -2, 0, k), -1, k, rows.shape[-1] - k)
        wide = tenon.concat([u, solve_triangular(l, rest, upper=False, unitriangular=True)], -1)
    else:
        wide = u
    if rows.shape[-2] > k:
        l = tenon.concat([l, solve_triangular(u, tenon.narrow(rows, -2, k, rows.shape[-2] - k), upper=True, left=False)], -2)
    return l, wide


def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """Returns L (below the diagonal) and U in one matrix, and the pivots, counted from 1."""
    return _LuFactor(*lu_factor_ex(A, pivot=pivot)[:2])


@with_out
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """lu_factor, and info, which is always 0."""
    if not pivot:
        raise tenon.Unsupported("linalg.lu_factor_ex: pivot=False is not supported; rows are always exchanged.")
    _require_matrices("lu_factor_ex", A)
    factors, pivots = tenon.linalg_lu_factor(A.detach())
    if A.requires_grad and A.numel():
        l, u = _with_gradient(A, *lu_unpack(factors, pivots))
        m, n = A.shape[-2:]
        factors = tenon.pad(tenon.tril(l, -1), [0, n - l.shape[-1]]) + tenon.pad(u, [0, 0, 0, m - u.shape[-2]])
    elif A.requires_grad:
        factors = factors + A * 0  # adds no elements, but keeps requires_grad
    return _LuFactorEx(factors, pivots, tenon.zeros(tuple(A.shape[:-2]), dtype=tenon.i32, device=A.device))


def _permutation(pivots: Tensor, rows: int) -> Tensor:
    """Returns the order of rows after the exchanges in `pivots`."""
    order = tenon.expand(tenon.arange(rows, device=pivots.device), (*pivots.shape[:-1], rows)).clone()
    for i in range(pivots.shape[-1]):
        other = tenon.cast(tenon.narrow(pivots, -1, i, 1), tenon.i64) - 1
        here = tenon.narrow(order, -1, i, 1).clone()
        order.copy_(tenon.scatter(tenon.scatter(order, -1, tenon.full_like(other, i), tenon.gather(order, -1, other)), -1, other, here))
    return order


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """Returns P, L and U from results of lu_factor, with A = P @ L @ U. Parts that are not requested are empty."""
    _require_matrices("lu_unpack", LU_data)
    m, n = LU_data.shape[-2], LU_data.shape[-1]
    k = min(m, n)
    none = tenon.empty((0,), dtype=LU_data.dtype, device=LU_data.device)
    p, low, high = none, none, none
    if unpack_data:
        eye = tenon.eye(m, k, dtype=LU_data.dtype, device=LU_data.device)
        low = tenon.tril(tenon.narrow(LU_data, -1, 0, k), -1) + eye
        high = tenon.triu(tenon.narrow(LU_data, -2, 0, k))
    if unpack_pivots:
        order = _permutation(LU_pivots, m)
        p = tenon.transpose(tenon.gather_slices(tenon.eye(m, dtype=LU_data.dtype, device=LU_data.device), 0, order), -2, -1)
    return _Lu(p, low, high)


@with_out
def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """Returns P, L and U with A = P @ L @ U."""
    factors, pivots, _ = lu_factor_ex(A, pivot=pivot)
    return lu_unpack(factors, pivots)


@with_out
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """Returns X with A @ X = B, or X @ A = B if not left, from the results of lu_factor(A). adjoint transposes A."""
    _require_square("lu_solve", LU)
    _require_matrices("lu_solve", B)
    if not left:
        turned = lu_solve(LU, pivots, tenon.transpose(B, -2, -1), adjoint=not adjoint)
        return tenon.transpose(turned, -2, -1)
    p = lu_unpack(LU, pivots, unpack_data=False)[0]
    if not adjoint:
        half = tenon.linalg_solve_triangular(LU, tenon.matmul(tenon.transpose(p, -2, -1), B), upper=False, unitriangular=True)
        return tenon.linalg_solve_triangular(LU, half, upper=True)
    turned = tenon.transpose(LU, -2, -1)
    half = tenon.linalg_solve_triangular(turned, B, upper=False)
    return tenon.matmul(p, tenon.linalg_solve_triangular(turned, half, upper=True, unitriangular=True))


# ---- norms ----

@with_out
def vector_norm(x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Norm of order ord over the axes dim (default: all): (sum of |x| ** ord) ** (1 / ord). ord inf takes the
    greatest |x| and -inf the least."""
    if isinstance(ord, str):
        raise tenon.InvalidArgument(f"linalg.vector_norm: ord must be a number, not '{ord}'.")
    x = _typed("vector_norm", x, dtype)
    axes = list(range(x.ndim)) if dim is None or dim == () or dim == [] else dim
    return tenon.vector_norm(x, float(ord), axes, keepdim)


def _typed(op: str, x: Tensor, dtype: Any) -> Tensor:
    if not x.dtype.is_floating_point:
        raise tenon.InvalidArgument(f"linalg.{op}: the elements must be floats, not {x.dtype.name}.")
    return x if dtype is None else tenon.cast(x, dtype)


@with_out
def matrix_norm(A: Tensor, ord: Any = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Norm of each matrix.

    ord: "fro" for the Frobenius norm, "nuc" for the sum of singular values; 2 and -2 for the greatest and least
    singular value; 1 and -1 for the greatest and least sum of |x| in a column, inf and -inf in a row.
    """
    A = _typed("matrix_norm", A, dtype)
    _require_matrices("matrix_norm", A)
    if len(dim) != 2 or dim[0] % A.ndim == dim[1] % A.ndim:
        raise tenon.InvalidArgument(f"linalg.matrix_norm: dim must be two different axes, not {tuple(dim)}.")
    if ord == "fro":
        return tenon.vector_norm(A, 2.0, list(dim), keepdim)
    rows, columns = dim[0] % A.ndim, dim[1] % A.ndim
    if A.numel() == 0:  # nothing to compare
        return tenon.sum(A, [rows, columns], keepdim)
    if ord == "nuc" or ord in (2, -2):
        result = tenon.linalg_svdvals(tenon.movedim(A, [rows, columns], [-2, -1]))
        result = tenon.sum(result, -1) if ord == "nuc" else tenon.amax(result, -1) if ord > 0 else tenon.amin(result, -1)
    elif ord in (1, -1, math.inf, -math.inf):
        summed, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = tenon.sum(tenon.abs(A), summed, True)
        result = (tenon.amax if ord > 0 else tenon.amin)(sums, other, True)
        return result if keepdim else tenon.squeeze(result, [rows, columns])
    else:
        raise tenon.InvalidArgument(f"linalg.matrix_norm: ord is {ord!r}; it may be 'fro', 'nuc', 1, 2, infinity, or a negative one of these.")
    return tenon.unsqueeze(result, sorted([rows, columns])) if keepdim else result


@with_out
def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Without ord the vector norm of order 2 over dim, or of all elements. With ord vector_norm for one axis and
    matrix_norm for two; without dim the rank of A decides."""
    axes = None if dim is None else [dim] if hasattr(dim, "__index__") else list(dim)
    if ord is None:
        return vector_norm(A, 2, axes, keepdim, dtype=dtype)
    if axes is None and A.ndim not in (1, 2):
        raise tenon.InvalidArgument(f"linalg.norm: with ord and without dim the tensor must have rank 1 or 2, but its shape is {tuple(A.shape)}.")
    if len(axes if axes is not None else A.shape) == 1:
        return vector_norm(A, ord, axes, keepdim, dtype=dtype)
    return matrix_norm(A, ord, (0, 1) if axes is None else axes, keepdim, dtype=dtype)


# ---- ranks and inverses ----

def _largest(values: Tensor) -> Tensor:
    return tenon.amax(values, -1, True) if values.shape[-1] else tenon.zeros((*values.shape[:-1], 1), dtype=values.dtype, device=values.device)


def _epsilon(dtype: Any) -> float:
    return float(2**-52 if dtype == tenon.f64 else 2**-23)


def _tolerance(A: Tensor, values: Tensor, atol: Any, rtol: Any) -> Tensor:
    """Returns the value up to which singular values count as 0."""
    def column(value: Any) -> Any:
        return tenon.unsqueeze(value, -1) if isinstance(value, Tensor) and value.ndim else value
    if rtol is None:
        default = max(A.shape[-2:]) * _epsilon(A.dtype)
        rtol = default if atol is None else tenon.where(column(atol) > 0, 0.0, default) if isinstance(atol, Tensor) else 0.0 if atol > 0 else default
        return tenon.maximum(_largest(values) * rtol, (column(atol) if isinstance(atol, Tensor) else tenon.full_like(_largest(values), atol or 0.0)))
    bound = _largest(values) * column(rtol)
    return tenon.maximum(bound, column(atol) if isinstance(atol, Tensor) else tenon.full_like(bound, atol or 0.0))


@with_out
def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """Number of singular values greater than max(atol, rtol * the greatest). hermitian takes magnitudes of
    eigenvalues instead.

    rtol defaults to max(m, n) * epsilon, or to 0 if atol is positive. tol replaces atol and sets rtol to 0.
    """
    _require_matrices("matrix_rank", A)
    if tol is not None:
        atol, rtol = tol, 0.0
    values = tenon.abs(tenon.linalg_eigvalsh(A)) if hermitian else tenon.linalg_svdvals(A)
    return tenon.sum(tenon.cast(values > _tolerance(A, values, atol, rtol), tenon.i64), -1)


def _pinv_with_gradient(A: Tensor, P: Tensor) -> Tensor:
    """Returns the pseudo-inverse P as a function of A, by two steps of an iteration that converges quadratically
    among matrices of one rank, so first and second derivatives are exact (first derivative: Golub and Pereyra,
    The differentiation of pseudo-inverses, 1973)."""
    turned = tenon.transpose(A, -2, -1)
    for _ in range(2):
        right, left = tenon.matmul(A, P), tenon.matmul(P, A)
        outer, inner = tenon.matmul(P, tenon.transpose(P, -2, -1)), tenon.matmul(tenon.transpose(P, -2, -1), P)
        by_rows, by_columns = tenon.matmul(outer, turned), tenon.matmul(turned, inner)
        P = tenon.matmul(left, P) + by_rows - tenon.matmul(by_rows, right) + by_columns - tenon.matmul(left, by_columns)
    return P


@with_out
def pinv(A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """Pseudo-inverse, by singular values; hermitian uses eigenvalues. atol and rtol are those of matrix_rank."""
    _require_matrices("pinv", A)
    if 0 in A.shape:
        return tenon.transpose(A, -2, -1).clone()
    rtol = rcond if rtol is None else rtol
    if A.requires_grad:
        if hermitian:  # completes the triangle that eigh reads
            A = tenon.tril(A) + tenon.transpose(tenon.tril(A, -1), -2, -1)
        return _pinv_with_gradient(A, pinv(A.detach(), rtol, hermitian, atol=atol))
    if hermitian:
        values, vectors = tenon.linalg_eigh(A)
        magnitudes, left, right = tenon.abs(values), vectors, tenon.transpose(vectors, -2, -1)
    else:
        values, u, vh = tenon.linalg_svd_reduced(A)
        magnitudes, left, right = values, tenon.transpose(vh, -2, -1), tenon.transpose(u, -2, -1)
    kept = magnitudes > _tolerance(A, magnitudes, atol, rtol)
    inverses = tenon.where(kept, 1 / tenon.where(kept, values, 1.0), 0.0)
    return tenon.matmul(left * tenon.unsqueeze(inverses, -2), right)


@with_out
def cond(A: Tensor, p: Any = None) -> Tensor:
    """Condition number: norm of order p of each matrix times the norm of its inverse. p None means 2."""
    _require_matrices("cond", A)
    if p is None or p in (2, -2):
        values = tenon.linalg_svdvals(A)
        ratio = tenon.select(values, -1, 0) / tenon.select(values, -1, -1)
        return 1 / ratio if p == -2 else ratio
    _require_square("cond", A)
    return matrix_norm(A, p) * matrix_norm(tenon.linalg_inv(A), p)


_Lstsq = collections.namedtuple("linalg_lstsq", ["solution", "residuals", "rank", "singular_values"])


def _least_squares(A: Tensor, B: Tensor) -> Tensor:
    """Returns linalg_lstsq(A, B). If a gradient is needed, it is the gradient of the normal equations, which is
    valid where A has full rank."""
    if not (A.requires_grad or B.requires_grad):
        return tenon.linalg_lstsq(A, B)
    turned = tenon.transpose(A, -2, -1)
    if A.shape[-2] < A.shape[-1]:
        return tenon.matmul(turned, tenon.linalg_solve(tenon.matmul(A, turned), B))
    solution = tenon.linalg_lstsq(A.detach(), B.detach())
    return solution + tenon.linalg_solve(tenon.matmul(turned, A), tenon.matmul(turned, B - tenon.matmul(A, solution)))


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """Least-squares solution: the X of least norm that minimises the norm of A @ X - B.

    Returns (solution, residuals, rank, singular_values). residuals are the squared errors per column. As with PyTorch's
    drivers, the last three are empty where `driver` does not compute them.
    """
    driver = "gelsy" if driver is None else driver
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise tenon.InvalidArgument(f"linalg.lstsq: driver is '{driver}'; it may be gels, gelsy, gelsd or gelss.")
    _require_matrices("lstsq", A)
    solution = _least_squares(A, B)
    values = tenon.linalg_svdvals(A) if driver in ("gelsd", "gelss") else tenon.empty((0,), dtype=A.dtype, device=A.device)
    rank = tenon.empty((0,), dtype=tenon.i64, device=A.device) if driver == "gels" else matrix_rank(A.detach(), rtol=rcond)
    residuals = tenon.narrow(tenon.flatten(solution), 0, 0, 0)
    if driver != "gelsy" and A.shape[-2] > A.shape[-1] and B.ndim == A.ndim:
        left = tenon.matmul(A, solution) - B
        residuals = tenon.sum(left * left, -2)
    return _Lstsq(solution, residuals, rank, values)


@with_out
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """Inverse of A as a square matrix: the axes before ind are its rows, the other axes its columns."""
    if ind <= 0:
        raise tenon.InvalidArgument(f"linalg.tensorinv: ind must be above 0, not {ind}.")
    first, last = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if math.prod(first) != math.prod(last):
        raise tenon.InvalidArgument(f"linalg.tensorinv: the axes before {ind} and those from it on must have the same number of elements; the shape is {tuple(A.shape)}.")
    return tenon.reshape(tenon.linalg_inv(tenon.reshape(A, (math.prod(first), math.prod(last)))), last + first)


@with_out
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """Returns X with tensordot(A, X, X.ndim) = B. First moves the axes dims of A to its end."""
    if dims is not None:
        A = tenon.movedim(A, list(dims), list(range(A.ndim - len(dims), A.ndim)))
    last = tuple(A.shape[B.ndim:])
    if math.prod(last) != B.numel():
        raise tenon.InvalidArgument(f"linalg.tensorsolve: the last axes of A, of shape {tuple(A.shape)}, must have as many elements as B of shape {tuple(B.shape)}.")
    return tenon.reshape(tenon.linalg_solve(tenon.reshape(A, (-1, math.prod(last))), tenon.flatten(B)), last)


# ---- products ----

def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Same as tenon.matmul."""
    return tenon.matmul(input, other)


@with_out
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Product of several matrices, in the order with the fewest multiplications. The first and last may be vectors."""
    if len(tensors) < 2:
        raise tenon.InvalidArgument(f"linalg.multi_dot: there must be at least two tensors, not {len(tensors)}.")
    if any(each.ndim != 2 for each in tensors[1:-1]) or any(each.ndim not in (1, 2) for each in (tensors[0], tensors[-1])):
        raise tenon.InvalidArgument("linalg.multi_dot: the tensors must have rank 2, but the first and the last may have rank 1.")
    listed = list(tensors)
    row, column = listed[0].ndim == 1, listed[-1].ndim == 1
    if row:
        listed[0] = tenon.unsqueeze(listed[0], 0)
    if column:
        listed[-1] = tenon.unsqueeze(listed[-1], 1)
    sizes = [each.shape[0] for each in listed] + [listed[-1].shape[1]]
    result = _multiply(listed, _splits(sizes), 0, len(listed) - 1)
    result = tenon.squeeze(result, 1) if column else result
    return tenon.squeeze(result, 0) if row else result


def _splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Returns for each range of matrices after which one to split its product (Cormen et al., chapter 15.2)."""
    count = len(sizes) - 1
    costs, splits = {(i, i): 0 for i in range(count)}, {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            choices = [(costs[i, k] + costs[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            costs[i, j], splits[i, j] = min(choices)
    return splits


def _multiply(matrices: list[Tensor], splits: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return matrices[i]
    k = splits[i, j]
    return tenon.matmul(_multiply(matrices, splits, i, k), _multiply(matrices, splits, k + 1, j))


@with_out
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Sum of x * y along the axis dim."""
    if x.dtype != y.dtype:
        raise tenon.InvalidArgument(f"linalg.vecdot: x and y must have one dtype, not {x.dtype.name} and {y.dtype.name}.")
    return tenon.cast(tenon.sum(x * y, dim), x.dtype)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """tenon.diagonal with the last two axes as default."""
    return tenon.diagonal(A, offset, dim1, dim2)


def vander(x: Tensor, N: int | None = None) -> Tensor:
    """Vandermonde matrix: row i holds x[i] ** 0, x[i] ** 1, ... N is the number of columns, by default the length of
    x."""
    x = tenon.reshape(x, (1,)) if x.ndim == 0 else x
    x = x if x.dtype.is_floating_point else tenon.cast(x, tenon.i64)
    count = x.shape[-1] if N is None else N
    if count <= 1 and N is not None:
        raise tenon.InvalidArgument(f"linalg.vander: N must be greater than 1, not {N}.")
    x = tenon.unsqueeze(x, -1)
    powers = [tenon.ones_like(x)]
    for _ in range(count - 1):
        powers.append(powers[-1] * x)
    return tenon.concat(powers, -1) if count else tenon.narrow(powers[0], -1, 0, 0)


@with_out
def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """First columns of the product of reflections 1 - tau * v @ v.T. Column i of A holds, below its diagonal, the v
    of reflection i; above it v is 0, and on it 1."""
    _require_matrices("householder_product", A)
    m, n, k = A.shape[-2], A.shape[-1], tau.shape[-1]
    if n > m or k > n:
        raise tenon.InvalidArgument(f"linalg.householder_product: there are {k} reflections and matrices of {m} by {n}; reflections must be at most columns, and columns at most rows.")
    result = tenon.expand(tenon.eye(m, n, dtype=A.dtype, device=A.device), tuple(A.shape))
    rows = tenon.unsqueeze(tenon.arange(m, device=A.device), -1)
    for i in range(k - 1, -1, -1):
        v = tenon.where(rows > i, tenon.narrow(A, -1, i, 1), tenon.cast(rows == i, A.dtype))
        factor = tenon.unsqueeze(tenon.narrow(tau, -1, i, 1), -1)
        result = result - factor * tenon.matmul(v, tenon.matmul(tenon.transpose(v, -2, -1), result))
    if k == 0:
        result = tenon.where(tenon.zeros_like(A, dtype=tenon.bool), A, result)  # connects the result to A for gradients
    return result


def matrix_exp(A: Tensor) -> Tensor:
    """Exponential of each matrix: halves the matrix until it is small, sums a Taylor series of degree 18, and
    squares the result."""
    _require_square("matrix_exp", A)
    if not A.dtype.is_floating_point:
        raise tenon.InvalidArgument(f"linalg.matrix_exp: the elements must be floats, not {A.dtype.name}.")
    if A.numel() == 0:
        return A.clone()
    dtype, A = A.dtype, tenon.cast(A, tenon.f64)
    largest = tenon.amax(tenon.sum(tenon.abs(A.detach()), -2, True), -1, True)
    halvings = tenon.clamp(tenon.ceil(tenon.log2(tenon.clamp(largest, 1e-30))) + 1, 0)
    small = A / tenon.exp2(halvings)
    eye = tenon.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    result = eye + small / 18
    for k in range(17, 0, -1):
        result = eye + tenon.matmul(small, result) / k
    most = int(tenon.amax(halvings).item())
    for i in range(most):
        result = tenon.where(halvings > i, tenon.matmul(result, result), result)
    return tenon.cast(result, dtype)
