"""Batched tensors given to everything: whatever is called answers, or refuses in its own words."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pullback as torch
from pullback import vmap

F = torch.nn.functional
# Settings of the process, and what is no function of tensors.
LEFT_OUT = {
    "compile",
    "load",
    "manual_seed",
    "save",
    "seed",
    "set_default_device",
    "set_default_dtype",
    "set_grad_enabled",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "set_warn_always",
    "use_deterministic_algorithms",
    "vmap",
}
SPECIAL = {
    "__getitem__",
    "__setitem__",
    "__len__",
    "__iter__",
    "__bool__",
    "__float__",
    "__array__",
}
REFUSALS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    ImportError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Everything that may take a tensor first, by name."""
    for name in dir(torch.Tensor):
        if not name.startswith("__") or name in SPECIAL:
            yield f"Tensor.{name}", lambda x, *rest, name=name: called(getattr(x, name), rest)
    for module in (torch, F):
        for name in dir(module):
            function = getattr(module, name)
            if callable(function) and not isinstance(function, type) and name not in LEFT_OUT:
                yield f"{module.__name__}.{name}", function


def called(value: Any, arguments: tuple[Any, ...]) -> Any:
    return value(*arguments) if callable(value) else value


def arguments(x: Any) -> list[tuple[Any, ...]]:
    return [
        (),
        (x,),
        (x, x),
        ([x, x],),
        (x > 0, x),
        (0,),
        (1,),
        (0, 1),
        ((0,),),
        (2, 2),
        ((3, 2),),
        (0, torch.tensor([0]), x),
        (None,),
        ("mean",),
        (torch.float64,),
    ]


@pytest.mark.parametrize("randomness", ["error", "different", "same"])
@pytest.mark.parametrize("shape", [(3, 2, 2), (3,)])
def test_everything_answers_or_refuses(shape: tuple[int, ...], randomness: str) -> None:
    physical = torch.linspace(0.1, 0.9, torch.Size(shape).numel()).reshape(shape)
    wrong: list[str] = []

    def all_of_them(x: Any) -> Any:
        for name, function in functions():
            for index in range(len(arguments(x))):
                given = x.clone()
                try:
                    str(function(given, *arguments(given)[index]))
                except REFUSALS as error:
                    if "bug in pullback" in str(error):
                        wrong.append(f"{name} {index}: {error}")
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = vmap(all_of_them, randomness=randomness)(physical)
    assert not wrong, "\n".join(wrong)
    assert kept.shape == shape
