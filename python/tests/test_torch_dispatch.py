"""``__torch_dispatch__``: classes that answer ops below autograd, and the ops as objects."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any, ClassVar

import pytest

import pullback as torch

aten = torch.ops.aten


class Logged(torch.Tensor):
    """Wraps a tensor, and notes which ops are answered."""

    elem: torch.Tensor
    log: ClassVar[list[tuple[str, int, list[str]]]] = []
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, elem: torch.Tensor, requires_grad: bool = False) -> Logged:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            layout=elem.layout,
            device=elem.device,
            requires_grad=requires_grad,
        )
        made.elem = elem.detach()
        return made

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"Logged({self.elem})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.log.append((str(func), len(args), sorted(kwargs or {})))
        result = func(*unwrapped(args), **{k: unwrapped(v) for k, v in (kwargs or {}).items()})
        if func._opname.endswith("_") or "out" in (kwargs or {}):
            return args[0]
        if isinstance(result, (tuple, list)):
            return type(result)(cls(part) for part in result) if result else result
        return cls(result) if isinstance(result, torch.Tensor) else result


def unwrapped(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(unwrapped(item) for item in value)
    return value.elem if isinstance(value, Logged) else value


@pytest.fixture(autouse=True)
def empty_log() -> None:
    Logged.log.clear()


def names() -> list[str]:
    return [entry[0] for entry in Logged.log]


def test_an_op_is_answered_with_what_was_given_and_without_defaults() -> None:
    x = Logged(torch.tensor([1.0, 2.0]))
    y = torch.add(x, x, alpha=2)
    assert isinstance(y, Logged)
    assert y.elem.tolist() == [3.0, 6.0]
    (x * 3).sum()
    assert Logged.log == [
        ("aten.add.Tensor", 2, ["alpha"]),
        ("aten.mul.Tensor", 2, []),
        ("aten.sum.default", 1, []),
    ]


def test_history_is_kept_around_the_answer_and_gradients_are_answered_too() -> None:
    x = Logged(torch.tensor([1.0, 2.0]), requires_grad=True)
    y = (x * x).sum()
    assert y.requires_grad
    assert y.grad_fn.name() == "SumBackward0"
    y.backward()
    assert isinstance(x.grad, Logged)
    assert x.grad.elem.tolist() == [2.0, 4.0]
    assert names()[:2] == ["aten.mul.Tensor", "aten.sum.default"]
    assert "aten.expand.default" in names()


def test_nothing_is_recorded_inside_of_an_answer_although_recording_is_on() -> None:
    seen = []

    class Inside(Logged):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            weight = torch.ones(2, requires_grad=True)
            seen.append((torch.is_grad_enabled(), (weight * 2).requires_grad))
            return super().__torch_dispatch__(func, types, args, kwargs)

    x = Inside(torch.ones(2), requires_grad=True)
    assert (x.exp()).requires_grad
    assert set(seen) == {(True, False)}


def test_composites_are_taken_apart_first() -> None:
    x = Logged(torch.ones(2, 3))
    torch.nn.functional.linear(x, Logged(torch.ones(4, 3)))
    assert "aten.linear.default" not in names()
    assert names()


def test_writing_ops_are_answered_in_their_own_form() -> None:
    x = Logged(torch.ones(2))
    version = x._version
    assert x.add_(2) is x
    assert x.elem.tolist() == [3.0, 3.0]
    assert x._version == version + 1
    out = Logged(torch.zeros(2))
    assert torch.mul(x, x, out=out) is out
    assert out.elem.tolist() == [9.0, 9.0]
    assert names() == ["aten.add_.Tensor", "aten.mul.out"]


def test_a_write_keeps_its_history() -> None:
    x = Logged(torch.tensor([2.0]), requires_grad=True)
    y = x * 1
    y.mul_(x)
    y.sum().backward()
    assert x.grad.elem.tolist() == [4.0]


def test_views_of_wrappers_know_their_base() -> None:
    x = Logged(torch.arange(4.0), requires_grad=True)
    base = x * 1
    view = base.view(2, 2)
    assert view._base is base
    assert view.grad_fn.name() == "ViewBackward0"
    view.sum().backward()
    assert x.grad.elem.tolist() == [1.0] * 4


def test_results_of_several_tensors_and_numbers_are_taken_over() -> None:
    x = Logged(torch.tensor([[3.0, 1.0], [0.0, 5.0]]))
    values, places = x.max(1)
    assert values.elem.tolist() == [3.0, 5.0]
    assert places.elem.tolist() == [0, 1]
    assert [part.elem.tolist() for part in x.unbind()] == [[3.0, 1.0], [0.0, 5.0]]


def test_a_subclass_is_asked_before_its_base_and_not_implemented_passes_on() -> None:
    class Derived(Logged):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            order.append([kind.__name__ for kind in types])
            return NotImplemented

    order: list[list[str]] = []
    result = Logged(torch.ones(1)) + Derived(torch.ones(1))
    assert order == [["Derived", "Logged"]]
    assert type(result) is Logged
    with pytest.raises(
        TypeError, match=r"Multiple dispatch failed for 'torch\._ops\.aten\.add\.Tensor'"
    ):
        Derived(torch.ones(1)) + 1


def test_an_answer_that_is_no_tensor_is_refused_and_nothing_breaks() -> None:
    class Bad(Logged):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is aten.exp.default:
                return "text"
            if func is aten.max.dim:
                return [args[0]]
            if func is aten.sin.default:
                raise KeyError("of my own")
            return args[0]

    x = Bad(torch.ones(2), requires_grad=True)
    with pytest.raises(RuntimeError, match="Unable to cast str to Tensor"):
        x.exp()
    with pytest.raises(RuntimeError, match=r"gave 1 results of max\.dim, which has 2"):
        x.max(0)
    with pytest.raises(KeyError, match="of my own"):
        x.sin()
    with pytest.raises(RuntimeError, match="one of its arguments: return a new one"):
        x.cos()
    assert Bad(torch.ones(2)).cos().elem.tolist() == [1.0, 1.0]


def test_elements_cannot_be_read_past_the_class() -> None:
    x = Logged(torch.tensor([7.0]))
    for read in (x.tolist, x.numpy, x.__dlpack__):
        with pytest.raises(NotImplementedError, match="is not supported for tensor subclasses"):
            read()


def test_detached_tensors_stay_of_the_class() -> None:
    x = Logged(torch.tensor([7.0]), requires_grad=True)
    for other in (x.detach(), x.data):
        assert isinstance(other, Logged)
        assert other.elem.tolist() == [7.0]
        assert not other.requires_grad
    y = x.exp()
    saved = y.grad_fn._saved_result
    assert isinstance(saved, Logged)
    assert torch.equal(saved.elem, y.elem)


def test_the_class_is_not_asked_where_that_is_turned_off() -> None:
    x = Logged(torch.tensor([7.0]))
    with torch._C._DisableTorchDispatch():
        x + 1
    assert names() == []
    assert torch.Tensor.__torch_dispatch__ is torch._C._disabled_torch_dispatch_impl


def test_wrappers_of_classes_that_answer_nothing_are_refused() -> None:
    class Plain(torch.Tensor):
        pass

    with pytest.raises(TypeError, match="must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(Plain, (2,))
    with pytest.raises(RuntimeError, match="mismatch in length of strides and shape"):
        torch.Tensor._make_wrapper_subclass(Logged, (2, 2), strides=(1,))
    with pytest.raises(RuntimeError, match="negative"):
        torch.Tensor._make_wrapper_subclass(Logged, (2,), strides=(-1,))
    with pytest.raises(RuntimeError, match="overflow"):
        torch.Tensor._make_wrapper_subclass(Logged, (2,), strides=(2**62,))


def test_a_wrapper_does_not_become_of_another_class() -> None:
    class Other(torch.Tensor):
        pass

    x = Logged(torch.ones(2))
    for make in (
        lambda: x.as_subclass(Other),
        lambda: torch.Tensor._make_subclass(Other, x),
    ):
        with pytest.raises(
            RuntimeError,
            match=r"subclass Other but.* already associated to a python object of type Logged",
        ):
            make()
    assert (x + 1).elem.tolist() == [2.0, 2.0]


def test_wrappers_die_with_their_last_reference() -> None:
    gc.disable()
    try:
        x = Logged(torch.ones(2), requires_grad=True)
        y = (x * 2).exp()
        refs = [weakref.ref(x), weakref.ref(y)]
        y.sum().backward()
        del x, y
        assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()


def test_ops_are_objects_with_names_that_can_be_called_and_compared() -> None:
    op = aten.mul.Tensor
    assert op is torch.ops.aten.mul.Tensor
    assert op(torch.tensor([2.0]), 3).tolist() == [6.0]
    assert (str(op), op.name(), op.__name__) == (
        "aten.mul.Tensor",
        "aten::mul.Tensor",
        "mul.Tensor",
    )
    assert op.overloadpacket is aten.mul
    assert aten.sum.default.name() == "aten::sum"
    assert aten.mul(torch.tensor([2.0]), 4).tolist() == [8.0]
    assert "Tensor" in aten.mul.overloads()
    assert copy.deepcopy(op) is op
    assert pickle.loads(pickle.dumps(op)) is op
    x = torch.ones(2)
    assert aten.add_.Tensor(x, 1) is x
    with pytest.raises(AttributeError, match="no overload name 'nonsense'"):
        _ = aten.mul.nonsense
    with pytest.raises(AttributeError, match="nonsense"):
        _ = aten.nonsense
    with pytest.raises(TypeError, match=r"no overload of aten\.mul takes these arguments"):
        aten.mul("a", "b")


def test_a_class_that_answers_ops_answers_no_calls_unless_it_says_how() -> None:
    class Ops(torch.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return torch.zeros(1)

    class Both(Ops):
        __torch_function__ = torch.Tensor.__torch_function__

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return torch.zeros(1)

    class Neither(torch.Tensor):
        pass

    silent = torch._C._disabled_torch_function_impl
    assert Ops.__torch_function__ is silent
    assert Both.__torch_function__ is not silent
    assert Neither.__torch_function__ is not silent
    assert torch.Tensor.__torch_function__ is not silent
    assert type(torch.Tensor._make_wrapper_subclass(Ops, (1,)).exp()) is torch.Tensor


def answering(answers: dict[str, Any], **made: Any) -> tuple[Any, list[str]]:
    """A wrapper whose class answers questions, and the questions that it was asked."""
    asked: list[str] = []

    class Answering(torch.Tensor):
        @staticmethod
        def __new__(cls) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, (2,), dtype=torch.float32, **made)

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            asked.append(str(func))
            return answers.get(func.__name__.partition(".")[0], NotImplemented)

    return Answering(), asked


SEVEN: dict[str, Any] = {
    "sym_size": [7, 3],
    "sym_stride": (3, 1),
    "sym_numel": 21,
    "numel": 21,
    "dim": 2,
    "is_contiguous": False,
    "sym_storage_offset": 5,
}


@pytest.mark.parametrize(
    ("ask", "answer", "questions"),
    [
        (lambda x: x.shape, torch.Size([7, 3]), ["aten.sym_size.default"]),
        (lambda x: x.size(), torch.Size([7, 3]), ["aten.sym_size.default"]),
        (lambda x: x.size(-1), 3, ["aten.dim.default", "aten.sym_size.default"]),
        (lambda x: x.stride(), (3, 1), ["aten.sym_stride.default"]),
        (lambda x: x.stride(0), 3, ["aten.sym_stride.default"]),
        (lambda x: x.numel(), 21, ["aten.sym_numel.default"]),
        (lambda x: x.nelement(), 21, ["aten.sym_numel.default"]),
        (lambda x: x.nbytes, 84, ["aten.numel.default"]),
        (lambda x: x.dim(), 2, ["aten.dim.default"]),
        (lambda x: x.ndim, 2, ["aten.dim.default"]),
        (lambda x: x.ndimension(), 2, ["aten.dim.default"]),
        (lambda x: x.is_contiguous(), False, ["aten.is_contiguous.default"]),
        (
            lambda x: x.is_contiguous(memory_format=torch.channels_last),
            False,
            ["aten.is_contiguous.memory_format"],
        ),
        (len, 7, ["aten.dim.default", "aten.sym_size.default"]),
        (lambda x: x.storage_offset(), 5, ["aten.sym_storage_offset.default"]),
    ],
)
def test_a_class_is_asked_for_sizes_where_the_policy_says_so(
    ask: Any, answer: Any, questions: list[str]
) -> None:
    x, asked = answering(SEVEN, dispatch_sizes_strides_policy="sizes")
    assert ask(x) == answer
    assert type(ask(x)) is type(answer)
    assert asked == 2 * questions
    x, asked = answering(SEVEN, dispatch_sizes_strides_policy="strides")
    is_of_strides = all("stride" in q or "contiguous" in q for q in questions)
    assert (ask(x) == answer) is is_of_strides
    assert asked == (questions if is_of_strides else [])
    x, asked = answering(SEVEN)
    ask(x)
    assert asked == []


def test_a_class_that_answers_none_leaves_its_geometry_as_it_is() -> None:
    names = ("sym_size", "sym_stride", "sym_numel", "is_contiguous", "sym_storage_offset")
    x, asked = answering(dict.fromkeys(names), dispatch_sizes_strides_policy="sizes")
    assert (x.shape, x.stride(), x.numel()) == ((2,), (1,), 2)
    assert (x.is_contiguous(), x.storage_offset()) == (True, 0)
    assert len(asked) == 5


def test_answers_that_mean_nothing_are_refused() -> None:
    x, _ = answering({}, dispatch_sizes_strides_policy="sizes")
    for ask in (lambda: x.shape, lambda: x.dim(), lambda: x.is_contiguous()):
        with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\.ops\.aten"):
            ask()
    x, _ = answering({"sym_size": "ab", "dim": None}, dispatch_sizes_strides_policy="sizes")
    with pytest.raises(RuntimeError, match="sym_size must be a list or a tuple"):
        _ = x.shape
    with pytest.raises(RuntimeError, match="dim returned invalid type NoneType, expected int"):
        x.dim()
    x, _ = answering({"sym_size": [2], "dim": 1}, dispatch_sizes_strides_policy="sizes")
    with pytest.raises(IndexError, match=r"range of \[-1, 0\], but got 3"):
        x.size(3)
    x, _ = answering({"dim": 0}, dispatch_sizes_strides_policy="sizes")
    with pytest.raises(TypeError, match="0-d tensor"):
        len(x)


def test_a_class_is_asked_for_its_device_and_its_layout() -> None:
    answers = {"device": torch.device("cuda:1"), "layout": torch.sparse_coo}
    x, asked = answering(answers, dispatch_device=True)
    assert (x.device, x.get_device()) == (torch.device("cuda:1"), 1)
    assert (x.is_cuda, x.is_cpu, x.is_meta) == (True, False, False)
    assert asked == 5 * ["prim.device.default"]
    assert x.layout is torch.strided
    x, asked = answering(answers, dispatch_layout=True)
    assert (x.layout, x.device.type) == (torch.sparse_coo, "cpu")
    assert asked == ["prim.layout.default"]
    x, _ = answering({}, dispatch_device=True)
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\.ops\.prim\.device'"):
        _ = x.device


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="Unknown sizes_strides_policy: bad; expected 'strides'"):
        answering({}, dispatch_sizes_strides_policy="bad")
    x, asked = answering({}, dispatch_sizes_strides_policy=None)
    assert (x.shape, asked) == ((2,), [])


def test_the_default_takes_arguments_in_a_list() -> None:
    class Listing(torch.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return super().__torch_dispatch__(func, types, list(args), kwargs)

    assert Listing([1.0, 2.0]).neg().tolist() == [-1, -2]
    with pytest.raises(TypeError):
        torch.Tensor.__torch_dispatch__(torch.ops.aten.neg.default, (), 3)
