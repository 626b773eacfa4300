"""``TorchFunctionMode``: modes that answer calls of functions, methods and attributes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback import overrides
from pullback.nn import functional
from pullback.overrides import TorchFunctionMode


class Log(TorchFunctionMode):
    """Notes the names of what is called, with a word of its own."""

    def __init__(self, names: list[str | None] | None = None, word: str = "") -> None:
        self.names: list[str | None] = [] if names is None else names
        self.word = word

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = overrides.resolve_name(func)
        self.names.append(name and self.word + name.removeprefix("torch."))
        return func(*args, **(kwargs or {}))


def seen(call: Callable[[], object]) -> list[str | None]:
    with Log() as log:
        call()
    return log.names


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: torch.zeros(2), "zeros"),
        (lambda x: torch.tensor([1.0]), "tensor"),
        (lambda x: torch.as_tensor([1.0]), "as_tensor"),
        (lambda x: torch.add(x, x), "add"),
        (lambda x: x.add(1), "Tensor.add"),
        (lambda x: x + 1, "Tensor.add"),
        (lambda x: 1 - x, "Tensor.__rsub__"),
        (lambda x: x[0], "Tensor.__getitem__"),
        (lambda x: x.__setitem__(0, 1.0), "Tensor.__setitem__"),
        (lambda x: x.shape, "Tensor.shape.__get__"),
        (lambda x: x.dtype, "Tensor.dtype.__get__"),
        (lambda x: setattr(x, "requires_grad", False), "Tensor.requires_grad.__set__"),
        (lambda x: float(x.data[0]), "Tensor.__float__"),
        (lambda x: bool(x.data[0]), "Tensor.__bool__"),
        (lambda x: len(x), "Tensor.__len__"),
        (lambda x: repr(x), "Tensor.__repr__"),
        (lambda x: x.item, None),
        (lambda x: x.tolist(), "Tensor.tolist"),
        (lambda x: functional.relu(x), "nn.functional.relu"),
        (lambda x: functional.linear(x, x[None]), "nn.functional.linear"),
        (lambda x: torch.einsum("i,i->", x, x), "einsum"),
        (lambda x: torch.ops.aten.neg.default(x), "aten.neg.default"),
        (lambda x: torch.autograd.grad(x * 1, x, x), "autograd.grad"),
    ],
)
def test_every_kind_of_call_is_seen(call: Any, name: str | None) -> None:
    x = torch.tensor([1.5, 2.5])
    if name == "autograd.grad":
        x.requires_grad_()
        with Log() as log:
            call(x)
        # (As in PyTorch it is in no namespace that names are looked for in.)
        assert log.names[-1] is None
        return
    names = seen(lambda: call(x))
    assert (names[-1] if names else None) == name


def test_calls_that_a_function_of_python_makes_are_not_seen_again() -> None:
    x = torch.randn(2, 3)
    assert seen(lambda: functional.cross_entropy(x, torch.tensor([0, 1]))) == [
        "tensor",
        "nn.functional.cross_entropy",
    ]


def test_a_mode_answers_before_types_and_types_when_it_declines() -> None:
    class Answering(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "type"

    class Mode(TorchFunctionMode):
        def __init__(self, answer: Any) -> None:
            self.answer = answer
            self.types: Any = None

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.types = types
            return self.answer

    x = torch.Tensor._make_subclass(Answering, torch.ones(2))
    with Mode("mode") as mode:
        assert torch.add(x, 1) == "mode"
        assert x + 1 == "mode"
        assert mode.types == (Answering,)
    with Mode(NotImplemented):
        assert torch.add(x, 1) == "type"
        assert functional.relu(x) == "type"


def test_a_call_that_everybody_declines_is_an_error_that_names_them() -> None:
    class Declining(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented

        def __repr__(self) -> str:
            return "the declining one"

    x = torch.ones(2)
    with Declining():
        for call in (lambda: torch.zeros(2), lambda: functional.relu(x), lambda: x.shape):
            with pytest.raises(TypeError, match=r"(?s)Multiple dispatch failed.*the declining one"):
                call()
        with pytest.raises(TypeError, match="unsupported operand"):
            x + 1


def test_the_innermost_mode_is_asked_first_and_is_off_while_it_answers() -> None:
    names: list[str | None] = []
    with Log(names, "outer "), Log(names, "inner "):
        torch.ones(2)
    assert names == ["inner ones", "outer ones"]


def test_a_mode_may_see_the_calls_of_its_own_answer() -> None:
    names = []

    class Again(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            names.append(func)
            if func is torch.sub:
                with self:
                    return torch.add(*args, alpha=-1)
            return func(*args, **(kwargs or {}))

    x = torch.ones(1)
    with Again():
        difference = torch.sub(x, x)
    assert difference.item() == 0.0
    assert names == [torch.sub, torch.add]


def test_an_error_in_an_answer_is_that_error_and_the_stack_is_as_before() -> None:
    class Broken(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise KeyError("mine")

    x = torch.ones(2)
    with Broken() as broken:
        with pytest.raises(KeyError, match="mine"):
            x.add_(1)
        with pytest.raises(KeyError, match="mine"):
            x.requires_grad = True
        assert overrides._get_current_function_mode() is broken
    assert overrides._get_current_function_mode_stack() == []
    assert x.tolist() == [1.0, 1.0]
    assert not x.requires_grad


def test_the_states_say_who_is_asked() -> None:
    class Sub(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Sub)
    with Log() as log:
        with torch._C.DisableTorchFunctionSubclass():
            assert type(torch.neg(x)) is torch.Tensor
            assert not torch._C._is_torch_function_enabled()
            assert not torch._C._is_torch_function_all_disabled()
        assert log.names == ["neg"]
        with torch._C.DisableTorchFunction():
            assert type(torch.neg(x)) is torch.Tensor
            assert torch._C._is_torch_function_all_disabled()
            with overrides._enable_torch_function():
                assert type(torch.abs(x)) is Sub
        assert log.names[:2] == ["neg", "abs"]
    enabled = None
    with torch._C.DisableTorchFunctionSubclass():
        enabled = torch._C._EnableTorchFunction()
        assert type(torch.neg(x)) is Sub
        del enabled
        assert type(torch.neg(x)) is torch.Tensor


def test_modes_can_be_taken_away_for_a_while() -> None:
    with Log() as outer, Log() as inner, overrides._pop_mode_temporarily() as popped:
        assert popped is inner
        torch.ones(1)
    assert (outer.names, inner.names) == (["ones"], [])
    with pytest.raises(RuntimeError, match="empty mode stack"):
        overrides._pop_mode()


def test_a_class_method_is_no_answer() -> None:
    class Wrong(TorchFunctionMode):
        @classmethod
        def __torch_function__(  # type: ignore[override]
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    with Wrong(), pytest.raises(RuntimeError, match="classmethod is not supported"):
        torch.ones(1)


def test_the_dtype_is_read_as_before_when_no_mode_is_left() -> None:
    class Sub(torch.Tensor):
        pass

    field = torch.Tensor.__dict__["dtype"]
    x = torch.ones(1)
    for _ in range(3):
        with Log():

            class Made(torch.Tensor):
                """A class that is made while the dtype is an attribute that asks."""

            assert x.dtype is torch.float32
    assert torch.Tensor.__dict__["dtype"] is field
    assert x.dtype is torch.float32
    assert x.as_subclass(Sub).dtype is torch.float32
    assert x.as_subclass(Made).dtype is torch.float32


def test_other_threads_do_not_see_the_mode() -> None:
    sums = []
    with Log() as log:
        thread = threading.Thread(target=lambda: sums.append(torch.ones(3).sum().item()))
        thread.start()
        thread.join()
    assert sums == [3.0]
    assert log.names == []


def test_calls_in_a_backward_pass_are_seen_however_deep_it_is() -> None:
    # Past sixty backwards inside of each other another thread goes on.
    depth = 70

    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, level: int) -> Any:
            ctx.level = level
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            if ctx.level:
                with torch.enable_grad():
                    x = torch.ones(1, requires_grad=True)
                    Nested.apply(x, ctx.level - 1).backward()
            return torch.tan(grad), None

    class Entering(Log):
        """Sees the calls inside of backward too."""

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is torch.Tensor.backward:
                with self:
                    return overrides.redispatch_function(func, types, args, kwargs)
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.ones(1, requires_grad=True)
    y = Nested.apply(x, depth)
    with Entering() as log:
        y.backward()
    assert log.names.count("tan") == depth + 1


def test_a_device_is_a_context_in_which_new_tensors_are_made_there() -> None:
    from pullback.utils._device import DeviceContext

    with Log() as log, torch.device("cpu") as device:
        assert device == torch.device("cpu")
        stack = overrides._get_current_function_mode_stack()
        assert isinstance(stack[0], DeviceContext)
        assert stack[1] is log
        assert torch.zeros(2).device == device
    assert overrides._get_current_function_mode_stack() == []
    with pytest.raises(RuntimeError, match="not available"), torch.device("cuda"):
        pass
    assert overrides._get_current_function_mode_stack() == []
