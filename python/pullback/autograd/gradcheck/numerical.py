"""Derivatives by central differences, ``(f(x + h) - f(x - h)) / (2 eps)``.

An element (or, in fast mode, a whole tensor) is moved in place, through ``data``, so that neither
the graph nor the version of the input notices; it is put back even if the function raises.
Start at :class:`Probe`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from ... import _C
from .problem import Problem, as_tuple, is_continuous, tensors_in

if TYPE_CHECKING:
    from ..._tensor import Tensor


@dataclass(frozen=True)
class Probe:
    """A function that is evaluated around a point.

    ``result`` is what it gives at the point; ``positions`` are the outputs to differentiate.
    """

    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    result: Sequence[Any]
    positions: Sequence[int]
    eps: float

    def jacobians(self, target: Tensor) -> list[Tensor]:
        """The Jacobian of each output with respect to ``target``, an element at a time."""
        rows: list[list[Tensor]] = [[] for _ in self.positions]
        # The indices come in row-major order, as `reshape(-1)` counts.
        for index in product(*map(range, target.shape)):
            entry = target.data[index]
            slopes = self.slopes(entry, (self.eps, self.eps), f"on index {index} ")
            for row, slope in zip(rows, slopes, strict=True):
                row.append(slope)
        return [self._stacked(target, p, row) for p, row in zip(self.positions, rows, strict=True)]

    def slopes(self, entry: Tensor, steps: tuple[Any, Any], where: str = "") -> list[Tensor]:
        """The derivatives of the outputs along steps, flattened.

        A complex entry takes a real and an imaginary step, which give the derivatives
        ``d/dx + i d/dy``; a real one the first step only.
        """
        along = self._differences(entry, steps[0], where)
        if not entry.is_complex():
            return along
        across = self._differences(entry, steps[1] * 1j, where)
        return [a + b * 1j for a, b in zip(along, across, strict=True)]

    def _differences(self, entry: Tensor, step: Any, where: str) -> list[Tensor]:
        start = entry.clone()
        try:
            entry.copy_(start - step)
            below = self._values()
            entry.copy_(start + step)
            above = self._values()
        finally:
            entry.copy_(start)
        self._check_alike(below, above, where)
        return [((above[p] - below[p]) / (2 * self.eps)).reshape(-1) for p in self.positions]

    def _values(self) -> list[Tensor]:
        # Copies, because an output may be the input itself or a view of it.
        return [value.detach().clone() for value in as_tuple(self.function(*self.inputs))]

    def _check_alike(self, below: list[Tensor], above: list[Tensor], where: str) -> None:
        def refuse(what: str, one: object, other: object) -> None:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are "
                f"perturbed {where}by {self.eps}, but got: {one} and {other}."
            )

        if len(below) != len(above):
            refuse("number", len(below), len(above))
        for low, high in zip(below, above, strict=True):
            if low.shape != high.shape:
                refuse("shape", low.shape, high.shape)
            if low.dtype != high.dtype:
                refuse("dtype", low.dtype, high.dtype)
        for p in self.positions:
            if p >= len(above) or above[p].shape != self.result[p].shape:
                refuse("shape", [v.shape for v in above], [v.shape for v in self.result])

    def _stacked(self, target: Tensor, position: int, rows: list[Tensor]) -> Tensor:
        output = self.result[position]
        dtype = target.dtype if target.is_complex() else output.dtype
        if not rows:
            empty: Tensor = output.detach().new_zeros((0, output.numel()), dtype=dtype)
            return empty
        return _C._VariableFunctions.stack(rows).to(dtype)


def probe(problem: Problem, eps: float) -> Probe:
    """Differences of the outputs that require grad."""
    return Probe(problem.function, problem.inputs, problem.result, problem.positions, eps)


def probe_all(problem: Problem, eps: float) -> Probe:
    """Differences of all outputs that could have derivatives."""
    positions = [i for i, value in enumerate(problem.result) if is_continuous(value)]
    return Probe(problem.function, problem.inputs, problem.result, positions, eps)


def jacobians_of(
    function: Callable[..., Any],
    inputs: Any,
    outputs: Any,
    target: Tensor,
    eps: float,
    is_forward_ad: bool,
) -> tuple[Tensor, ...]:
    """The result of :func:`.get_numerical_jacobian_wrt_specific_input`."""
    if not target.requires_grad:
        raise AssertionError("Expected input to have requires_grad=True")
    result = as_tuple(outputs)
    if any(value.is_complex() for value in result) and (target.is_complex() or not is_forward_ad):
        raise AssertionError("Expected ds_dx to be real-valued, not complex.")
    positions = [i for i, value in enumerate(result) if is_continuous(value)]
    return tuple(Probe(function, as_tuple(inputs), result, positions, eps).jacobians(target))


def first_jacobians(
    function: Callable[[Any], Any], inputs: Any, target: Any, eps: float
) -> tuple[Tensor, ...]:
    """The result of :func:`.get_numerical_jacobian`."""
    result = as_tuple(function(inputs))
    if any(value.is_complex() for value in result):
        raise ValueError(
            "Expected output to be non-complex. get_numerical_jacobian no longer supports "
            "functions that return complex outputs."
        )
    differences = Probe(function, (inputs,), result, [0], eps)
    return tuple(differences.jacobians(tensor)[0] for tensor in tensors_in(target))
