"""Modes as contexts and decorators, paragraph by paragraph."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any

import pytest

import pullback as torch
from pullback.utils._contextlib import (
    _DecoratorContextManager,
    _NoParamDecoratorContextManager,
    context_decorator,
)

State = tuple[bool, bool]
OUTSIDE: State = (True, False)


def state() -> State:
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled()


# What decorates a function, and what holds in it.
DECORATORS: dict[str, tuple[Callable[[], Any], State]] = {
    "no_grad()": (torch.no_grad, (False, False)),
    "no_grad": (lambda: torch.no_grad, (False, False)),
    "enable_grad()": (torch.enable_grad, (True, False)),
    "enable_grad": (lambda: torch.enable_grad, (True, False)),
    "set_grad_enabled(False)": (lambda: torch.set_grad_enabled(False), (False, False)),
    "inference_mode()": (torch.inference_mode, (False, True)),
    "inference_mode": (lambda: torch.inference_mode, (False, True)),
    "inference_mode(False)": (lambda: torch.inference_mode(False), (True, False)),
}
every_form = pytest.mark.parametrize("form", DECORATORS)


@every_form
def test_decorated_functions_run_in_the_mode_and_keep_their_face(form: str) -> None:
    make, inside = DECORATORS[form]

    def function(a: int, *, b: int = 2) -> Any:
        """What it does."""
        return state(), a, b

    decorated = make()(function)
    assert decorated(1, b=3) == (inside, 1, 3)
    assert (decorated.__name__, decorated.__doc__) == ("function", "What it does.")
    assert inspect.signature(decorated) == inspect.signature(function)
    assert state() == OUTSIDE


@every_form
def test_decorated_generators_have_the_mode_only_while_they_run(form: str) -> None:
    make, inside = DECORATORS[form]
    log: list[Any] = []

    def generator() -> Generator[int, Any, int]:
        log.append(state())
        try:
            log.append(((yield 1), state()))
            try:
                yield 2
            except ValueError:
                log.append(("thrown", state()))
            yield 3
        finally:
            log.append(("closed", state()))
        return 9

    decorated = make()(generator)
    assert inspect.isgeneratorfunction(decorated)
    running = decorated()
    assert (next(running), state()) == (1, OUTSIDE)
    assert (running.send("sent"), state()) == (2, OUTSIDE)
    assert (running.throw(ValueError("v")), state()) == (3, OUTSIDE)
    running.close()
    assert state() == OUTSIDE
    assert log == [inside, ("sent", inside), ("thrown", inside), ("closed", inside)]

    results = []

    def outer() -> Generator[int, Any, None]:
        results.append((yield from decorated()))

    assert list(outer()) == [1, 2, 3]
    assert results == [9]


def test_generators_end_as_undecorated_ones_do() -> None:
    @torch.no_grad()
    def stubborn() -> Generator[int, None, None]:
        try:
            yield 1
        except GeneratorExit:
            yield 2

    running = stubborn()
    next(running)
    with pytest.raises(RuntimeError, match="generator ignored GeneratorExit"):
        running.close()

    @torch.no_grad()
    def failing() -> Generator[int, None, None]:
        yield 1
        raise KeyError(3)

    running = failing()
    next(running)
    with pytest.raises(KeyError):
        next(running)
    with pytest.raises(StopIteration):
        next(running)

    @torch.no_grad()
    def simple() -> Generator[int, None, None]:
        yield 1

    running = simple()
    next(running)
    with pytest.raises(LookupError, match="mine"):
        running.throw(LookupError("mine"))
    assert state() == OUTSIDE


def test_a_mode_entered_in_a_generator_does_not_reach_the_consumer() -> None:
    @torch.no_grad()
    def generator() -> Generator[Any, None, None]:
        with torch.enable_grad():
            yield state()
            yield state()

    running = generator()
    assert next(running) == (True, False)
    assert state() == OUTSIDE
    with torch.set_grad_enabled(False):
        next(running)
        assert state() == (False, False)
    assert state() == OUTSIDE


@every_form
def test_coroutines_and_async_generators_are_called_in_the_mode_but_run_outside(form: str) -> None:
    make, _ = DECORATORS[form]
    log: list[Any] = []

    async def coroutine() -> int:
        log.append(state())
        await asyncio.sleep(0)
        log.append(state())
        return 3

    async def generator() -> AsyncIterator[int]:
        log.append(state())
        yield 1
        log.append(state())

    async def consume() -> None:
        async for _ in make()(generator)():
            log.append(state())  # noqa: PERF401

    assert asyncio.run(make()(coroutine)()) == 3
    asyncio.run(consume())
    assert log == [OUTSIDE] * 5


@every_form
def test_decorated_classes_become_functions_with_a_warning(form: str) -> None:
    make, inside = DECORATORS[form]

    class Thing:
        def __init__(self, number: int) -> None:
            self.seen = state(), number

    decorator = make()
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        decorated = decorator(Thing)
    assert inspect.isfunction(decorated)
    assert decorated(3).seen == (inside, 3)
    assert state() == OUTSIDE


def test_decorated_functions_may_call_themselves_and_run_in_other_threads() -> None:
    @torch.set_grad_enabled(False)
    def count(n: int) -> list[State]:
        return [state()] + (count(n - 1) if n else [])

    assert count(3) == [(False, False)] * 4
    seen: list[State] = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(state()))
        thread.start()
        thread.join()
    assert seen == [OUTSIDE]  # Modes belong to their thread.


def test_set_grad_enabled_acts_when_it_is_made_and_leaving_undoes_that() -> None:
    setting = torch.set_grad_enabled(False)
    try:
        assert state() == (False, False)
        assert repr(setting) == "torch.autograd.grad_mode.set_grad_enabled(mode=False)"
        with torch.enable_grad():
            with setting:
                assert state() == (False, False)
            assert state() == OUTSIDE
    finally:
        torch.set_grad_enabled(True)
    decorated = torch.set_grad_enabled(False)(state)
    assert state() == OUTSIDE  # Decorating undid it.
    assert decorated() == (False, False)
    for wrong in (1, "a", None):
        with pytest.raises(TypeError, match=r"set_grad_enabled\(\).* must be bool"):
            torch.set_grad_enabled(wrong)  # type: ignore[arg-type]


def test_one_context_may_be_entered_again_inside_of_itself() -> None:
    mode = torch.no_grad()
    with mode:
        with torch.enable_grad():
            with mode:
                assert state() == (False, False)
            assert state() == OUTSIDE
        assert state() == (False, False)
    assert state() == OUTSIDE


def test_inference_mode_off_turns_recording_on_and_other_modes_nest_inside() -> None:
    with torch.inference_mode():
        assert torch.ones(1).is_inference()
        with torch.inference_mode(mode=False):
            assert state() == OUTSIDE
            assert not torch.ones(1).is_inference()
        with torch.enable_grad():
            assert state() == (True, True)
            x = torch.ones(1, requires_grad=True)
            assert x.requires_grad
            assert not (x * 2).requires_grad
        assert state() == (False, True)
    with torch.no_grad(), torch.inference_mode(False):
        assert state() == OUTSIDE
    assert state() == OUTSIDE


@pytest.mark.parametrize(
    ("mode", "computes"),
    [
        (torch.no_grad, True),
        (torch.enable_grad, True),
        (lambda: torch.set_grad_enabled(False), True),
        (torch.inference_mode, False),
        (lambda: torch.inference_mode(False), True),
    ],
)
def test_only_inference_mode_turns_forward_mode_off(mode: Any, computes: bool) -> None:
    with mode():
        assert torch._C._is_fwd_grad_enabled() is computes


def test_factories_that_are_asked_for_a_gradient_ignore_the_mode() -> None:
    with torch.no_grad():
        assert torch.ones(1, requires_grad=True).requires_grad
        assert torch.tensor([1.0], requires_grad=True).requires_grad
        assert torch.nn.Parameter(torch.ones(1)).requires_grad


def test_writes_can_be_left_uncounted_for_one_tensor_or_several() -> None:
    preserve = torch.autograd._unsafe_preserve_version_counter
    x, y = torch.ones(2), torch.ones(2)
    y.add_(1)
    with preserve(x):
        x.add_(1)
        assert x._version == 1
    assert x._version == 0
    with preserve((x, y)):
        x.add_(1)
        y.add_(1).add_(1)
    assert (x._version, y._version) == (0, 1)
    with contextlib.suppress(KeyError), preserve(x):
        x.add_(1)
        raise KeyError
    assert x._version == 0
    for wrong in (3, [x], (x, 3)):
        with pytest.raises(AssertionError, match="Expected tensors to be"):
            preserve(wrong)  # type: ignore[arg-type]
    with torch.inference_mode():
        made = torch.ones(1)
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        preserve(made)


def test_versions_are_set_and_counted_for_one_tensor_or_several() -> None:
    x, y = torch.ones(1), torch.ones(1)
    torch._C._unsafe_set_version_counter((x, y), (5, 7))
    assert (x._version, y._version) == (5, 7)
    with pytest.raises(RuntimeError, match="1 tensors and 2 versions"):
        torch._C._unsafe_set_version_counter((x,), (1, 2))
    with pytest.raises(RuntimeError, match="below 0"):
        torch._C._unsafe_set_version_counter((x,), (-1,))
    torch.autograd.graph.increment_version(tensor for tensor in (x, y))
    assert (x._version, y._version) == (6, 8)
    for wrong in (3, [x, 3]):
        with pytest.raises(RuntimeError, match="increment_version expect"):
            torch.autograd.graph.increment_version(wrong)  # type: ignore[arg-type]
    assert x._version in (6, 7)


def test_contexts_of_programs_decorate_by_the_same_rules() -> None:
    class Depth(_DecoratorContextManager):
        now = 0

        def __enter__(self) -> None:
            Depth.now += 1

        def __exit__(self, *exception: object) -> None:
            Depth.now -= 1

    class Bare(_NoParamDecoratorContextManager, Depth):
        pass

    assert Depth()(lambda: Depth.now)() == 1
    assert Bare(lambda: Depth.now)() == 1
    assert Bare()(lambda: Depth.now)() == 1
    assert context_decorator(lambda: Depth(), lambda: Depth.now)() == 1
    with pytest.raises(AssertionError, match="both callable and also a valid context manager"):
        context_decorator(torch.no_grad, state)
    with pytest.raises(RuntimeError, match="Cannot decorate classes"):
        context_decorator(lambda: torch.no_grad(), Depth)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Depth.now == 0
    with pytest.raises(NotImplementedError):
        _DecoratorContextManager().__enter__()
