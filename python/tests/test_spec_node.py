"""Nodes of the graph as objects: numbers, edges, metadata, calls, the standard nodes."""

from __future__ import annotations

import operator
import weakref
from collections import OrderedDict
from typing import Any

import pytest

import pullback as torch
from pullback import _C
from pullback.autograd import Function, grad
from pullback.autograd.function import once_differentiable
from pullback.autograd.graph import Node

functions: Any = _C._functions


def leaf(*values: float) -> Any:
    return torch.tensor([float(v) for v in values or (1, 2)], requires_grad=True)


class Same(Function):
    """Copies, with two arguments and one gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, other: Any = None) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad, None


def names(node: Any) -> list[str]:
    return [type(next_node).__name__ for next_node, _ in node.next_functions]


def test_sequence_numbers_count_up_and_leaves_have_the_largest() -> None:
    x = leaf()
    first = x * 2
    second = Same.apply(first)
    assert second.grad_fn._sequence_nr() == first.grad_fn._sequence_nr() + 1
    assert first.grad_fn.next_functions[0][0]._sequence_nr() == 2**64 - 1


def test_a_node_with_a_larger_number_runs_earlier() -> None:
    x, seen = leaf(), []
    first, second = x * 2, Same.apply(x)
    first.register_hook(lambda grad: seen.append("first"))
    second.register_hook(lambda grad: seen.append("second"))
    total = (first + second).sum()
    total.backward(retain_graph=True)
    first.grad_fn._set_sequence_nr(second.grad_fn._sequence_nr() + 1)
    total.backward(retain_graph=True)
    second.grad_fn._set_sequence_nr(2**63)
    assert second.grad_fn._sequence_nr() == 2**63
    total.backward()
    assert seen == ["second", "first", "first", "second", "second", "first"]


def test_a_sequence_number_is_an_integer_of_64_bits() -> None:
    y, z = leaf() * 2, Same.apply(leaf())
    for node in (y.grad_fn, z.grad_fn):
        before = node._sequence_nr()
        for number, kind in [(-1, OverflowError), (2**64, OverflowError), ("1", TypeError)]:
            with pytest.raises(kind):
                node._set_sequence_nr(number)
        with pytest.raises(TypeError):
            node._set_sequence_nr()
        assert node._sequence_nr() == before


def test_every_tensor_argument_has_a_place_among_the_edges() -> None:
    x, constant = leaf(), torch.ones(2)
    product = x + constant
    cat = torch.cat([constant, x, constant])
    custom = Same.apply(x, constant)
    assert names(product.grad_fn) == ["AccumulateGrad", "NoneType"]
    assert names(cat.grad_fn) == ["NoneType", "AccumulateGrad", "NoneType"]
    assert names(custom.grad_fn) == ["AccumulateGrad", "NoneType"]
    assert [nr for _, nr in (x.unbind()[1] * 1).grad_fn.next_functions] == [1, 0]


def test_metadata_say_what_a_gradient_must_look_like() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    (meta,) = (x * 2).grad_fn._input_metadata
    assert (tuple(meta.shape), meta.dtype, meta.device.type) == ((2, 3), torch.float32, "cpu")
    assert not meta.is_nested_tensor
    assert not meta.is_cpp_nested_tensor


@pytest.mark.parametrize("name", ["max", "sort", "topk", "kthvalue", "mode", "median", "cummax"])
def test_a_node_takes_no_gradients_of_indices(name: str) -> None:
    x, seen = torch.tensor([[3.0, 1.0, 2.0]], requires_grad=True), []
    last = {"topk": (1,), "kthvalue": (1,)}.get(name, (1,))
    values, indices = getattr(x, name)(*last)
    node = values.grad_fn
    assert len(node._input_metadata) == 1
    assert not indices.requires_grad
    node.register_prehook(lambda grads: seen.append(len(grads)))
    node.register_hook(lambda given, taken: seen.append((len(given), len(taken))))
    values.sum().backward()
    assert seen == [1, (1, 1)]


def test_a_node_can_be_called() -> None:
    x = leaf()
    node = (x * 3).grad_fn
    first, second = node(torch.ones(2))
    assert first.tolist() == [3, 3]
    assert second is None
    for arguments, message in [
        ((), "expected 1 arguments, got 0 instead"),
        ((1,), "not a Variable"),
    ]:
        with pytest.raises(TypeError, match=message):
            node(*arguments)
    assert node(None) == (None, None)
    assert x.sum().grad_fn(torch.tensor(2.0)).tolist() == [2, 2]


def test_nodes_are_known_by_their_class() -> None:
    x = leaf()
    assert isinstance((x * 2).grad_fn, Node)
    assert isinstance(Same.apply(x).grad_fn, Node)
    assert issubclass(Same._backward_cls, Node)  # type: ignore[attr-defined]
    assert not issubclass(Same, Node)
    y = x * 2
    assert y.grad_fn is y.grad_fn
    with pytest.raises(TypeError):
        weakref.ref(y.grad_fn)
    with pytest.raises(AttributeError):
        y.grad_fn.something = 1


def test_the_names_of_a_node_are_listed() -> None:
    x = leaf()
    product = x * leaf()
    listed = dir(product.grad_fn)
    for name in ("_saved_self", "_raw_saved_self", "_saved_other", "_set_sequence_nr"):
        assert name in listed
    assert "variable" not in listed
    assert "variable" in dir(product.grad_fn.next_functions[0][0])
    total = x.sum()
    assert "_saved_self_sym_sizes" in dir(total.grad_fn)
    assert "_raw_saved_self_sym_sizes" not in dir(total.grad_fn)
    assert all(hasattr(product.grad_fn, name) for name in listed)


def test_hooks_of_a_tensor_can_be_registered_by_hand() -> None:
    x, seen = leaf(), []
    y = x * 2
    z = Same.apply(y)
    for tensor in (y, z):
        tensor._backward_hooks = OrderedDict({0: lambda grad: seen.append(grad.tolist())})
        # They run once, however often this is said.
        tensor.grad_fn._register_hook_dict(tensor)
    z.sum().backward()
    assert seen == [[1, 1], [1, 1]]


def test_hooks_of_another_tensor_see_the_gradient_of_the_node() -> None:
    x, seen = leaf(), []
    y, other = x * 2, leaf()
    other.register_hook(lambda grad: seen.append(grad.tolist()))
    y.grad_fn._register_hook_dict(other)
    (y * 5).sum().backward()
    assert seen == [[5, 5]]


def test_only_tensors_with_hooks_for_an_output_of_the_node_are_registered() -> None:
    x = leaf()
    y = x * 2
    second = x.unbind()[1]
    second.register_hook(lambda grad: None)
    with pytest.raises(TypeError, match="_register_hook_dict expected a variable"):
        y.grad_fn._register_hook_dict(1)
    with pytest.raises(RuntimeError, match="_register_hook_dict expected a variable"):
        y.grad_fn._register_hook_dict(y)
    with pytest.raises(RuntimeError, match="has no output 1"):
        y.grad_fn._register_hook_dict(second)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("name", ()),
        ("_sequence_nr", ()),
        ("_set_sequence_nr", (1,)),
        ("_register_hook_dict", (None,)),
        ("register_hook", (print,)),
        ("register_prehook", (print,)),
        ("next_functions", None),
        ("_input_metadata", None),
    ],
)
def test_a_context_without_node_says_what_it_cannot_do(name: str, arguments: Any) -> None:
    kept: list[Any] = []

    class Keeps(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            kept.append(ctx)
            return x.clone()

    Keeps.apply(torch.ones(2))
    with pytest.raises(
        RuntimeError, match=f"Attribute '{name}' is invalid for this instance of _C"
    ):
        operator.attrgetter(name)(kept[0])(*arguments)


def test_a_twice_differentiated_once_differentiable_function_leads_to_an_error_node() -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, flag: bool, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, grad: Any) -> Any:
            x, y = ctx.saved_tensors
            return grad * y, None, grad * x

    x, y = leaf(), leaf(3.0, 4.0)
    start = leaf(1, 1)
    first, second = grad(Square.apply(x, True, y), (x, y), start, create_graph=True)
    assert first.grad_fn is second.grad_fn
    assert first.grad_fn.name() == "torch::autograd::Error"
    assert "grad_fn=<Error>" in repr(first)
    assert names(first.grad_fn) == ["AccumulateGrad", "NoneType", "AccumulateGrad"]
    assert first.tolist() == [3, 4]
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        first.sum().backward()


def test_nodes_that_wait_with_an_error_take_a_number_of_tensors() -> None:
    delayed = functions.DelayedError("no", 2)
    alias, nothing = delayed(leaf(), None)
    assert nothing is None
    assert names(alias.grad_fn) == ["AccumulateGrad", "NoneType"]
    with pytest.raises(TypeError, match="expected 2 arguments, got 1 instead"):
        delayed(leaf())
    with pytest.raises(TypeError, match="argument 1 is not a Variable"):
        delayed(leaf(), 1)
    with pytest.raises(RuntimeError, match="argument 'msg' must be a string"):
        functions.DelayedError(1, 1)
    with pytest.raises(RuntimeError, match="argument 'num_inputs' must be an int"):
        functions.DelayedError("no", "1")
    with pytest.raises(TypeError, match="expected 1 arguments, got 2 instead"):
        functions.UndefinedGrad()(leaf(), leaf())


def test_an_undefined_gradient_has_its_node() -> None:
    x = leaf()
    copy = functions.UndefinedGrad()(x)
    assert copy.grad_fn.name() == "torch::autograd::UndefinedGradBackward"
    assert copy.data_ptr() != x.data_ptr()
    assert not functions.UndefinedGrad()(torch.ones(2)).requires_grad


def test_copy_is_named_as_users_know_it() -> None:
    target, source = leaf() * 1, leaf()
    target.copy_(source)
    assert type(target.grad_fn) is functions.CopyBackwards
    assert target.grad_fn.name() == "torch::autograd::CopyBackwards"
    assert names(target.grad_fn) == ["MulBackward0", "AccumulateGrad"]


def test_a_copy_converts_the_gradient_back() -> None:
    x = leaf()
    wide = torch.zeros(2, dtype=torch.float64)
    wide.copy_(x)
    wide.sum().backward()
    assert x.grad.dtype is torch.float32
    z = torch.zeros(2, dtype=torch.complex64)
    y = leaf()
    z.copy_(y)
    (z * (1 + 2j)).real.sum().backward()
    assert y.grad.tolist() == [1, 1]


@pytest.mark.parametrize("value", [(), (lambda t: t,), (lambda t: t,) * 3])
def test_hooks_on_saved_tensors_come_in_pairs(value: Any) -> None:
    saved = (leaf() * leaf()).grad_fn._raw_saved_self
    with pytest.raises(TypeError, match="incompatible function arguments"):
        saved.register_hooks(*value)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        saved.register_hooks(1, 1)
    saved.register_hooks(unpack_hook=lambda t: t, pack_hook=lambda t: t)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((2,), [1, 1]), ((3, 2), [3, 3]), ((1, 2), [1, 1]), ((2, 1), None), ((1,), None), ((), None)],
)
def test_a_gradient_is_summed_to_its_input_and_never_expanded(shape: Any, expected: Any) -> None:
    class Gives(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return torch.ones(shape)

    x = leaf()
    out = Gives.apply(x).sum()
    if expected is None:
        with pytest.raises(RuntimeError, match=r"GivesBackward returned an invalid gradient at in"):
            out.backward()
        assert x.grad is None
    else:
        out.backward()
        assert x.grad.tolist() == expected
