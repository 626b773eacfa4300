"""The distribution of Lewandowski, Kurowicka and Joe of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, Tensor, arange, cat, finfo, lgamma, linalg, mvlgamma, randn
from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors ``L`` of correlation matrices with density ``det(L L^T)^(eta - 1)``.

    The density of ``L`` itself is proportional to ``prod_k L_kk^(n - k + 2 eta - 2)``, k from 2 to
    n. With ``eta = 1`` all correlation matrices are equally likely, with larger ones those near the
    identity. Samples are made row by row ("onion method": D. Lewandowski, D. Kurowicka, H. Joe,
    "Generating random correlation matrices based on vines and extended onion method", 2009).

    Args:
        dim: the size ``n`` of the matrices, at least 2.
        concentration: ``eta``, positive.
        validate_args: see :class:`Distribution`.

    Raises:
        ValueError: for a ``dim`` below 2.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _batched = ("dim", "concentration", "_beta")
    concentration: Tensor

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared length of row k below the diagonal is a beta number of k / 2 and the rest.
        steps = arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        steps = cat([steps.new_zeros((1,)), steps])
        rest = (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * steps
        self._beta = Beta(steps + 0.5, rest)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args)

    def sample(self, sample_shape: Any = ()) -> Any:
        squared = self._beta.sample(sample_shape).unsqueeze(-1)
        shape = self._extended_shape(sample_shape)
        direction = randn(shape, dtype=squared.dtype, device=squared.device).tril(-1)
        direction = direction / linalg.vector_norm(direction, dim=-1, keepdim=True)
        direction[..., 0, :] = 0.0
        rows = squared.sqrt() * direction
        rest = (1 - (rows**2).sum(dim=-1)).clamp(min=finfo(rows.dtype).tiny)
        return rows + rest.sqrt().diag_embed()

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        k = arange(2, self.dim + 1, device=self.concentration.device)
        exponent = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - k
        count = self.dim - 1
        alpha = self.concentration + 0.5 * count
        normalizer = 0.5 * count * math.log(math.pi) + mvlgamma(alpha - 0.5, count)
        return (exponent * diagonal.log()).sum(dim=-1) - normalizer + lgamma(alpha) * count
