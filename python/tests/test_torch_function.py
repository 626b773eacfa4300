"""``__torch_function__``: results of subclasses, and types that answer calls themselves."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback import _C, nn


class Plain(torch.Tensor):
    """Uses what tensors do by default."""


class Child(Plain):
    """A subclass of a subclass."""


class Stranger(torch.Tensor):
    """Unrelated to the others."""


class Logged(torch.Tensor):
    """Notes what it is asked, then does what tensors do by default."""

    log: list[tuple[Any, ...]] = []  # noqa: RUF012

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.log.append((func, types, args, kwargs))
        return super().__torch_function__(func, types, args, kwargs)


class Refusing(torch.Tensor):
    """Knows no answer."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


class Duck:
    """No tensor, but answers."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return cls, func, types, args, kwargs


class Wordy(torch.Tensor):
    """Answers with a word."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return "word"


def of(cls: type, *shape: int) -> Any:
    return torch.ones(*(shape or (2, 2))).as_subclass(cls)


@pytest.fixture
def log() -> Iterator[list[tuple[Any, ...]]]:
    Logged.log.clear()
    yield Logged.log
    Logged.log.clear()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + 1,
        lambda x: 1 - x,
        lambda x: torch.ones(2, 2) @ x,
        lambda x: -x,
        lambda x: x < 2,
        lambda x: x.sum(0),
        lambda x: torch.sum(x),
        lambda x: torch.cat([torch.ones(1, 2), x]),
        lambda x: torch.add(torch.ones(2, 2), other=x),
        lambda x: torch.where(x > 0, x, x),
        lambda x: x[0],
        lambda x: x[:, None],
        lambda x: x.T,
        lambda x: x.real,
        lambda x: x.data,
        lambda x: x.double(),
        lambda x: x.to(torch.float64),
        lambda x: x.detach(),
        lambda x: x.new_zeros(3),
        lambda x: x.add_(1),
        lambda x: torch.zeros_like(x),
        lambda x: x.nonzero(),
        lambda x: F.relu(x),
        lambda x: F.linear(x, torch.ones(3, 2)),
        lambda x: nn.Linear(2, 3)(x),
        lambda x: torch.add(x, 1, out=torch.zeros(2, 2)),
        lambda x: copy.deepcopy(x),
        lambda x: pickle.loads(pickle.dumps(x)),
        lambda x: next(iter(x)),
    ],
)
def test_results_are_of_the_subclass(call: Callable[[Any], Any]) -> None:
    assert type(call(of(Plain))) is Plain


def test_tensors_inside_of_results_are_of_the_subclass() -> None:
    x = of(Plain)
    for result in (x.unbind(), x.split(1), torch.broadcast_tensors(x, torch.ones(2)), x.max(0)):
        assert {type(part) for part in result} == {Plain}
    assert type(x.max(0)) is torch.return_types.max
    assert type(x.shape) is torch.Size
    assert x.sum().item() == 4
    assert x.tolist() == [[1, 1], [1, 1]]


def test_the_most_special_class_answers() -> None:
    assert type(of(Plain) + of(Child)) is Child
    assert type(of(Child) + of(Plain)) is Child
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+"):
        of(Plain) + of(Stranger)
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\.add'") as caught:
        torch.add(of(Plain), of(Stranger))
    assert "Plain" in str(caught.value)
    assert "Stranger" in str(caught.value)


def test_parameters_do_not_spread() -> None:
    p = nn.Parameter(torch.ones(2, 2))
    assert {type(r) for r in (p + 1, p[0], p.detach(), p.T, p.data, F.relu(p))} == {torch.Tensor}
    assert type(p + of(Plain)) is Plain
    kept = nn.Parameter(of(Plain))
    assert type(kept) is Plain
    assert isinstance(kept, nn.Parameter)
    assert type(kept * 2) is Plain


def test_subclasses_have_gradients() -> None:
    leaf = torch.ones(2, requires_grad=True)
    x = leaf.as_subclass(Plain)
    y = (x * 3).sum()
    assert type(y) is Plain
    y.backward()
    assert type(leaf.grad) is torch.Tensor
    assert leaf.grad.tolist() == [3, 3]
    own = of(Plain, 2).requires_grad_()
    (own * 2).sum().backward()
    assert own.grad.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("call", "func", "args"),
    [
        (lambda x: x.add(1), lambda: torch.Tensor.add, 2),
        (lambda x: torch.add(x, 1), lambda: torch.add, 2),
        (lambda x: x + 1, lambda: torch.Tensor.add, 2),
        (lambda x: 1 + x, lambda: torch.Tensor.add, 2),
        (lambda x: 1 - x, lambda: torch.Tensor.__rsub__, 2),
        (lambda x: x[0], lambda: torch.Tensor.__getitem__, 2),
        (lambda x: x.__setitem__(0, 1), lambda: torch.Tensor.__setitem__, 3),
        (lambda x: x.shape, lambda: torch.Tensor.shape.__get__, 1),
        (lambda x: x.dtype, lambda: torch.Tensor.dtype.__get__, 1),
        (lambda x: x.mT, lambda: torch.Tensor.mT.__get__, 1),
        (lambda x: setattr(x, "grad", None), lambda: torch.Tensor.grad.__set__, 2),
        (lambda x: x.numel(), lambda: torch.Tensor.numel, 1),
        (lambda x: torch.stack([x, x]), lambda: torch.stack, 1),
    ],
)
def test_what_answerers_see(
    log: list[tuple[Any, ...]],
    call: Callable[[Any], Any],
    func: Callable[[], Any],
    args: int,
) -> None:
    x = of(Logged)
    log.clear()
    call(x)
    seen, types, given, named = log[0]
    assert seen == func()
    assert types == (Logged,)
    assert len(given) == args
    assert named is None


def test_keywords_come_by_name(log: list[tuple[Any, ...]]) -> None:
    x = of(Logged)
    torch.sum(input=x, dim=0)
    ((func, _, args, kwargs),) = log
    assert func is torch.sum
    assert args == ()
    assert kwargs.keys() == {"input", "dim"}
    assert kwargs["input"] is x


def test_who_knows_no_answer_leaves_it_to_the_next() -> None:
    n = of(Refusing)
    assert type(torch.add(of(Wordy), n)) is str
    for name, call in (
        ("torch.add", lambda: torch.add(n, 1)),
        ("torch.Tensor.add", lambda: n.add(1)),
        ("torch.Tensor.shape.__get__", lambda: n.shape),
        ("torch.Tensor.__getitem__", lambda: n[0]),
        ("torch.cat", lambda: torch.cat([n])),
    ):
        with pytest.raises(TypeError, match=f"Multiple dispatch failed for '{name}'"):
            call()
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+"):
        n + 1


def test_other_types_may_answer() -> None:
    d, x = Duck(), torch.ones(2)
    for call, func in (
        (lambda: torch.add(d, 1), torch.add),
        (lambda: torch.cat([x, d]), torch.cat),
        (lambda: torch.add(x, 1, alpha=d), torch.add),
        (lambda: x.add(d), torch.Tensor.add),
        (lambda: x + d, torch.Tensor.add),
        (lambda: d + x, torch.Tensor.add),
        (lambda: x[d], torch.Tensor.__getitem__),
    ):
        cls, seen, types, _, _ = call()
        assert cls is Duck
        assert seen == func
        assert types == (Duck,)
    assert (d + x)[3][0] is x


def test_subclasses_are_tensors_where_that_is_asked_for() -> None:
    x = of(Plain)
    assert _C._is_torch_function_enabled()
    with _C.DisableTorchFunctionSubclass():
        assert not _C._is_torch_function_enabled()
        with _C.DisableTorchFunctionSubclass():
            assert type(x + 1) is torch.Tensor
        assert type(x[0]) is torch.Tensor
        assert type(torch.add(x, 1)) is torch.Tensor
    assert type(x + 1) is Plain

    class Silent(torch.Tensor):
        __torch_function__ = _C._disabled_torch_function_impl

    assert type(of(Silent) + 1) is torch.Tensor


def test_an_error_in_an_answer_is_that_error() -> None:
    class Failing(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise LookupError("no")

    x = of(Failing)
    for call in (lambda: x + 1, lambda: torch.add(x, 1), lambda: x[0], lambda: x.dtype):
        with pytest.raises(LookupError, match="no"):
            call()
    with _C.DisableTorchFunctionSubclass():
        assert x.sum().item() == 4


def test_dtype_is_shared_by_classes_that_leave_calls_as_they_are() -> None:
    class Plain(torch.Tensor):
        pass

    class Silent(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    class Answering(Plain):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "answered"

    for kind in (Plain, Silent):
        for name in ("dtype", "layout", "device", "requires_grad", "size", "stride"):
            assert getattr(kind, name) is getattr(torch.Tensor, name)
        assert torch.zeros(2, dtype=torch.int8).as_subclass(kind).dtype is torch.int8
    x = torch.zeros(2).as_subclass(Answering)
    assert (x.dtype, x.shape) == ("answered", "answered")
    y = torch.zeros(2).as_subclass(Plain)
    assert y.dtype is torch.float32
    # A class may get its overrides later.
    Plain.__torch_function__ = classmethod(lambda *args: "late")  # type: ignore[assignment]
    assert (y.dtype, y.shape) == ("late", "late")
