"""Derivatives beside differences: whole Jacobians, or products with random vectors (fast mode).

Not here: how either side is computed. Invariant: output ``i`` and input ``j`` of a message count
the outputs and inputs that require grad. Start at :func:`compare`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ... import _C
from . import GradcheckError, analytical, forward
from .numerical import Probe, probe, probe_all
from .problem import Options, Problem

if TYPE_CHECKING:
    from ..._tensor import Tensor

# Two real vectors, for the real and the imaginary part; a real tensor has the first one only.
Direction = tuple[Any, Any]

_SLOW_WOULD_PASS = (
    "Fast gradcheck failed but element-wise differences are small. This means that the whole "
    "Jacobians agree and the check passes with `fast_mode=False`."
)


def compare(problem: Problem, options: Options, is_forward: bool) -> None:
    """Checks the derivatives of all outputs with respect to all inputs.

    Raises:
        GradcheckError: for a derivative that is wrong.
    """
    if not problem.positions:
        _check_constant(problem, options)
    elif options.fast_mode:
        _compare_products(problem, options, is_forward)
    else:
        _compare_jacobians(problem, options, is_forward)


def _check_constant(problem: Problem, options: Options) -> None:
    """Checks that a function whose outputs require no grad does not change."""
    differences = probe_all(problem, options.eps)
    generator = _C.Generator()
    for target in problem.targets:
        if options.fast_mode:
            found = _slopes(differences, target, direction(target, generator))
            tolerance = options.nondet_tol
        else:
            found, tolerance = differences.jacobians(target), 0.0
        if any(d.numel() and float(d.abs().max()) > tolerance for d in found):
            raise GradcheckError(
                "Numerical gradient for function expected to be zero, because no output requires "
                "grad, but the outputs change with the inputs."
            )


def _compare_jacobians(problem: Problem, options: Options, is_forward: bool) -> None:
    differences = probe(problem, options.eps)
    numerical = [differences.jacobians(target) for target in problem.targets]
    if is_forward:
        by_input = [
            forward.jacobians(problem, position, options.check_grad_dtypes)
            for position in problem.target_positions
        ]
    for i, output in enumerate(problem.outputs):
        if is_forward:
            found: Sequence[Tensor] = [per_output[i] for per_output in by_input]
        else:
            vectors = analytical.basis(output)
            found = analytical.products(output, problem.targets, vectors, options)
        for j, a in enumerate(found):
            n = numerical[j][i]
            if not _is_close(a, n, options.rtol, options.atol):
                raise GradcheckError(_mismatch(problem, a, n, i, j, is_forward))


@dataclass(frozen=True)
class _Vectors:
    """Random vectors: a direction for each input, and for each output what it is multiplied by."""

    inputs: list[Direction]
    outputs: list[Tensor]

    def atol(self, options: Options, i: int, j: int) -> float:
        """The tolerance of ``u E v``, where all entries of E are the given tolerance.

        The sums of the vectors multiply: ``sum_jk u_j atol v_k``; u and v have no negative
        entries.
        """
        inner = sum(float(u.sum()) for u in self.inputs[j] if u is not None)
        outer = float(self.outputs[i].sum()) if self.outputs else 1.0
        return options.atol * inner * outer


def direction(target: Tensor, generator: Any) -> Direction:
    """Random unit vectors in the space of an input."""
    real = _unit(target, generator)
    return real, _unit(target, generator) if target.is_complex() else None


def _unit(like: Tensor, generator: Any) -> Tensor:
    # Drawn in the default dtype and then converted, as PyTorch does: the same vectors come out.
    vector: Tensor = _C._VariableFunctions.rand(like.numel(), generator=generator)
    vector = vector.to(dtype=like.dtype.to_real(), device=like.device)
    return vector / vector.norm()


def _slopes(differences: Probe, target: Tensor, along: Direction) -> list[Tensor]:
    shaped = [None if u is None else u.reshape(target.shape) * differences.eps for u in along]
    return differences.slopes(target.data, (shaped[0], shaped[1]))


def _compare_products(problem: Problem, options: Options, is_forward: bool) -> None:
    # A generator of its own, so that the user's random numbers stay what they were.
    generator = _C.Generator()
    along = [direction(target, generator) for target in problem.targets]
    across = [] if is_forward else [_unit(output, generator) for output in problem.outputs]
    vectors = _Vectors(along, across)
    numerical = _numerical_products(problem, options, vectors)
    if is_forward:
        found = _forward_products(problem, options, vectors)
    else:
        found = _backward_products(problem, options, vectors)
    for j, row in enumerate(numerical):
        for i, n in enumerate(row):
            a = found[j][i]
            if not _is_close(a, n, options.rtol, vectors.atol(options, i, j)):
                whole = _whole_jacobians(problem, options, i, j, is_forward)
                raise GradcheckError(_mismatch(problem, a, n, i, j, is_forward) + whole)


def _numerical_products(
    problem: Problem, options: Options, vectors: _Vectors
) -> list[list[Tensor]]:
    differences = probe(problem, options.eps)
    slopes = [
        _slopes(differences, target, along)
        for target, along in zip(problem.targets, vectors.inputs, strict=True)
    ]
    if not vectors.outputs:
        return slopes
    return [
        [(v * slope).sum() for v, slope in zip(vectors.outputs, row, strict=True)] for row in slopes
    ]


def _forward_products(problem: Problem, options: Options, vectors: _Vectors) -> list[list[Tensor]]:
    return [
        forward.derivatives(problem, position, along[0], options.check_grad_dtypes)
        for position, along in zip(problem.target_positions, vectors.inputs, strict=True)
    ]


def _backward_products(problem: Problem, options: Options, vectors: _Vectors) -> list[list[Tensor]]:
    by_output = []
    for output, v in zip(problem.outputs, vectors.outputs, strict=True):
        columns = analytical.products(output, problem.targets, [v], options)
        by_output.append([_dot(c, u) for c, u in zip(columns, vectors.inputs, strict=True)])
    return [list(row) for row in zip(*by_output, strict=True)]


def _dot(column: Tensor, along: Direction) -> Tensor:
    """The product with a direction; for a complex one, part by part: ``Re.u0 + i Im.u1``."""
    column = column.reshape(-1)
    if not column.is_complex():
        product: Tensor = (column * along[0]).sum()
        return product
    parts = _C._VariableFunctions.view_as_real(column.resolve_conj())
    sums: Tensor = (parts * _C._VariableFunctions.stack(list(along), dim=1)).sum(0)
    return _C._VariableFunctions.complex(sums[0], sums[1])


def _whole_jacobians(problem: Problem, options: Options, i: int, j: int, is_forward: bool) -> str:
    """The Jacobians of slow mode for a pair that failed in fast mode."""
    numerical = probe(problem, options.eps).jacobians(problem.targets[j])[i]
    if is_forward:
        found = forward.jacobians(problem, problem.target_positions[j])[i]
    else:
        output, targets = problem.outputs[i], problem.targets
        found = analytical.observe(output, targets, analytical.basis(output)).matrices[j]
    a, n = _promoted(found, numerical)
    text = (
        "\nThese are products of the Jacobians with random vectors (fast mode). "
        f"The Jacobians themselves:\n\nNumerical:\n{numerical}\nAnalytical:\n{found}\n\n"
        f"The max per-element difference (slow mode) is: {float((a - n).abs().max())}.\n"
    )
    return text + _SLOW_WOULD_PASS if a.allclose(n, options.rtol, options.atol) else text


def _promoted(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    dtype = _C.promote_types(a.dtype, b.dtype)
    return a.to(dtype=dtype), b.to(dtype=dtype, device=a.device)


def _is_close(a: Tensor, n: Tensor, rtol: float, atol: float) -> bool:
    a, n = _promoted(a, n)
    return bool(a.allclose(n, rtol, atol))


def _mismatch(problem: Problem, a: Tensor, n: Tensor, i: int, j: int, is_forward: bool) -> str:
    prefix = ""
    if (j if is_forward else i) in problem.split:
        kind = "inputs" if is_forward else "outputs"
        prefix = f"While considering the {problem.part} part of complex {kind} only, "
    mode = "computed with forward mode " if is_forward else ""
    return (
        f"{prefix}Jacobian {mode}mismatch for output {i} with respect to input {j},\n"
        f"numerical:{n}\nanalytical:{a}\n"
    )
