"""Names around training that programs import: parts of the loader, flat tensors, caught errors."""

from __future__ import annotations

import collections
import sys
from typing import Any

import pytest

import pullback as torch
from pullback._utils import (
    ExceptionWrapper,
    _flatten_dense_tensors,
    _take_tensors,
    _unflatten_dense_tensors,
)
from pullback.autograd import graph
from pullback.autograd.variable import VariableMeta
from pullback.utils._python_dispatch import (
    TorchDispatchMode,
    TraceableWrapperSubclass,
    any_torch_dispatch_mode_on_stack,
)
from pullback.utils.data import _utils


def test_tensors_laid_end_to_end_and_taken_apart_again() -> None:
    tensors = [torch.randn(2, 3), torch.randn(()), torch.randn(4, 2).t()]
    flat = _flatten_dense_tensors(tensors)
    assert flat.shape == (6 + 1 + 8,)
    parts = _unflatten_dense_tensors(flat, tensors)
    assert all(torch.equal(a, b) for a, b in zip(parts, tensors, strict=True))
    parts[0].zero_()
    assert flat[:6].eq(0).all()
    with pytest.raises(RuntimeError, match="at least one tensor"):
        _flatten_dense_tensors([])


def test_groups_of_tensors_by_type_and_size() -> None:
    a, b, c = torch.zeros(3), torch.zeros(3), torch.zeros(3, dtype=torch.float64)
    big = torch.zeros(100)
    groups = list(_take_tensors([a, c, b, big], 24))
    assert [[id(t) for t in group] for group in groups] == [
        [id(a), id(b)],
        [id(big)],
        [id(c)],
    ]


def test_a_caught_error_is_raised_again_with_its_traceback() -> None:
    class Two(Exception):
        def __init__(self, a: int, b: int) -> None:
            super().__init__(a, b)

    for error, kind in (
        (ValueError("x"), ValueError),
        (KeyError("x"), KeyError),
        (Two(1, 2), RuntimeError),
    ):
        try:
            raise error
        except Exception:
            kept = ExceptionWrapper(where="in thread 3")
        with pytest.raises(kind, match=rf"Caught {type(error).__name__} in thread 3.\nOriginal Tr"):
            kept.reraise()
    try:
        raise ValueError("x")
    except ValueError:
        kept = ExceptionWrapper(sys.exc_info())
    assert (kept.exc_type, kept.where) == (ValueError, "in background")


def test_parts_of_the_loader_by_their_modules() -> None:
    Pair = collections.namedtuple("Pair", "a b")
    x = torch.ones(2)
    pinned = _utils.pin_memory.pin_memory

    class Own:
        def pin_memory(self) -> str:
            return "pinned"

    if torch.cuda.is_available():
        pytest.skip("nothing is pinned without devices")
    data = {"p": Pair(1, "x"), "l": [2.0, Own()], "t": (b"x", None)}
    assert pinned(data) == {"p": Pair(1, "x"), "l": [2.0, "pinned"], "t": (b"x", None)}
    assert type(pinned(data)["p"]) is Pair
    assert _utils.worker.get_worker_info() is None
    fetcher = _utils.fetch._MapDatasetFetcher([x, x + 1], True, torch.stack, False)
    assert fetcher.fetch([1, 0]).tolist() == [[2, 2], [1, 1]]
    assert _utils.MP_STATUS_CHECK_INTERVAL > 0


def test_the_class_of_variables() -> None:
    class Anything(metaclass=VariableMeta):
        pass

    assert isinstance(torch.ones(1), Anything)
    assert not isinstance(1, Anything)


def test_callbacks_run_at_the_end_of_a_backward_pass_in_order() -> None:
    x = torch.ones(2, requires_grad=True)
    seen: list[Any] = []

    def hook(grad: torch.Tensor) -> None:
        graph.queue_callback(lambda: seen.append(x.grad is not None))
        graph.queue_callback(lambda: seen.append("second"))

    y = x * 2
    y.register_hook(hook)
    y.sum().backward()
    assert seen == [True, "second"]
    with pytest.raises(RuntimeError, match="during backward pass"):
        graph.queue_callback(lambda: None)


def test_callbacks_run_at_the_end_of_a_pass_that_fails() -> None:
    seen: list[int] = []
    x = torch.ones(2, requires_grad=True)

    def fail(grad: torch.Tensor) -> None:
        graph.queue_callback(lambda: seen.append(1))
        raise ValueError("stop")

    y = x * 2
    y.register_hook(fail)
    with pytest.raises(ValueError, match="stop"):
        y.sum().backward()
    assert seen == [1]


def test_a_budget_of_a_compiler_is_refused() -> None:
    with pytest.raises(ValueError, match=r"in \[0, 1\], got 2"):
        graph.region_activation_memory_budget(2)
    with pytest.raises(RuntimeError, match=r"inside a torch\.compile region"):
        graph.region_activation_memory_budget(0.5)


def test_modes_on_the_stack() -> None:
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    assert not any_torch_dispatch_mode_on_stack()
    with Mode():
        assert any_torch_dispatch_mode_on_stack()
    assert hasattr(TraceableWrapperSubclass, "__tensor_flatten__")


def test_functions_of_elements() -> None:
    x = torch.arange(6.0).reshape(2, 3).t()
    assert x.apply_(lambda v: v * v) is x
    assert x.tolist() == [[0, 9], [1, 16], [4, 25]]
    assert torch.arange(3).apply_(lambda v: v * 2.7).tolist() == [0, 2, 5]
    y = torch.ones(3).map_(torch.tensor([2.0]), lambda a, b: a - b)
    assert y.tolist() == [-1, -1, -1]
    z = torch.ones(2).map2_(
        torch.tensor([1.0, 2.0]), torch.full((2,), 3.0), lambda a, b, c: a + b * c
    )
    assert z.tolist() == [4, 7]
    version = y._version
    y.apply_(lambda v: v)
    assert y._version > version


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda x: x.apply_(3), TypeError, "'int' object is not callable"),
        (lambda x: x.apply_(lambda v: "a"), TypeError, "str"),
        (lambda x: x.requires_grad_().apply_(abs), RuntimeError, r"Can't call apply_\(\)"),
        (lambda x: x.map_(x.clone().requires_grad_(), max), RuntimeError, r"Can't call map_\(\)"),
        (lambda x: x.map_(x.long(), max), TypeError, r"expected torch.FloatTensor for 'other'"),
        (lambda x: x.map_(torch.ones(2), max), RuntimeError, "expand"),
        (lambda x: x.map_(torch.ones(2, 3), max), RuntimeError, "expand"),
        (lambda x: x.reinforce(1), RuntimeError, r"reinforce\(\) was removed"),
    ],
)
def test_functions_of_elements_that_cannot_be(
    call: Any, error: type[Exception], phrase: str
) -> None:
    x = torch.ones(3)
    with pytest.raises(error, match=phrase):
        call(x)
    assert x.detach().tolist() == [1, 1, 1]


FORMATS = [torch.contiguous_format, torch.channels_last]


@pytest.mark.parametrize(
    ("x", "check", "order"),
    [
        (torch.empty(2, 3, 4), False, (0, 1, 2)),
        (torch.empty(2, 3, 4).transpose(0, 2), True, (2, 1, 0)),
        (torch.empty(2, 3, 4).permute(2, 0, 1), True, (1, 2, 0)),
        (torch.empty(1, 3, 4), False, (0, 1, 2)),
        (torch.empty(1, 3, 4), True, None),
        (torch.empty(1, 2, 3, 4), FORMATS, (0, 1, 2, 3)),
        (torch.empty(1, 2, 3, 4).to(memory_format=torch.channels_last), FORMATS, (0, 2, 3, 1)),
        (torch.empty(2, 1, 3, 4), FORMATS, None),
        (torch.empty(2, 2).expand(3, 2, 2), False, (0, 1, 2)),
        (torch.empty(()), True, ()),
        (torch.empty(0, 2), True, (0, 1)),
        (torch.empty(2, 4, 4)[:, ::2], [torch.contiguous_format], (0, 1, 2)),
    ],
)
def test_orders_of_dimensions(x: torch.Tensor, check: Any, order: tuple[int, ...] | None) -> None:
    if order is None:
        with pytest.raises(RuntimeError, match="unique dim order"):
            x.dim_order(ambiguity_check=check)
    else:
        assert x.dim_order(ambiguity_check=check) == order
    with pytest.raises(TypeError, match="bool or a list of memory formats"):
        x.dim_order(ambiguity_check="x")  # type: ignore[arg-type]


def test_what_a_module_keeps_of_loaded_tensors() -> None:
    x, y = torch.zeros(2, requires_grad=True), torch.ones(2)
    with torch.no_grad():
        loaded = x.module_load(y)
    assert (x.tolist(), loaded.requires_grad) == ([1, 1], False)
    assert x.module_load(y, assign=True).data_ptr() == y.data_ptr()
    assert not x.is_distributed()


def test_masked_tensors_by_their_modules() -> None:
    from pullback.masked import maskedtensor

    assert maskedtensor.core.MaskedTensor is torch.masked.MaskedTensor
    assert maskedtensor.creation.masked_tensor is torch.masked.masked_tensor


def test_generators_of_workers() -> None:
    assert torch.random.thread_safe_generator() is None
    assert torch.rand(2, generator=torch.thread_safe_generator()).shape == (2,)


def test_types_for_annotations() -> None:
    with pytest.raises(TypeError, match="for annotations"):
        torch.types.Storage()
    assert str in torch.types.FileLike.__args__  # type: ignore[attr-defined]
