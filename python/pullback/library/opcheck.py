"""Tests of an op that a program defines, with arguments that it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_TESTS = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_dynamic",
)


class OpCheckError(Exception):
    """An op that is not what its registrations say."""


def _tensors(value: Any) -> list[Any]:
    from ._overload import _tensors as found

    return list(found(value if isinstance(value, list | tuple) else [value]))


def _test_schema(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Only what the schema names is written into, and no result shares memory with an argument."""
    values = op._parsed.bind(op.name(), args, kwargs)
    given = [
        (argument, tensor, tensor.detach().clone())
        for argument, value in zip(op._parsed.arguments, values, strict=True)
        for tensor in _tensors(value)
    ]
    from .. import equal, no_grad

    with no_grad():
        results = _tensors(op(*args, **kwargs))
    for argument, tensor, before in given:
        if not argument.is_written and not equal(tensor.detach(), before):
            raise OpCheckError(
                f"opcheck({op.name()}): argument {argument.name} is not defined as mutable but was "
                "mutated"
            )
    for result in results:
        for argument, tensor, _ in given:
            if (
                result.numel()
                and result.untyped_storage()._cdata == tensor.untyped_storage()._cdata
            ):
                raise OpCheckError(
                    f"opcheck({op.name()}): argument {argument.name} is not defined to alias "
                    "output but was aliasing"
                )


def _test_autograd_registration(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """An op whose arguments require grad has a rule."""
    tensors = _tensors([*args, *kwargs.values()])
    needs = any(tensor.requires_grad for tensor in tensors)
    is_composite = "CompositeImplicitAutograd" in op.kernels or "Autograd" in op.kernels
    if needs and op.backward is None and not is_composite:
        raise OpCheckError(
            f"opcheck({op.name()}): the op has inputs that require grad, but no gradient rule: use "
            "torch.library.register_autograd"
        )


def _test_faketensor(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """The fake kernel gives the shapes and dtypes that the kernel gives."""
    from .. import no_grad

    if op.fake is None and "Meta" not in op.kernels:
        raise OpCheckError(
            f"opcheck({op.name()}): there is no fake impl: use torch.library.register_fake"
        )
    from ._overload import _mapped

    values = op._parsed.bind(op.name(), args, kwargs)
    with no_grad():
        expected = _tensors(op(*args, **kwargs))
        meta = [_mapped(value, lambda tensor: tensor.detach().to("meta")) for value in values]
        by_position, by_name = op._split(meta)
        shown = _tensors((op.fake or op.kernels["Meta"])(*by_position, **by_name))
    same = len(shown) == len(expected) and all(
        (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride())
        for a, b in zip(shown, expected, strict=True)
    )
    if not same:
        raise OpCheckError(
            f"opcheck({op.name()}): the fake impl gives "
            f"{[(tuple(t.shape), t.dtype) for t in shown]}, the op "
            f"{[(tuple(t.shape), t.dtype) for t in expected]}"
        )


def _test_gradients(op: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """The op runs forward and backward, with gradients for what requires them."""
    from ..autograd import grad

    inputs = [t for t in _tensors([*args, *kwargs.values()]) if t.requires_grad]
    outputs = [t for t in _tensors(op(*args, **kwargs)) if t.requires_grad]
    if inputs and outputs:
        grad(sum(output.sum() for output in outputs), inputs, allow_unused=True)


_CHECKS: dict[str, Callable[[Any, Sequence[Any], dict[str, Any]], None]] = {
    "test_schema": _test_schema,
    "test_autograd_registration": _test_autograd_registration,
    "test_faketensor": _test_faketensor,
    "test_aot_dispatch_dynamic": _test_gradients,
    "test_aot_dispatch_static": _test_gradients,
}


def opcheck(
    op: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = _TESTS,
    raise_exception: bool = True,
    atol: Any = None,
    rtol: Any = None,
) -> dict[str, str]:
    """Tests an op with some arguments: its schema, gradient rule, fake kernel, and a backward.

    Args:
        op: the op, from :func:`custom_op` or ``torch.ops``.
        args: arguments by position.
        kwargs: arguments by name.
        test_utils: which tests.
        raise_exception: whether the first failure is raised.
        atol: not used: nothing is compared but shapes.
        rtol: as ``atol``.

    Returns:
        ``SUCCESS`` or the error for each test.

    Raises:
        OpCheckError: for the first test that fails.
        ValueError: for a test that there is not.
    """
    from . import _find_op

    overload, kwargs = _find_op(op), kwargs or {}
    names = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    unknown = set(names) - set(_CHECKS)
    if unknown:
        raise ValueError(
            f"opcheck(op, ...): there are no tests {sorted(unknown)}, but {sorted(_CHECKS)}"
        )
    outcomes: dict[str, Any] = {}
    for name in names:
        try:
            _CHECKS[name](overload, args, kwargs)
            outcomes[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                if isinstance(error, OpCheckError):
                    raise
                raise OpCheckError(f"opcheck({overload.name()}): {name} failed: {error}") from error
            outcomes[name] = error
    return outcomes
