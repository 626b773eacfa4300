"""What type checkers are told is what programs find when they run.

The programs in `typing/` are checked by mypy and pyright (`cargo xtask test --lint`); here they
run, and each `assert_type` in them looks at the value.
"""

from __future__ import annotations

import runpy
import types
import typing
from pathlib import Path
from typing import Any

import pytest
import typing_extensions

import pullback as torch

PROGRAMS = sorted((Path(__file__).parent / "typing").glob("*.py"))


def is_of(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, as far as that can be seen."""
    if kind is Any:
        return True
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is None:
        return value is None
    if origin in (types.UnionType, typing.Union):
        return any(is_of(value, one) for one in arguments)
    if origin is tuple:
        if arguments[1:] == (...,):
            return isinstance(value, tuple) and all(is_of(one, arguments[0]) for one in value)
        return len(value) == len(arguments) and all(map(is_of, value, arguments))
    if origin is list:
        return isinstance(value, list) and all(is_of(one, arguments[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            is_of(key, arguments[0]) and is_of(one, arguments[1]) for key, one in value.items()
        )
    return isinstance(value, origin or kind)


def checked(value: Any, kind: Any) -> Any:
    assert is_of(value, kind), f"{value!r} is not of type {kind}"
    return value


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_values_are_of_the_types_that_checkers_are_told(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typing_extensions, "assert_type", checked)
    runpy.run_path(str(program))


def test_the_check_can_fail() -> None:
    assert PROGRAMS
    assert not is_of([1, "a"], list[int])
    assert not is_of((1, 2), tuple[int])
    assert not is_of({1: 2}, dict[str, int])
    assert not is_of(1.0, int | None)
    assert is_of((1, "a"), tuple[int, str])


PUBLIC = [
    torch.Tensor,
    torch.nn.Parameter,
    torch.UntypedStorage,
    torch.storage.TypedStorage,
    torch.autograd.Function,
    torch.autograd.forward_ad.UnpackedDualTensor,
    torch.utils.data.DataLoader,
    *(
        getattr(torch.nn, name)
        for name in dir(torch.nn)
        if isinstance(getattr(torch.nn, name), type)
    ),
    *(
        getattr(torch.optim, name)
        for name in dir(torch.optim)
        if isinstance(getattr(torch.optim, name), type)
    ),
]


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__qualname__)
def test_programs_can_ask_for_the_types_of_attributes(kind: type) -> None:
    assert isinstance(typing.get_type_hints(kind), dict)


def test_parameters_of_layers_are_annotated() -> None:
    hints = typing.get_type_hints(torch.nn.Linear)
    assert hints["weight"] is torch.nn.Parameter
    assert hints["bias"] is torch.nn.Parameter
