"""``torch.overrides``: questions about ``__torch_function__``, and functions of programs."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest

import pullback as torch
from pullback import overrides
from pullback.nn import functional


class Like:
    """Answers calls without being a tensor."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func, types, args, kwargs


def ours(a: Any, b: Any = None) -> Any:
    if overrides.has_torch_function((a, b)):
        return overrides.handle_torch_function(ours, (a, b), a, b=b)
    return a


def test_who_answers_is_told_for_one_several_and_a_sequence() -> None:
    x, like, parameter = torch.ones(1), Like(), torch.nn.Parameter(torch.ones(1))
    assert not overrides.has_torch_function((x, parameter, 1, None, "text"))
    assert overrides.has_torch_function([x, like])
    assert overrides.has_torch_function_unary(like)
    assert not overrides.has_torch_function_unary(x)
    assert overrides.has_torch_function_variadic(x, like)
    assert not overrides.has_torch_function_variadic(x, parameter)
    with pytest.raises(TypeError, match="expected a sequence"):
        overrides.has_torch_function(object())  # type: ignore[arg-type]
    with overrides.BaseTorchFunctionMode():
        assert overrides.has_torch_function(())
        assert overrides.has_torch_function_unary(1)


def test_functions_of_programs_are_answered_with_what_they_were_given() -> None:
    like = Like()
    assert ours(like, 2) == (ours, (Like,), (like,), {"b": 2})
    assert ours(3) == 3


def test_nobody_who_answers_is_an_error_with_the_function_and_the_types() -> None:
    class Declining:
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented

    with pytest.raises(TypeError, match=r"(?s)test_overrides.ours.*object of.*Declining"):
        ours(Declining())


def test_a_decorator_makes_functions_ask() -> None:
    @overrides.wrap_torch_function(lambda a: (a,))
    def wrapped(a: Any) -> Any:
        return a

    like = Like()
    assert wrapped(like) == (wrapped, (Like,), (like,), {})
    assert wrapped(4) == 4


def test_functions_that_are_written_in_python_ask_as_ops_do() -> None:
    like, x = Like(), torch.ones(2)
    assert functional.relu(like) == (functional.relu, (Like,), (like,), None)
    assert functional.dropout(x, p=like)[0] is functional.dropout
    assert torch.broadcast_tensors(x, like)[0] is torch.broadcast_tensors
    assert torch.einsum("i,i->", [x, like])[0] is torch.einsum
    with pytest.raises(TypeError, match="must be Tensor"):
        functional.relu(object())


def test_a_plain_method_is_warned_of() -> None:
    class Plain:
        def __torch_function__(self, *args: Any) -> Any:
            return 1

    with pytest.warns(UserWarning, match="as a plain method is deprecated"):
        assert torch.abs(Plain()) == 1
    with pytest.warns(DeprecationWarning, match="as a plain method is deprecated"):
        assert functional.relu(Plain()) == 1


def test_a_function_that_asks_is_otherwise_as_it_was_written() -> None:
    relu = functional.relu
    assert relu.__name__ == "relu"
    assert relu.__doc__
    assert list(inspect.signature(relu).parameters) == ["input", "inplace"]
    assert pickle.loads(pickle.dumps(relu)) is relu
    assert copy.deepcopy(relu) is relu
    assert repr(relu).startswith("<function relu at 0x")
    assert relu(input=torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    with pytest.raises(TypeError, match="unexpected keyword"):
        relu(torch.ones(1), wrong=1)
    method = torch.ones(1, requires_grad=True).backward
    assert method.__name__ == "backward"
    method()
    with pytest.raises(AttributeError):
        _ = relu.no_such_name
    with pytest.raises(TypeError, match="a function is needed"):
        torch._C._overridable(3)  # type: ignore[arg-type]


def test_a_subclass_that_only_reflects_answers_for_the_right_operand() -> None:
    class Left(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented

    class Right(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "reflected" if func is torch.Tensor.__rpow__ else NotImplemented

    left, right = Left(), Right()
    assert left**right == "reflected"
    with pytest.raises(TypeError):
        left - right


def test_what_can_be_answered_is_sorted_and_named() -> None:
    by_space = overrides.get_overridable_functions()
    assert torch.add in by_space[torch]
    assert functional.relu in by_space[functional]
    assert torch.Tensor.add in by_space[torch.Tensor]
    assert [torch.Tensor.shape.__get__] in by_space.values()
    ignored = overrides.get_ignored_functions()
    assert {torch.zeros, torch.manual_seed, torch.Tensor.as_subclass} <= ignored
    assert not ignored & {f for functions in by_space.values() for f in functions}
    assert overrides.resolve_name(torch.add) == "torch.add"
    assert overrides.resolve_name(torch.Tensor.add) == "torch.Tensor.add"
    assert overrides.resolve_name(torch.Tensor.shape.__get__) == "torch.Tensor.shape.__get__"
    assert overrides.resolve_name(torch.ops.aten.add.Tensor) == "aten.add.Tensor"
    assert overrides.resolve_name(print) is None
    assert overrides.is_tensor_method_or_property(torch.Tensor.add)
    assert overrides.is_tensor_method_or_property(torch.Tensor.shape.__get__)
    assert not overrides.is_tensor_method_or_property(torch.add)
    assert overrides.is_tensor_like(torch.ones(1))
    assert overrides.is_tensor_like(Like())
    assert not overrides.is_tensor_like([1.0])


def test_every_function_that_is_said_to_ask_does() -> None:
    # Those that take something else first, or are asked by their subclasses' own attribute alone.
    other = {torch.einsum, torch.Tensor.dtype.__get__}
    silent = []
    for space, functions in overrides.get_overridable_functions().items():
        for function in functions:
            stand_in = overrides.get_testing_overrides()[function]
            parameters = inspect.signature(stand_in).parameters.values()
            if function in other or any(p.kind is p.KEYWORD_ONLY for p in parameters):
                continue
            needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
            is_method = space is torch.Tensor or not hasattr(space, "__name__")
            given: list[Any] = [Asked() for _ in needed] or [Asked()]
            if is_method or function.__name__ == "__get__":
                given[0] = Answering(1)
            try:
                answer = function(*given)
            except (TypeError, ValueError, RuntimeError):
                answer = None
            if answer != -1 and not SEEN:
                silent.append(overrides.resolve_name(function))
            SEEN.clear()
    assert silent == []


SEEN: list[Any] = []


class Asked:
    """Notes that it was asked."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(func)
        return -1


class Answering(torch.Tensor):
    """The same as a tensor."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(func)
        return -1


def test_stand_ins_have_the_parameters_of_what_they_stand_for() -> None:
    stand_ins = overrides.get_testing_overrides()
    assert list(inspect.signature(stand_ins[torch.cat]).parameters)[:2] == ["tensors", "dim"]
    assert list(inspect.signature(stand_ins[functional.relu]).parameters) == ["input", "inplace"]
    assert stand_ins[torch.cat]([torch.ones(1)]) == -1


def test_one_level_of_asking_can_be_skipped() -> None:
    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            names.append(func.__name__)
            return overrides.redispatch_function(func, types, args, kwargs)

    names: list[str] = []
    x = torch.ones(2).as_subclass(Logged)
    assert type(functional.relu(x)) is torch.Tensor
    assert names == ["relu", "relu"]
    assert type(torch.neg(x)) is torch.Tensor
    assert names[2:] == ["neg"]


def test_grad_is_answered_with_tuples() -> None:
    like = Like()
    func, types, args, kwargs = torch.autograd.grad(like, like)
    assert func is torch.autograd.grad
    assert (types, args) == ((Like,), ((like,), (like,)))
    assert kwargs["allow_unused"] is None


def test_recording_can_be_turned_on_inside_of_the_answer_to_an_op() -> None:
    from pullback.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            x = torch.ones(1, requires_grad=True)
            with overrides.enable_reentrant_dispatch():
                seen.append((x * 2).requires_grad)
            seen.append((x * 2).requires_grad)
            return func(*args, **(kwargs or {}))

    with Mode():
        torch.ones(1)
    assert seen == [True, False]


def test_a_tensor_of_a_tensor_is_a_view_of_it_with_its_history() -> None:
    class Sub(torch.Tensor):
        pass

    x = torch.ones(2, requires_grad=True)
    y = Sub(x)
    assert y._is_view()
    assert y._base is x
    torch.Tensor(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert torch.Tensor(torch.ones(1, dtype=torch.int64)).dtype is torch.int64


def test_the_text_of_a_tensor_may_show_something_else_than_its_elements() -> None:
    class Sub(torch.Tensor):
        def __repr__(self, *, tensor_contents: Any = None) -> str:
            return super().__repr__(tensor_contents="[inside]")

    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert repr(x.as_subclass(Sub)) == (
        "Sub([inside], dtype=torch.float64, grad_fn=<AliasBackward0>)"
    )
    assert x.__repr__(tensor_contents=3) == "tensor(3, dtype=torch.float64, requires_grad=True)"
    assert repr(x) == "tensor([1., 1.], dtype=torch.float64, requires_grad=True)"


def test_a_mode_does_not_see_results_become_of_a_subclass() -> None:
    from pullback.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    class Sub(torch.Tensor):
        pass

    seen: list[str] = []
    x = torch.ones(2).as_subclass(Sub)
    with Mode():
        y = x.abs()
    assert type(y) is Sub
    assert seen == ["aten.abs.default"]
