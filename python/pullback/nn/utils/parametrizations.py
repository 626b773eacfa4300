"""Parametrizations that are in common use: orthogonal matrices, weight norm, spectral norm."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from ... import linalg as _linalg
from ..._tensor import Tensor
from .. import functional as F
from .._native import VF as _VF
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.conversion import no_grad
from ..modules.module import Module
from . import parametrize
from ._norm import norm_except_dim, normalised

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

linalg: Any = _linalg


def _is_orthogonal(Q: Tensor, eps: float | None = None) -> bool:
    """Whether ``Q^H Q`` is the identity, up to rounding."""
    columns = Q.size(-1)
    tolerance = 10.0 * columns * _epsilon(Q.dtype) if eps is None else eps
    identity = _VF.eye(columns, dtype=Q.dtype, device=Q.device)
    return bool(_VF.allclose(Q.mH @ Q, identity, atol=tolerance))


def _epsilon(dtype: Any) -> float:
    from ..._info import finfo

    return float(finfo(dtype).eps)


def _make_orthogonal(A: Tensor) -> Tensor:
    """The orthogonal factor of ``A``, with the signs that make the other one's diagonal positive.

    With these it is uniformly distributed for a matrix of normal numbers (Mezzadri 2007).
    """
    Q, R = linalg.qr(A)
    made: Tensor = Q * R.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
    return made


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    """Maps a matrix to one with orthonormal columns (or rows, where it is wider than high).

    Args:
        weight: the matrix or the batch of matrices to be parametrized.
        orthogonal_map: which map.
        use_trivialization: whether the map is multiplied by a matrix ``base``, so that the map is
            used near the identity only (Lezcano 2019).
    """

    base: Tensor | None

    def __init__(
        self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        # Complex reflections would need unit numbers where real ones have signs.
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        """The orthogonal matrix."""
        wide = X.size(-2) < X.size(-1)
        if wide:
            X = X.mT
        rows, columns = X.size(-2), X.size(-1)
        if self.orthogonal_map is _OrthMaps.householder:
            Q = _of_reflections(X)
        else:
            Q = self._of_skew(X, rows, columns)
        base = getattr(self, "base", None)
        if base is not None:
            Q = base @ Q
        return Q.mT if wide else Q

    def _of_skew(self, X: Tensor, rows: int, columns: int) -> Tensor:
        """Of the skew-symmetric matrix whose lower triangle is that of ``X``."""
        X = X.tril()
        if rows != columns:
            zeros = X.new_zeros(rows, rows - columns).expand(*X.shape[:-2], -1, -1)
            X = _VF.cat([X, zeros], -1)
        A = X - X.mH
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            Q: Tensor = linalg.matrix_exp(A)
        else:
            identity = _VF.eye(rows, dtype=A.dtype, device=A.device)
            # (I - A/2)^-1 (I + A/2)
            Q = linalg.solve(identity - 0.5 * A, identity + 0.5 * A)
        return Q if rows == columns else Q[..., :columns]

    def right_inverse(self, Q: Tensor) -> Tensor:
        """What the map is given so that it gives ``Q``, or the nearest that it can give.

        With a base this becomes the base, and what the map is given gives the identity.

        Raises:
            ValueError: another shape.
            NotImplementedError: without a base, for maps that have no inverse here.
        """
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. "
                f"Got a tensor of shape {Q.shape}."
            )
        with no_grad():
            wide = Q.size(-2) < Q.size(-1)
            tall = Q.mT if wide else Q
            if not hasattr(self, "base"):
                A = self._reflections(tall)
                return A.mT if wide else A
            self._set_base(tall)
            start = _VF.zeros_like(Q)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return start

    def _reflections(self, Q: Tensor) -> Tensor:
        """The reflections whose product is ``Q``, below a diagonal of signs."""
        if self.orthogonal_map is not _OrthMaps.householder:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        both: Any = _VF.geqrf(Q)
        A, tau = both
        diagonal = A.diagonal(dim1=-2, dim2=-1)
        diagonal.sign_()
        # A column that needs no reflection has tau = 0, which `_of_reflections` takes for one.
        diagonal.copy_(_VF.where(tau == 0.0, -diagonal, diagonal))
        made: Tensor = A
        return made

    def _set_base(self, Q: Tensor) -> None:
        rows, columns = Q.size(-2), Q.size(-1)
        if rows == columns:
            self.base = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
            return
        # Columns are added at random, to a square matrix.
        shape = (*Q.shape[:-2], rows, rows - columns)
        more = _VF.randn(shape, dtype=Q.dtype, device=Q.device)
        self.base = _make_orthogonal(_VF.cat([Q, more], -1))


def _of_reflections(X: Tensor) -> Tensor:
    """The product of the reflections whose vectors are below the diagonal, with its signs."""
    A = X.tril(-1)
    tau = 2.0 / (1.0 + (A * A).sum(-2))
    Q: Tensor = linalg.householder_product(A, tau)
    return Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)


def _tensor_of(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Makes matrices of a module orthogonal (complex ones: unitary), and keeps them so.

    Args:
        module: the module; changed in place.
        name: the name of a matrix or a batch of matrices.
        orthogonal_map: ``'matrix_exp'``, ``'cayley'`` or ``'householder'``; the first for square
            and complex matrices, the last for others, unless given.
        use_trivialization: whether the map is multiplied by a matrix that assignments change.

    Returns:
        ``module``.

    Raises:
        ValueError: there is no such tensor, it is no matrix, or there is no such map.
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    chosen = _OrthMaps[orthogonal_map]
    orth = _Orthogonal(weight, chosen, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, orth, unsafe=True)


class _WeightNorm(Module):
    """``g v / |v|``: length and direction apart.

    Args:
        dim: the dimension that lengths are kept for; ``None`` for one length of all.
    """

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """The tensor of a length and a direction."""
        return normalised(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The lengths, and the tensor itself for a direction."""
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Makes a tensor of a module ``g v / |v|`` (Salimans and Kingma 2016).

    ``g`` is ``parametrizations.<name>.original0``, ``v`` is ``original1``. State dicts of the older
    :func:`pullback.nn.utils.weight_norm` can be loaded.

    Args:
        module: the module; changed in place.
        name: the name of the tensor.
        dim: the dimension that lengths are kept for; ``None`` for one length of all.

    Returns:
        ``module``.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def take_older_form(state_dict: Any, prefix: str, *rest: Any) -> None:
        keys = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in keys):
            for index, key in enumerate(keys):
                new = f"{prefix}parametrizations.{name}.original{index}"
                state_dict[new] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(take_older_form)
    return module


class _SpectralNorm(Module):
    """A matrix over its greatest singular value, which the power method estimates.

    Args:
        weight: the tensor to be parametrized.
        n_power_iterations: steps of the method at each use in training.
        dim: the dimension that is the rows of the matrix.
        eps: the least norm that is divided by.
    """

    _u: Tensor
    _v: Tensor

    def __init__(
        self,
        weight: Tensor,
        n_power_iterations: int = 1,
        dim: int = 0,
        eps: float = 1e-12,
    ) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] "
                f"but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        # A vector's greatest singular value is its norm.
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            for name, size in (("_u", matrix.size(0)), ("_v", matrix.size(1))):
                drawn = matrix.new_empty(size).normal_(0, 1)
                self.register_buffer(name, F.normalize(drawn, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        if weight.ndim <= 1:
            raise AssertionError(f"expected a matrix or more dimensions, got {weight.ndim}")
        if self.dim != 0:
            others = [d for d in range(weight.dim()) if d != self.dim]
            weight = weight.permute(self.dim, *others)
        return weight.flatten(1)

    def _power_method(self, weight_mat: Tensor, n_power_iterations: int) -> None:
        """Lets the two singular vectors converge, in place: replicas share their memory."""
        if weight_mat.ndim <= 1:
            raise AssertionError(f"expected a matrix, got {weight_mat.ndim} dimensions")
        with no_grad():
            for _ in range(n_power_iterations):
                left = weight_mat.mv(self._v)
                self._u.copy_(F.normalize(left, dim=0, eps=self.eps))
                right = weight_mat.mH.mv(self._u)
                self._v.copy_(F.normalize(right, dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        """The matrix over the estimate; in training the estimate is improved first."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # (Copies: a second use would change what the first one's backward needs.)
        u, v = self._u.clone(), self._v.clone()
        return weight / u.vdot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The tensor itself, although it need not come out again."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Makes a tensor of a module one whose greatest singular value is 1 (Miyato et al. 2018).

    Args:
        module: the module; changed in place.
        name: the name of the tensor.
        n_power_iterations: steps of the power method at each use in training.
        eps: the least norm that is divided by.
        dim: the dimension that is the rows of the matrix; 1 for transposed convolutions, else 0,
            unless given.

    Returns:
        ``module``.

    Raises:
        ValueError: there is no such tensor.
    """
    weight = _tensor_of(module, name)
    if dim is None:
        transposed = isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d))
        dim = 1 if transposed else 0
    norm = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, norm)
