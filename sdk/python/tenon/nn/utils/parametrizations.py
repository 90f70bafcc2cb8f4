"""Parametrisations: weights with a norm of their own, with a largest singular value of 1, and orthogonal ones."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor
from tenon.nn.functional import normalize
from tenon.nn.module import Module
from tenon.nn.utils import parametrize


def _weight(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


# ---- weight_norm ----

def norm_except(weight: Tensor, dim: int | None) -> Tensor:
    """The norm of each slice along an axis, or of the whole tensor for None."""
    if dim is None:
        return tenon.vector_norm(weight)
    axes = [axis for axis in range(weight.ndim) if axis != dim % weight.ndim]
    return tenon.vector_norm(weight, 2.0, axes, True) if axes else tenon.abs(weight)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = None if dim == -1 else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Trains the norm of a weight and its direction apart: weight = g * v / |v| (Salimans and Kingma 2016).

    g is `parametrizations.weight.original0` and v is `original1`.

    Args:
        name: the parameter.
        dim: each slice along this axis has a norm; None for one norm of the whole weight.
    """
    _weight(module, name)
    return parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


# ---- spectral_norm ----

def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight as a matrix whose rows are the slices along an axis."""
    return tenon.flatten(tenon.movedim(weight, dim, 0) if dim else weight, 1)


def iterate(matrix: Tensor, u: Tensor, v: Tensor, count: int, eps: float) -> None:
    """Moves u and v, in place, towards the first singular vectors of a matrix by the power method."""
    with tenon.no_grad():
        for _ in range(count):
            u.copy_(normalize(tenon.mv(matrix, v), dim=0, eps=eps))
            v.copy_(normalize(tenon.mv(matrix.mT, u), dim=0, eps=eps))


def largest(matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """The singular value that belongs to u and v. They may change before backward."""
    return tenon.dot(tenon.clone(u), tenon.mv(matrix, tenon.clone(v)))


def first_dim(module: Module, dim: int | None) -> int:
    """The axis of a weight that counts its outputs."""
    from tenon.nn import convolution
    transposed = (convolution.ConvTranspose1d, convolution.ConvTranspose2d, convolution.ConvTranspose3d)
    return int(isinstance(module, transposed)) if dim is None else dim


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim, self.eps, self.n_power_iterations = dim % weight.ndim, eps, n_power_iterations
        if weight.ndim > 1:
            matrix = as_matrix(weight.detach(), self.dim)
            for name, size in zip(("_u", "_v"), matrix.shape):
                self.register_buffer(name, normalize(tenon.randn((size,), dtype=weight.dtype, device=weight.device), dim=0, eps=eps))
            iterate(matrix, self._u, self._v, 15, eps)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            iterate(matrix.detach(), self._u, self._v, self.n_power_iterations, self.eps)
        return weight / largest(matrix, self._u, self._v)

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Module:
    """Divides a weight by its largest singular value (Miyato et al. 2018).

    Args:
        name: the parameter. With more than two axes it counts as a matrix.
        n_power_iterations: steps of the power method each time the weight is read in training mode.
        eps: added to norms.
        dim: the axis of the outputs; None is 0, or 1 for transposed convolutions.
    """
    weight = _weight(module, name)
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, first_dim(module, dim), eps))


# ---- orthogonal ----

def _eye(size: int, like: Tensor) -> Tensor:
    return tenon.eye(size, dtype=like.dtype, device=like.device)


def _is_orthogonal(q: Tensor) -> bool:
    size = q.shape[-1]
    eps = {tenon.float64: 2.0**-52}.get(q.dtype, 2.0**-23)
    return tenon.allclose(tenon.matmul(q.mT, q), _eye(size, q), rtol=0.0, atol=10 * q.shape[-2] * eps)


def _nearest(matrix: Tensor) -> Tensor:
    """The Q of the QR decomposition whose R has a positive diagonal."""
    q, r = tenon.linalg.qr(matrix)
    return q * tenon.unsqueeze(tenon.sign(tenon.diagonal(r, 0, -2, -1)), -2)


def _reflectors(matrix: Tensor) -> Tensor:
    """Householder vectors below the diagonal, whose product is the Q of the matrix, and on the diagonal the signs that
    make R positive (Golub and Van Loan 1996)."""
    rows, columns = matrix.shape[-2:]
    vectors, rest = [], matrix
    for j in range(columns):
        x = rest[..., j:, j]
        tail = tenon.vector_norm(x[..., 1:], 2.0, -1, True)
        head = x[..., :1]
        straight = tail == 0
        side = tenon.where(head < 0, -1.0, tenon.ones_like(head))
        whole = tenon.sqrt(head ** 2 + tail ** 2)
        first = tenon.where(straight, 1.0, head + side * whole)
        v = tenon.concat([tenon.ones_like(head), x[..., 1:] / first], -1)
        factor = tenon.where(straight, 0.0, 2 / tenon.sum(v * v, -1, True))
        below = rest[..., j:, :]
        product = tenon.matmul(tenon.unsqueeze(v, -2), below)
        rest = tenon.concat([rest[..., :j, :], below - tenon.unsqueeze(factor * v, -1) * product], -2)
        # The sign of R is -side. A straight column is not reflected here, but forward does, which turns its sign as well.
        vectors.append(tenon.concat([tenon.zeros_like(matrix[..., :j, 0]), -side, v[..., 1:]], -1))
    return tenon.stack(vectors, -1)


class _Orthogonal(Module):
    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool = True) -> None:
        super().__init__()
        self.shape, self.orthogonal_map, self.use_trivialization = tuple(weight.shape), orthogonal_map, use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        rows, columns = x.shape[-2:]
        transposed = rows < columns
        if transposed:
            x, rows, columns = x.mT, columns, rows
        if self.orthogonal_map == "householder":
            a = tenon.tril(x, -1)
            q = tenon.linalg.householder_product(a, 2 / (1 + tenon.sum(a * a, -2)))
            q = q * tenon.unsqueeze(tenon.diagonal(x, 0, -2, -1).detach(), -2)
        else:
            x = tenon.tril(x)
            if rows != columns:
                x = tenon.concat([x, tenon.zeros((*x.shape[:-1], rows - columns), dtype=x.dtype, device=x.device)], -1)
            a = x - x.mT
            if self.orthogonal_map == "matrix_exp":
                q = tenon.matrix_exp(a)
            else:
                eye = _eye(rows, a)
                q = tenon.linalg.solve(eye - 0.5 * a, eye + 0.5 * a)
            q = q[..., :columns]
        if self.use_trivialization:
            q = tenon.matmul(self.base, q)
        return q.mT if transposed else q

    def right_inverse(self, q: Tensor) -> Tensor:
        if tuple(q.shape) != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {tuple(q.shape)}.")
        with tenon.no_grad():
            transposed = q.shape[-2] < q.shape[-1]
            tall = q.mT if transposed else q
            rows, columns = tall.shape[-2:]
            if not self.use_trivialization:
                if self.orthogonal_map != "householder":
                    raise NotImplementedError("It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                                              "use_trivialization=False.")
                made = _reflectors(tall)
                return made.mT if transposed else made
            if rows != columns:
                tall = tenon.concat([tall, tenon.randn((*tall.shape[:-1], rows - columns), dtype=q.dtype, device=q.device)], -1)
            base = tenon.clone(tall) if rows == columns and _is_orthogonal(tall) else _nearest(tall)
            if self.base is None:
                self.base = base
            else:
                self.base.copy_(base)
            return -_eye(max(q.shape[-2:]), q)[:q.shape[-2], :q.shape[-1]].expand(self.shape)  # the diagonal serves householder


_MAPS = ("matrix_exp", "cayley", "householder")


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True) -> Module:
    """Keeps a weight orthogonal: its columns, or its rows if it has more columns than rows, are orthonormal.

    Args:
        name: the parameter; the last two axes are the matrix.
        orthogonal_map: how it is computed: "matrix_exp", the exponential of a skew-symmetric matrix, "cayley", its Cayley
            transform, or "householder", a product of reflections. None is "matrix_exp" for square matrices and
            "householder" for others.
        use_trivialization: multiplies by a fixed matrix, so that the weight begins near its value (Lezcano-Casado 2019).
    """
    weight = _weight(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    return parametrize.register_parametrization(module, name, _Orthogonal(weight, orthogonal_map, use_trivialization), unsafe=True)


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
