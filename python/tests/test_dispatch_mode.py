"""``TorchDispatchMode``: modes that answer ops below autograd, whatever the arguments are."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback.nn import functional
from pullback.utils import _python_dispatch as modes
from pullback.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


class Log(TorchDispatchMode):
    """Notes the names of ops, with a word of its own."""

    def __init__(self, names: list[str] | None = None, word: str = "") -> None:
        self.names = [] if names is None else names
        self.word = word

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(self.word + str(func).removeprefix("aten."))
        return func(*args, **(kwargs or {}))


def seen(call: Callable[[], object]) -> list[str]:
    with Log() as log:
        call()
    return log.names


def test_ops_on_plain_tensors_and_without_tensors_are_seen() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    assert seen(lambda: x.exp()) == ["exp.default"]
    assert seen(lambda: torch.zeros(2)) == ["zeros.default"]
    assert seen(lambda: torch.randn(2)) == ["randn.default"]
    assert seen(lambda: torch.add(x.detach(), 1)) == ["detach.default", "add.Tensor"]


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda x, w: functional.linear(x, w, torch.ones(5)), ["ones", "t", "addmm"]),
        (lambda x, w: x @ w.t(), ["t", "mm"]),
        (lambda x, w: functional.softmax(x, 1), ["_softmax"]),
        (lambda x, w: x.reshape(-1), ["view"]),
        (lambda x, w: x[0, 1:], ["select", "slice"]),
        (lambda x, w: torch.stack([x, x]), ["stack"]),
        (lambda x, w: x.chunk(2), ["split"]),
        (lambda x, w: (x * 2).mul_(3), ["mul", "mul_"]),
        (lambda x, w: x.to(torch.float64), ["_to_copy"]),
        (lambda x, w: x.norm(), ["linalg_vector_norm"]),
    ],
)
def test_composites_are_seen_as_what_they_are_made_of(call: Any, names: list[str]) -> None:
    # The same as PyTorch shows.
    x, w = torch.randn(2, 4, requires_grad=True), torch.randn(5, 4, requires_grad=True)
    assert [name.split(".")[0] for name in seen(lambda: call(x, w))] == names


def test_the_backward_pass_is_seen_and_gradients_are_as_without() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    names = seen(lambda: x.exp().sum().backward())
    assert names == [
        "exp.default",
        "sum.default",
        "ones_like.default",
        "expand.default",
        "mul.Tensor",
    ]
    assert torch.equal(x.grad, x.detach().exp())


def test_history_is_kept_around_what_a_mode_answers() -> None:
    class Doubled(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            assert not (torch.ones(1, requires_grad=True) * 2).requires_grad
            return 2 * func(*args, **(kwargs or {}))

    x = torch.tensor([3.0], requires_grad=True)
    with Doubled():
        y = x.sin()
    assert y.grad_fn.name() == "SinBackward0"
    assert y.item() == pytest.approx(2 * torch.tensor(3.0).sin().item())
    y.backward()
    assert x.grad.item() == pytest.approx(torch.tensor(3.0).cos().item())


def test_the_innermost_mode_is_asked_first_and_is_off_while_it_answers() -> None:
    names: list[str] = []
    with Log(names, "outer "), Log(names, "inner "):
        torch.ones(2).neg()
    assert names == [
        "inner ones.default",
        "outer ones.default",
        "inner neg.default",
        "outer neg.default",
    ]


def test_a_mode_may_be_entered_again_also_by_its_own_answer() -> None:
    names: list[str] = []

    class Again(Log):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is aten.sub.Tensor:
                self.names.append("sub")
                with self:
                    return torch.add(args[0], args[1], alpha=-1)
            return super().__torch_dispatch__(func, types, args, kwargs)

    mode = Again(names)
    with mode, mode:
        difference = torch.sub(torch.ones(2), torch.ones(2))
    assert difference.tolist() == [0.0, 0.0]
    assert names.count("ones.default") == 4
    assert names[4:] == ["sub", "add.Tensor", "add.Tensor"]


def test_writes_are_counted_once_however_many_modes_there_are() -> None:
    x, out = torch.ones(2), torch.empty(2)
    with Log(), Log() as log:
        x.add_(1)
        torch.mul(x, x, out=out)
    assert (x._version, out._version) == (1, 1)
    assert out.tolist() == [4.0, 4.0]
    assert log.names == ["add_.Tensor", "mul.out"]


def test_views_and_writes_through_them_have_their_gradients() -> None:
    x = torch.arange(4.0, requires_grad=True)
    with Log():
        y = x * 1
        y.view(2, 2)[0].mul_(3)
        y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 1.0, 1.0]


def test_a_subclass_is_asked_when_the_mode_declines_or_runs_the_op() -> None:
    order: list[str] = []

    class Wrapped(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            order.append("class")
            return answer

    class Mode(TorchDispatchMode):
        def __init__(self, declines: bool) -> None:
            self.declines = declines

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            order.append("mode" + "".join(kind.__name__ for kind in types))
            return NotImplemented if self.declines else func(*args, **(kwargs or {}))

    answer = torch.zeros(1)
    x = torch.Tensor._make_wrapper_subclass(Wrapped, (1,))
    for declines in (False, True):
        with Mode(declines):
            torch.neg(x)
        assert order == ["modeWrapped", "class"]
        order.clear()


def test_an_op_that_everybody_declines_is_an_error_that_names_them() -> None:
    class Declining(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented

        def __repr__(self) -> str:
            return "the declining one"

    with (
        Declining(),
        pytest.raises(
            TypeError, match=r"(?s)failed for 'torch._ops.aten.ones.default'.*the declining one"
        ),
    ):
        torch.ones(2)
    assert torch.ones(1).tolist() == [1.0]


def test_an_error_in_an_answer_is_that_error_and_the_stack_is_as_before() -> None:
    class Broken(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise KeyError("mine")

    x = torch.ones(2)
    with Log() as outer:
        with Broken() as broken:
            with pytest.raises(KeyError, match="mine"):
                x.add_(1)
            assert modes._get_current_dispatch_mode() is broken
        assert modes._get_current_dispatch_mode_stack() == [outer]
    assert x.tolist() == [1.0, 1.0]
    assert x._version == 0
    assert modes._get_current_dispatch_mode() is None


def test_a_class_method_is_no_answer() -> None:
    class Wrong(TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(  # type: ignore[override]
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    with Wrong(), pytest.raises(RuntimeError, match="classmethod is not supported"):
        torch.ones(1)


def test_placeholders_that_are_no_results_are_refused() -> None:
    class Odd(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "a string"

    with Odd(), pytest.raises(RuntimeError, match="Unable to cast str to Tensor"):
        torch.ones(1)


def test_modes_can_be_taken_away_for_a_while() -> None:
    with Log() as outer, Log() as inner:
        with modes._pop_mode_temporarily() as popped:
            assert popped is inner
            torch.ones(1)
        with modes._disable_current_modes() as taken:
            assert taken == [inner, outer]
            assert not modes.is_in_torch_dispatch_mode()
            torch.zeros(1)
        with torch._C._DisableTorchDispatch():
            torch.zeros(1)
        assert modes.is_in_torch_dispatch_mode()
    assert outer.names == ["ones.default"]
    assert inner.names == []
    with pytest.raises(RuntimeError, match="empty mode stack"):
        modes._pop_mode()
    with pytest.raises(IndexError):
        torch._C._get_dispatch_stack_at(0)


def test_other_threads_do_not_see_the_mode() -> None:
    lengths = []
    with Log() as log:
        thread = threading.Thread(
            target=lambda: lengths.append(
                (torch._C._len_torch_dispatch_stack(), torch.ones(3).sum().item())
            )
        )
        thread.start()
        thread.join()
    assert lengths == [(0, 3.0)]
    assert log.names == []


def test_backward_inside_of_backward_sees_the_mode_however_deep() -> None:
    # Past sixty of them another thread goes on.
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
            return grad.tan(), None

    x = torch.ones(1, requires_grad=True)
    y = Nested.apply(x, depth)
    names = seen(lambda: y.backward())
    assert names.count("tan.default") == depth + 1


def test_optimizer_steps_are_one_op() -> None:
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.ones(2)
    step = torch.optim.SGD([x], lr=0.5).step
    assert "_fused_sgd_.default" in [name.removesuffix("tensor_lr") for name in seen(step)]
    assert x.tolist() == [0.5, 0.5]


def test_keyed_modes_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="tracing"):
        TorchDispatchMode(_dispatch_key=1)


def test_subclasses_that_can_be_taken_apart_are_told_and_rebuilt() -> None:
    class Pair(torch.Tensor):
        a: torch.Tensor

        @staticmethod
        def __new__(cls, a: torch.Tensor) -> Pair:
            made = torch.Tensor._make_wrapper_subclass(cls, a.shape, strides=a.stride())
            made.a = a
            return made

        def __tensor_flatten__(self) -> tuple[list[str], None]:
            return ["a"], None

        @staticmethod
        def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Pair:
            return Pair(inner["a"])

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            inner = [arg.a if isinstance(arg, Pair) else arg for arg in args]
            out = func(*inner, **(kwargs or {}))
            wrapped = Pair(out)
            return modes.return_and_correct_aliasing(func, args, kwargs, wrapped)

    pair = Pair(torch.ones(2))
    assert modes.is_traceable_wrapper_subclass(pair)
    assert not modes.is_traceable_wrapper_subclass(torch.ones(2))
    twice = modes.transform_subclass(pair, lambda name, inner: inner * 2)
    assert twice.a.tolist() == [2.0, 2.0]
    with pytest.raises(AssertionError, match="shape"):
        modes.transform_subclass(pair, lambda name, inner: inner[:1])
    assert pair.add_(1) is pair
    assert pair.a.tolist() == [2.0, 2.0]


def test_an_answer_may_ask_which_node_is_running() -> None:
    class Nodes(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            node = torch._C._current_autograd_node()
            seen.append((func._opname, node and node.name()))
            return func(*args, **(kwargs or {}))

    seen: list[tuple[str, str | None]] = []
    x = torch.ones(2, requires_grad=True)
    with Nodes():
        x.mul(2).div(3).sum().backward()
    assert seen == [
        ("mul", None),
        ("div", None),
        ("sum", None),
        ("ones_like", None),
        ("expand", "SumBackward0"),
        ("div", "DivBackward0"),
        ("mul", "MulBackward0"),
    ]


def test_reading_an_element_is_an_op_that_modes_and_classes_answer() -> None:
    seen: list[str] = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.tensor([3.0], requires_grad=True)
    with Log():
        assert x.item() == 3.0
        assert float(x) == 3.0
        assert bool(x)
        assert int(x) == 3
        assert torch.is_nonzero(x)
    assert seen == ["aten._local_scalar_dense.default"] * 5
    two = torch.ones(2)
    with Log(), pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted"):
        two.item()
    assert len(seen) == 5

    class Wrapper(torch.Tensor):
        inner: Any

        @staticmethod
        def __new__(cls, inner: Any) -> Any:
            made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*[getattr(arg, "inner", arg) for arg in args], **(kwargs or {}))
            return cls(result) if isinstance(result, torch.Tensor) else result

    wrapped = Wrapper(torch.tensor(5.0))
    assert (wrapped.item(), float(wrapped), int(wrapped), bool(wrapped)) == (5.0, 5.0, 5, True)
    assert bool(wrapped == 5)
    assert Wrapper(torch.tensor([1, 2, 3])).max().item() == 3


def test_what_adds_to_a_gradient_may_ask_the_node_that_adds() -> None:
    x = torch.ones(3, requires_grad=True)
    y, other = x * 2, (x * 3).sum()
    asked: list[Any] = []

    class Ask(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            node = torch._C._current_autograd_node()
            if node is not None and node.name() == "torch::autograd::AccumulateGrad":
                node.metadata["seen"] = True
                asked.append(func)
                if len(asked) == 1:
                    # A backward that adds to the same leaf in the middle of the addition.
                    other.backward()
            return func(*args, **(kwargs or {}))

    x.grad = torch.ones(3)
    with Ask():
        y.sum().backward()
    assert asked
    assert x.grad is not None
    assert x.grad.tolist() == [6.0, 6.0, 6.0]
