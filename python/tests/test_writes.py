"""In-place writes: what they record, into which dtypes, what they refuse, and what they count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as torch

WITHOUT_GRADIENT = [
    torch.bool,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
]


def test_a_view_that_is_transposed_in_place_is_transposed_once() -> None:
    x = torch.ones(3, 3, requires_grad=True)
    v = (x * 1)[:]
    v.t_()
    (v * torch.arange(9.0).reshape(3, 3)).sum().backward()
    assert x.grad.tolist() == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]


def test_a_view_may_get_a_new_dimension_in_place() -> None:
    x = torch.ones(3, requires_grad=True)
    v = x.clone()[1:]
    v.unsqueeze_(0)
    v.sum().backward()
    assert x.grad.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.t_(),
        lambda v: v.transpose_(0, 1),
        lambda v: v.swapaxes_(0, 1),
        lambda v: v.swapdims_(-1, -2),
        lambda v: v.unsqueeze_(0).squeeze_(0).t_(),
        lambda v: v.unsqueeze_(1).squeeze_().transpose_(0, 1),
        lambda v: v.as_strided_((2, 2), (1, 2), 2),
    ],
)
def test_writes_through_a_view_that_was_transposed_in_place_are_seen_from_its_base(
    change: Callable[[Any], Any],
) -> None:
    x = torch.ones(3, 2, requires_grad=True)
    base = x * 1
    v = base[1:]
    change(v)
    v.mul_(torch.tensor([[2.0, 3.0], [5.0, 7.0]]))
    base.mul_(10)
    (v * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [[0, 0], [20, 150], [60, 280]]


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "copy_": lambda t, w: t.copy_(w),
    "t[0] = w": lambda t, w: t.__setitem__(0, w[0]),
    "t[...] = w": lambda t, w: t.__setitem__(..., w),
    "t[:] = w": lambda t, w: t.__setitem__(slice(None), w),
    "t[1:] = w": lambda t, w: t.__setitem__(slice(1, None), w[1:]),
    "t[::2] = w": lambda t, w: t.__setitem__(slice(None, None, 2), w[::2]),
    "t[None] = w": lambda t, w: t.__setitem__(None, w),
    "t[True] = w": lambda t, w: t.__setitem__(True, w),
    "t[mask] = w": lambda t, w: t.__setitem__(torch.tensor([True, False, True]), w[0]),
    "t[mask] = [w]": lambda t, w: t.__setitem__(torch.tensor([True, False, True]), w[:1]),
    "fill_": lambda t, w: t.fill_(w[0]),
    "masked_fill_": lambda t, w: t.masked_fill_(torch.tensor([True, False, True]), w[0]),
    "index_fill_": lambda t, w: t.index_fill_(0, torch.tensor([0, 2]), w[0]),
    "bernoulli_": lambda t, w: t.bernoulli_(w),
    "t.view.copy_": lambda t, w: t.view(3, 1)[1:].copy_(w[1:, None]),
}


@pytest.mark.parametrize("dtype", WITHOUT_GRADIENT, ids=str)
@pytest.mark.parametrize("write", WRITES)
def test_nothing_is_recorded_into_a_tensor_that_cannot_have_a_gradient(
    write: str, dtype: Any
) -> None:
    w = torch.tensor([1.0, 0.0, 1.0], requires_grad=True)
    t = torch.zeros(3, dtype=dtype)
    try:
        WRITES[write](t, w)
    except NotImplementedError:
        assert write == "masked_fill_"
        assert dtype in (torch.uint16, torch.uint32, torch.uint64)
        return
    assert t._version == 1
    assert not t.requires_grad
    assert t.grad_fn is None
    assert t.is_leaf
    assert not (t[:] * 1.0).requires_grad


@pytest.mark.parametrize("dtype", WITHOUT_GRADIENT, ids=str)
def test_writes_that_would_need_a_conversion_are_refused(dtype: Any) -> None:
    w = torch.ones(3, requires_grad=True)
    t = torch.zeros(3, dtype=dtype)
    places = torch.tensor([0, 1, 2])
    writes: list[tuple[Callable[[], Any], str]] = [
        (lambda: t.add_(w), "can't be cast to the desired output type"),
        (lambda: t.scatter_(0, places, w), "Expected self.dtype to be equal to src.dtype"),
        (lambda: t.index_add_(0, places, w), "must have the same scalar type"),
        (lambda: t.index_copy_(0, places, w), "expected to have the same dtype"),
        (lambda: t.put_(places, w), "expected to have the same dtype"),
        (lambda: t.__setitem__(places, w[0]), "source and destination dtypes match"),
        (lambda: t.masked_scatter_(places > 0, w), "same dtypes"),
        (lambda: torch.add(w, w, out=t), "don't support automatic differentiation"),
    ]
    for write, phrase in writes:
        with pytest.raises(RuntimeError, match=phrase):
            write()
    assert t.tolist() == [0, 0, 0]
    assert t._version == 0
    assert not t.requires_grad


@pytest.mark.parametrize("name", ["logical_not_", "logical_and_", "logical_or_", "logical_xor_"])
def test_logical_writes_are_not_recorded_into_leaves(name: str) -> None:
    others = () if name == "logical_not_" else (torch.tensor([1.0, 0.0]),)
    x = torch.tensor([0.0, 3.0], requires_grad=True)
    v = x[:]
    getattr(v, name)(*others)
    assert x._version == 1
    assert x.is_leaf
    assert v.requires_grad
    (v * torch.tensor([5.0, 7.0])).sum().backward()
    assert x.grad.tolist() == [5, 7]
    getattr(x, name)(*others)
    assert x._version == 2
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        v.eq_(1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.complex64])
def test_conj_physical_counts_a_write_whatever_the_dtype(dtype: Any) -> None:
    x = torch.ones(2, dtype=dtype)
    x.conj_physical_()
    assert x._version == 1
    torch.conj_physical(x, out=x)
    assert x._version == 2


def test_tensors_that_have_the_common_shape_are_returned_as_they_are() -> None:
    v = torch.ones(3, requires_grad=True)
    a, b = torch.broadcast_tensors(v, v)
    assert a is v
    assert b is v
    row, wide = torch.broadcast_tensors(v, torch.zeros(2, 3))
    assert row._base is v
    assert row.stride() == (0, 1)
    assert wide.shape == (2, 3)
    (b * 2 + row).sum().backward()
    assert v.grad.tolist() == [6, 6, 6]


def test_index_add_takes_a_source_without_dimensions_for_a_target_without_alone() -> None:
    assert torch.ones(()).index_add_(0, torch.tensor(0), torch.tensor(2.0)).item() == 3
    for name in ("index_add_", "index_reduce_"):
        more = ("prod",) if name == "index_reduce_" else ()
        for own, source in [((3,), ()), ((), (1,)), ((2, 3), (1,))]:
            target = torch.ones(own)
            with pytest.raises(RuntimeError, match="source tensor shape must match self tensor"):
                getattr(target, name)(0, torch.tensor([0]), torch.ones(source), *more)
    assert torch.ones(3).index_copy_(0, torch.tensor(1), torch.tensor(5.0)).tolist() == [1, 5, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bfloat16])
def test_imaginary_parts_are_not_dropped(dtype: Any) -> None:
    x, place = torch.ones(2, dtype=dtype), torch.tensor([0])
    square = torch.ones(2, 2, dtype=dtype)
    calls: list[Callable[[], Any]] = [
        lambda: x.scatter_(0, place, 1 + 2j),
        lambda: x.scatter_(0, place, 1 + 2j, reduce="add"),
        lambda: x.scatter(0, place, 1 + 2j),
        lambda: x.index_add_(0, place, x[:1].clone(), alpha=1 + 2j),
        lambda: torch.addmm(square, square, square, beta=1 + 2j),
        lambda: torch.addmv(x, square, x, alpha=1 + 2j),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="without overflow"):
            call()
    with pytest.raises(RuntimeError, match="Converting complex Scalar to non-complex type"):
        x.index_fill_(0, place, 1 + 2j)
    assert x.tolist() == [1, 1]
    assert x._version == 0


def test_memory_that_an_array_shows_does_not_grow() -> None:
    x = torch.zeros(3)
    array = x.numpy()
    assert not x.untyped_storage().resizable()
    grow: list[Callable[[], Any]] = [
        lambda: x.resize_(2, 2),
        lambda: x.resize_as_(torch.zeros(7)),
        lambda: torch.add(torch.ones(5), torch.ones(5), out=x),
        lambda: x.untyped_storage().resize_(400),
        lambda: torch.zeros(0).set_(x.untyped_storage(), 0, (9,), (1,)),
    ]
    for call in grow:
        with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
            call()
    assert x.shape == (3,)
    x.resize_(2).fill_(4)
    assert array.tolist() == [4, 4, 0]
    x.resize_(3)
    array[2] = 5
    assert x.tolist() == [4, 4, 5]
    assert np.shares_memory(array, x.numpy())
