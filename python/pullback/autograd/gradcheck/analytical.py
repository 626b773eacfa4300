"""Derivatives by backward: products of given vectors with the Jacobian, always taken twice.

A product that differs the second time, has another size or another dtype is an error; a gradient
that is missing counts as zero. Start at :func:`products`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ... import _C
from .. import grad
from . import GradcheckError
from .problem import Options, tensors_in

if TYPE_CHECKING:
    from ..._tensor import Tensor


@dataclass(frozen=True)
class Findings:
    """A matrix for each input, with a column for each vector; and whether all was as it should."""

    matrices: tuple[Tensor, ...]
    sizes_match: bool
    dtypes_match: bool


def basis(output: Tensor) -> list[Tensor]:
    """The unit vectors in the space of an output: their products are the Jacobian's columns."""
    vectors = []
    for i in range(output.numel()):
        vector = output.detach().new_zeros(output.numel())
        vector[i] = 1.0
        vectors.append(vector)
    return vectors


def observe(output: Tensor, targets: Sequence[Tensor], vectors: Sequence[Tensor]) -> Findings:
    """The products, and whether they look like the inputs; nothing is compared.

    Raises:
        GradcheckError: for a gradient of another layout.
    """
    runs = [
        grad(output, targets, v.reshape(output.shape), retain_graph=True, allow_unused=True)
        for v in vectors
    ]
    sizes_match = dtypes_match = True
    matrices = []
    for i, target in enumerate(targets):
        columns = [run[i] for run in runs]
        for gradient in columns:
            # The type of `grad` leaves out the None of `allow_unused`, as PyTorch's does.
            if gradient is not None:
                check_layout(gradient, target)
                sizes_match = sizes_match and gradient.shape == target.shape
                dtypes_match = dtypes_match and gradient.dtype == target.dtype
        matrices.append(_matrix(columns, target))
    return Findings(tuple(matrices), sizes_match, dtypes_match)


def products(
    output: Tensor, targets: Sequence[Tensor], vectors: Sequence[Tensor], options: Options
) -> tuple[Tensor, ...]:
    """For each target the matrix whose columns are the gradients for the given vectors.

    Raises:
        GradcheckError: for gradients of another size, dtype (if asked) or layout, and if a second
            run gives others.
    """
    found = observe(output, targets, vectors)
    again = observe(output, targets, vectors)
    if options.check_grad_dtypes and not found.dtypes_match:
        raise GradcheckError("Gradient has dtype mismatch: it has not the dtype of its input.")
    if not found.sizes_match:
        raise GradcheckError("Analytical gradient has incorrect size: not that of its input.")
    distance = _distance(found, again)
    if distance > options.nondet_tol:
        raise GradcheckError(
            "Backward is not reentrant: two runs with the same inputs and the same gradients of "
            f"the outputs gave gradients that differ by up to {distance:.3g}. The tolerance for "
            f"nondeterminism was {options.nondet_tol}. If the function is random by intention, "
            "pass a larger `nondet_tol`."
        )
    return found.matrices


def observed_jacobians(
    inputs: Any, output: Tensor, nondet_tol: float
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """The result of :func:`.get_analytical_jacobian`."""
    if output.is_complex():
        raise ValueError(
            "Expected output to be non-complex. get_analytical_jacobian no longer supports "
            "functions that return complex outputs."
        )
    targets = list(tensors_in(inputs))
    found = observe(output, targets, basis(output))
    again = observe(output, targets, basis(output))
    is_reentrant = _distance(found, again) <= nondet_tol
    return found.matrices, is_reentrant, found.sizes_match, found.dtypes_match


def check_layout(gradient: Tensor, target: Tensor) -> None:
    """Refuses a gradient that is laid out unlike its input.

    Raises:
        GradcheckError: naming both layouts.
    """
    if gradient.layout is _C.strided and target.layout is not _C.strided:
        # The gradient of a sparse tensor may be strided.
        return
    if gradient.layout is not target.layout:
        raise GradcheckError(f"grad is incorrect layout ({gradient.layout} is not {target.layout})")
    if gradient.layout is not _C.sparse_coo:
        return
    if gradient.sparse_dim() != target.sparse_dim():
        raise GradcheckError(
            "grad is sparse tensor, but has incorrect sparse_dim "
            f"{gradient.sparse_dim()}, expected {target.sparse_dim()}"
        )
    if gradient.dense_dim() != target.dense_dim():
        raise GradcheckError(
            "grad is sparse tensor, but has incorrect dense_dim "
            f"{gradient.dense_dim()}, expected {target.dense_dim()}"
        )


def _matrix(columns: Sequence[Tensor | None], target: Tensor) -> Tensor:
    matrix = target.detach().new_zeros((target.numel(), len(columns)))
    for i, gradient in enumerate(columns):
        # A gradient of another size is an error by itself; it has no column here.
        if gradient is not None and gradient.numel() == target.numel():
            matrix[:, i] = gradient.detach().reshape(-1)
    return matrix


def _distance(found: Findings, again: Findings) -> float:
    """The largest difference between two runs."""
    differences = [
        float((a - b).abs().max())
        for a, b in zip(found.matrices, again.matrices, strict=True)
        if a.numel()
    ]
    # NaN fails the comparison with the differences, and is ignored here.
    return max((d for d in differences if not math.isnan(d)), default=0.0)
