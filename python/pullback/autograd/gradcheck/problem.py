"""The problem to check: a function, the point at which it is evaluated, and the tensors that count.

Not here: any derivative. Invariant: a :class:`Problem` knows its outputs by their positions in
what the function returned, so that derivatives of some outputs never slip to others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ... import _C

if TYPE_CHECKING:
    from ..._tensor import Tensor


@dataclass(frozen=True)
class Options:
    """The arguments of :func:`pullback.autograd.gradcheck`, which explains them."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_undefined_grad: bool
    check_grad_dtypes: bool
    check_batched_grad: bool
    check_batched_forward_grad: bool
    check_forward_ad: bool
    check_backward_ad: bool
    fast_mode: bool
    masked: bool


def as_tuple(value: Any) -> tuple[Any, ...]:
    """A tuple of one, or of what a tuple or list holds."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def is_tensor_like(value: object) -> bool:
    """Whether this is a tensor, or something that imitates one."""
    return isinstance(value, _C.TensorBase) or hasattr(value, "__torch_function__")


def requires_grad(value: Any) -> bool:
    """Whether this is a tensor that requires grad."""
    return is_tensor_like(value) and bool(value.requires_grad)


def is_continuous(value: Any) -> bool:
    """Whether this is a tensor whose elements can have derivatives."""
    return is_tensor_like(value) and bool(value.is_floating_point() or value.is_complex())


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors that require grad, however deep they are nested."""
    if is_tensor_like(value):
        if value.requires_grad:
            yield value
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for item in value:
            yield from tensors_in(item)


@dataclass(frozen=True)
class Problem:
    """A function at a point: ``result`` is what ``function(*inputs)`` gave.

    Where one part of complex tensors is looked at, ``part`` says which (``"real"`` or
    ``"imaginary"``), and ``split`` which outputs (in forward mode: inputs) it is a part of, in the
    numbering of ``outputs`` (of ``targets``).
    """

    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    result: tuple[Any, ...]
    part: str = ""
    split: frozenset[int] = field(default_factory=frozenset)

    @property
    def target_positions(self) -> list[int]:
        """The positions of the inputs that require grad."""
        return [i for i, value in enumerate(self.inputs) if requires_grad(value)]

    @property
    def targets(self) -> list[Tensor]:
        """The inputs that require grad."""
        return [value for value in self.inputs if requires_grad(value)]

    @property
    def positions(self) -> list[int]:
        """The positions in the result of the outputs that require grad."""
        return [i for i, value in enumerate(self.result) if value.requires_grad]

    @property
    def outputs(self) -> list[Tensor]:
        """The outputs that require grad."""
        return differentiable(self.result)


def differentiable(result: Sequence[Any]) -> list[Tensor]:
    """The outputs of a function that require grad."""
    return [value for value in result if value.requires_grad]


def check_inputs(inputs: Sequence[Any]) -> None:
    """Refuses inputs that cannot be checked; warns of those that will likely fail.

    Raises:
        ValueError: if none requires grad.
        RuntimeError: if elements of one share memory.
    """
    for position, value in enumerate(inputs):
        if requires_grad(value):
            _check_input(position, value)
    if not any(map(requires_grad, inputs)):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )


def _check_input(position: int, value: Tensor) -> None:
    if value.dtype not in (_C.float64, _C.complex128):
        # The levels between are `check_inputs`, `run`, `_verdict` and `gradcheck`.
        warnings.warn(
            f"Input #{position} requires gradient and is not a double precision floating point "
            f"or complex, but {value.dtype}. This check will likely fail.",
            stacklevel=6,
        )
    if value.layout is not _C.strided:
        return
    shares = [
        size > 1 and step == 0 for size, step in zip(value.shape, value.stride(), strict=True)
    ]
    if any(shares):
        raise RuntimeError(
            f"The {position}th input has a dimension with stride 0. gradcheck changes one element "
            "at a time, so no two may share memory: call .contiguous() on the input first."
        )


def check_outputs(outputs: Iterable[Tensor]) -> None:
    """Refuses outputs whose elements cannot be counted off.

    Raises:
        ValueError: for a layout other than strided.
    """
    for output in outputs:
        if output.layout is not _C.strided:
            kind = "MKLDNN" if "mkldnn" in str(output.layout) else "Sparse"
            raise ValueError(
                f"{kind} output is not supported at gradcheck yet. Please call "
                "to_dense(masked_grad=...) on the output of fn for gradcheck."
            )
