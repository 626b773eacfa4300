"""What goes wrong with views: what they say of themselves, and what a write does to their base.

The rows of the second list of `docs/behaviour.md` that are about views. The other rows are in the
table of `test_pitfalls.py`. Rows, or halves of them,
that have their tests elsewhere:

    row  what                                   test
    17   views of custom functions              test_function.py::
                                      test_views_from_custom_functions_are_read_only
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback.autograd import grad


def leaf(*values: float) -> Any:
    """A leaf that requires grad."""
    return torch.tensor(values, requires_grad=True)


def names(node: Any) -> list[tuple[str | None, int]]:
    """Where the edges of a node lead: the names of nodes, None for an edge to nowhere."""
    return [(n and n.name().rpartition("::")[2], nr) for n, nr in node.next_functions]


# --- row 1: what a view says of itself -----------------------------------------------------------


def test_a_view_requires_grad_as_soon_as_its_base_does() -> None:
    base = torch.zeros(3)
    view = base[1:]
    assert not view.requires_grad
    base.mul_(leaf(1.0, 2.0, 3.0))
    assert view.requires_grad
    assert not view.is_leaf


def test_a_view_made_unrecorded_is_a_leaf_that_requires_grad_and_passes_nothing_on() -> None:
    x = leaf(1.0, 2.0)
    base = x.clone()
    with torch.no_grad():
        view = base[:1]
    assert (view.requires_grad, view.is_leaf, view.grad_fn) == (True, True, None)
    y = view * view
    assert names(y.grad_fn) == [(None, 0), (None, 0)]
    y.backward()
    assert view.grad is None
    assert x.grad is None


# --- row 2: the history of a view is computed when it is asked for -------------------------------


def test_the_node_of_a_view_changes_with_writes_elsewhere() -> None:
    x = leaf(1.0, 2.0)
    base = x.clone()
    view, sibling = base[:1], base[:]
    before = view.grad_fn
    sibling.mul_(3)
    assert view.grad_fn is not before
    assert view.grad_fn.name() == "AsStridedBackward0"
    assert names(view.grad_fn) == [("CopySlices", 0)]
    view.backward()
    assert x.grad.tolist() == [3, 0]


def test_hooks_on_a_view_watch_its_present_node() -> None:
    x = leaf(1.0, 2.0)
    base = x.clone()
    view = base[:1]
    early: list[Any] = []
    late: list[Any] = []
    view.register_hook(early.append)
    base.mul_(3)
    view.register_hook(late.append)
    view.retain_grad()
    (view * 7).sum().backward()
    assert early == []
    assert [g.tolist() for g in late] == [[7]]
    assert view.grad.tolist() == [7]
    assert x.grad.tolist() == [21, 0]


def test_saved_values_and_edges_use_the_present_node_of_a_view() -> None:
    x = leaf(2.0, 3.0)
    base = x.clone()
    view = base[:1]
    base.mul_(5)
    y = view * view
    assert y.grad_fn._saved_self is view
    assert y.grad_fn.next_functions[0][0] is view.grad_fn
    (first,) = grad(y, x, create_graph=True)
    (second,) = grad(first.sum(), x)
    # y = (5 x)^2 for the first element.
    assert first.tolist() == [100, 0]
    assert second.tolist() == [50, 0]


# --- row 17: views that are read-only ------------------------------------------------------------

LISTS: list[Callable[[Any], Any]] = [
    lambda x: x.unbind(),
    lambda x: x.split(1),
    lambda x: x.split([1, 1]),
    lambda x: x.chunk(2),
    lambda x: list(x),
    lambda x: torch.split_with_sizes(x, [1, 1]),
]


@pytest.mark.parametrize("parts", LISTS)
def test_one_of_several_views_is_not_written_to(parts: Callable[[Any], Any]) -> None:
    base = leaf(1.0, 2.0).clone()
    text = "output of a function that returns multiple views"
    with pytest.raises(RuntimeError, match=text):
        parts(base)[0].mul_(2)
    assert base.tolist() == [1, 2]
    # Neither is one of a base without history, by something that has one.
    with pytest.raises(RuntimeError, match=text):
        parts(torch.ones(2))[1].mul_(leaf(3.0).sum())
    # What is not recorded may write.
    part = parts(base)[0]
    with torch.no_grad():
        part.mul_(2)
    assert base.tolist() == [2, 2]


# --- row 18: a write to a view is a new history of its base --------------------------------------


def test_the_first_edge_of_a_write_to_a_view_is_the_history_that_the_base_had() -> None:
    x, w = leaf(1.0, 2.0, 3.0), leaf(5.0)
    base = x.clone()
    old = base.grad_fn
    base[1:].mul_(w)
    assert names(base.grad_fn) == [("CloneBackward0", 0), ("AccumulateGrad", 0)]
    assert base.grad_fn.next_functions[0][0] is old
    assert base.grad_fn.next_functions[1][0].variable is w
    newer = base.grad_fn
    base[:1].zero_()
    assert base.grad_fn.next_functions[0][0] is newer
    base.sum().backward()
    assert x.grad.tolist() == [0, 5, 5]
    assert w.grad.tolist() == [5]


def test_a_base_without_history_has_an_edge_to_nowhere_after_a_write_to_its_view() -> None:
    w = leaf(5.0)
    base = torch.ones(2)
    base[:1].mul_(w)
    assert names(base.grad_fn) == [(None, 0), ("AccumulateGrad", 0)]
    base.sum().backward()
    assert w.grad.tolist() == [1]


def test_a_leaf_that_is_a_view_is_not_written_to() -> None:
    base = torch.zeros(3)
    view = base[1:].requires_grad_()
    assert view.is_leaf
    assert not base.requires_grad
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        view.mul_(2)
    with torch.no_grad():
        view.mul_(2)


def test_a_view_that_a_custom_function_made_unrecorded_says_so() -> None:
    class Row(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[1]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise AssertionError("nothing was recorded")

    base = torch.zeros(2, 2, requires_grad=True) * 1
    with torch.no_grad():
        row = Row.apply(base)
    message = r"inplace with grad mode enabled\. This view was created inside a custom Function"
    with pytest.raises(RuntimeError, match=message):
        row.mul_(2)
    with pytest.raises(
        RuntimeError, match=r"Output 0 of .* is a view and is being modified inplace"
    ):
        row[1:].mul_(2)


def test_a_view_of_inference_mode_is_written_to_in_normal_mode_only_unrecorded() -> None:
    base = torch.zeros(2, 2, requires_grad=True) * 1
    with torch.inference_mode():
        row = base[1]
    with pytest.raises(
        RuntimeError, match="in inference mode and is being modified inplace in normal"
    ):
        row.mul_(2)
    base.mul_(2)
    indirect = "its base or another view of its base has been modified inplace in normal mode"
    with pytest.raises(RuntimeError, match=indirect):
        _ = row.grad_fn


def test_other_memory_counts_its_own_writes() -> None:
    base, other = torch.zeros(4), torch.zeros(2)
    other.add_(1).add_(1)
    view = base[1:]
    view.set_(other)
    assert (view._version, base._version, other._version) == (1, 1, 2)
    view.mul_(2)
    assert other.tolist() == [4, 4]
    assert (view._version, other._version) == (2, 2)


def test_a_saved_tensor_given_other_memory_of_the_same_version_is_noticed() -> None:
    x = torch.ones(2).add_(1)
    w = torch.ones(2, requires_grad=True)
    y = w * x
    x.set_(torch.zeros(2))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_in_inference_mode_also_tensors_that_require_grad_are_resized() -> None:
    with torch.inference_mode():
        x = torch.ones(4, requires_grad=True)
        assert x.resize_(2).tolist() == [1, 1]
        assert x.requires_grad
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        x.resize_(1)
    y = torch.ones(4, requires_grad=True)
    with torch.no_grad(), pytest.raises(RuntimeError, match="cannot resize variables that req"):
        y.resize_(2)


def test_a_tensor_is_resized_to_the_sizes_of_another() -> None:
    x = torch.arange(2.0)
    assert x.resize_as_(torch.zeros(3, 1).t()) is x
    assert (x.shape, x.stride(), x._version) == ((1, 3), (3, 1), 1)
    assert x.tolist()[0][:2] == [0, 1]
    assert x.resize_(size=(3,)).resize_as_(the_template=torch.zeros(3))._version == 2
    assert x.resize_(1, 2, memory_format=torch.contiguous_format).shape == (1, 2)
    assert x.resize_as_(torch.zeros(2), memory_format=torch.preserve_format).shape == (2,)
    with pytest.raises(RuntimeError, match="Unsupported memory format"):
        x.resize_(1, memory_format=torch.preserve_format)
    template = torch.zeros(1, 2, 1, 1)
    assert x.clone().resize_as_(template, memory_format=torch.channels_last).shape == (1, 2, 1, 1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'stride'"):
        x.resize_(1, stride=2)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"'the_template' \(position 1\) must be Tensor, not int"):
        x.resize_as_(3)  # type: ignore[arg-type]
    assert x.tolist() == [0, 1]
    leaf = torch.zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        leaf.resize_as_(torch.zeros(1))


def test_contiguous_takes_any_order_where_nothing_is_to_do() -> None:
    x = torch.randn(2, 3)
    assert x.is_contiguous(memory_format=torch.preserve_format)
    assert x.contiguous(memory_format=torch.preserve_format) is x
    assert not x.t().is_contiguous(memory_format=torch.preserve_format)
    with pytest.raises(RuntimeError, match="preserve memory format is unsupported by the contig"):
        x.t().contiguous(memory_format=torch.preserve_format)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.uint16, torch.int64])
def test_integers_are_close_by_their_true_difference(dtype: torch.dtype) -> None:
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    a = torch.tensor([0, 1, most, least], dtype=dtype)
    b = torch.tensor([1, 0, least, most], dtype=dtype)
    assert torch.isclose(a, b, rtol=0, atol=1).tolist() == [True, True, False, False]
    flags = torch.tensor([True, False])
    assert torch.isclose(flags, ~flags, rtol=0, atol=1).all()
    assert torch.isclose(flags, ~flags, rtol=1, atol=0).tolist() == [False, True]
