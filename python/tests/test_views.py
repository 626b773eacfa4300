"""Random programs of views and in-place ops compute what NumPy computes on shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as torch


@st.composite
def starts(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    return np.arange(np.prod(shape), dtype=np.int64).reshape(shape)


def indices(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A basic index for the shape: numbers, slices, None, dots."""
    parts: list[Any] = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        kinds = ["slice", "slice", "all"] + (["number"] if size else [])
        kind = draw(st.sampled_from(kinds))
        if kind == "number":
            parts.append(draw(st.integers(-size, size - 1)))
        elif kind == "all":
            parts.append(slice(None))
        else:
            bound = st.one_of(st.none(), st.integers(-size - 1, size + 1))
            parts.append(slice(draw(bound), draw(bound), draw(st.integers(1, 3))))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if draw(st.booleans()):
        parts.append(Ellipsis)
    return tuple(parts)


def view(data: st.DataObject, x: Any, a: Any) -> tuple[Any, Any]:
    """One more view of both."""
    kind = data.draw(
        st.sampled_from(["index", "permute", "unsqueeze", "squeeze", "narrow", "diagonal"])
    )
    rank = a.ndim
    if kind == "permute" and rank:
        order = data.draw(st.permutations(range(rank)))
        return x.permute(order), a.transpose(order)
    if kind == "unsqueeze" and rank < 5:
        dim = data.draw(st.integers(-rank - 1, rank))
        return x.unsqueeze(dim), np.expand_dims(a, dim)
    if kind == "squeeze":
        return x.squeeze(), np.squeeze(a)
    if kind == "narrow" and rank:
        dim = data.draw(st.integers(0, rank - 1))
        start = data.draw(st.integers(0, a.shape[dim]))
        length = data.draw(st.integers(0, a.shape[dim] - start))
        place = (slice(None),) * dim + (slice(start, start + length),)
        return x.narrow(dim, start, length), a[place]
    if kind == "diagonal" and rank >= 2:
        offset = data.draw(st.integers(-2, 2))
        if -a.shape[0] <= offset <= a.shape[1]:
            one = a.diagonal(offset, 0, 1)
            one.flags.writeable = True
            return x.diagonal(offset, 0, 1), one
    if rank < 5:
        index = data.draw(st.composite(lambda draw: indices(draw, a.shape))())
        return x[index], a[index] if index else a[...]
    return x, a


def write(data: st.DataObject, x: Any, a: Any) -> None:
    """Changes both in place in the same way."""
    kind = data.draw(st.sampled_from(["add", "mul", "fill", "set", "mask", "copy"]))
    number = data.draw(st.integers(-3, 3))
    if kind == "add":
        x.add_(number)
        a[...] += number
    elif kind == "mul":
        x.mul_(number)
        a[...] *= number
    elif kind == "fill":
        x.fill_(number)
        a[...] = number
    elif kind == "set":
        index = data.draw(st.composite(lambda draw: indices(draw, a.shape))())
        x[index] = number
        a[index] = number
    elif kind == "mask":
        x[x > number] = 7
        a[a > number] = 7
    else:
        values = np.arange(a.size, dtype=np.int64).reshape(a.shape)
        x.copy_(torch.from_numpy(values))
        a[...] = values


@settings(max_examples=150, deadline=None)
@given(starts(), st.data())
def test_programs_agree(start: np.ndarray[Any, Any], data: st.DataObject) -> None:
    base = torch.tensor(start.tolist(), dtype=torch.int64).reshape(start.shape)
    array = start.copy()
    views = [(base, array)]
    for _ in range(data.draw(st.integers(1, 8))):
        x, a = data.draw(st.sampled_from(views))
        if data.draw(st.booleans()):
            x, a = view(data, x, a)
            a = np.asarray(a)
            views.append((x, a))
        # NumPy gives a copy for a whole index; then there is nothing shared to write to.
        if np.shares_memory(a, array) or not a.size:
            write(data, x, a)
        else:
            views.pop()
        for seen, expected in views:
            assert tuple(seen.shape) == expected.shape
            assert seen.tolist() == expected.tolist()


@settings(max_examples=80, deadline=None)
@given(starts(), st.data())
def test_gradients_of_programs(start: np.ndarray[Any, Any], data: st.DataObject) -> None:
    """A chain of views sends ones to the elements that it shows, as often as it shows them."""
    x = torch.zeros(start.shape, dtype=torch.float64, requires_grad=True)
    count = np.zeros(start.shape)
    y, places = x, start
    for _ in range(data.draw(st.integers(1, 4))):
        y, places = view(data, y, places)
        places = np.asarray(places)
    (y * 1).sum().backward()
    np.add.at(count.reshape(-1), places.reshape(-1), 1)
    assert x.grad.tolist() == count.tolist()


def test_as_strided_in_place_changes_how_a_tensor_sees_its_memory() -> None:
    x = torch.arange(6.0, requires_grad=True)
    y = x * 1
    for call in (torch.Tensor.as_strided_, torch.as_strided_):
        z = y.clone()
        assert call(z, (2, 2), (1, 2), 1) is z
        assert z.tolist() == [[1, 3], [2, 4]]
        assert z.storage_offset() == 1
    (grad,) = torch.autograd.grad((z * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum(), x)
    assert grad.tolist() == [0, 1, 3, 2, 4, 0]
    plain = torch.arange(4.0)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        plain.as_strided_((5,), (1,))
    assert plain.shape == (4,)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.as_strided_((2,), (1,))


REFUSED_VIEWS: list[tuple[Callable[..., Any], type[Exception], str]] = [
    (lambda x: x.permute(0), RuntimeError, r"input.dim\(\) = 2 is not equal to len\(dims\) = 1"),
    (lambda x: x.permute(0, 0), RuntimeError, "duplicate dims are not allowed"),
    (lambda x: x.permute(0, 2), IndexError, r"range of \[-2, 1\], but got 2"),
    (lambda x: x.view(5, 2), RuntimeError, r"shape '\[5, 2\]' is invalid for input of size 12"),
    (lambda x: x.view(-1, 5), RuntimeError, r"shape '\[-1, 5\]' is invalid for input of size 12"),
    (lambda x: x.view(-1, -1), RuntimeError, "only one dimension can be inferred"),
    (lambda x: x.view(-2, 6), RuntimeError, "invalid shape dimension -2"),
    (lambda x: x.t().view(12), RuntimeError, "view size is not compatible with input tensor's"),
    (lambda x: x[:0].view(-1, 0), RuntimeError, "unspecified dimension size -1 can be any value"),
    (lambda x: x.reshape(5, 2), RuntimeError, r"shape '\[5, 2\]' is invalid for input of size 12"),
    (lambda x: x.reshape(-2, 6), RuntimeError, "invalid shape dimension -2"),
    (lambda x: x[:0].reshape(-1, 0), RuntimeError, "can be any value and is ambiguous"),
    (lambda x: x.transpose(0, -3), IndexError, r"range of \[-2, 1\], but got -3"),
    (lambda x: x[None].t(), RuntimeError, "expects a tensor with <= 2 dimensions, but self is 3D"),
    (lambda x: x.expand(4), RuntimeError, r"sizes provided \(1\) must be greater or equal to the"),
    (lambda x: x.expand(3, 5), RuntimeError, r"size of the tensor \(5\) must match .* size \(4\)"),
    (
        lambda x: x.expand(-2, 4),
        RuntimeError,
        r"tensor \(-2\) must match .* size \(3\)",
    ),
    (lambda x: x.expand(-2, 3, 4), RuntimeError, "isn't allowed in a leading, non-existing dimen"),
    (lambda x: x.squeeze(2), IndexError, r"range of \[-2, 1\], but got 2"),
    (lambda x: x.squeeze((0, 0)), RuntimeError, "dim 0 appears multiple times"),
    (lambda x: x.unsqueeze(3), IndexError, r"range of \[-3, 2\], but got 3"),
    (lambda x: x.select(0, 3), IndexError, r"index 3 out of range for tensor of size \[3, 4\]"),
    (lambda x: x[0, 0].select(0, 0), IndexError, r"select\(\) cannot be applied to a 0-dim tensor"),
    (lambda x: x.narrow(0, 1, 3), RuntimeError, r"start \(1\) \+ length \(3\) exceeds dimension"),
    (lambda x: x.narrow(0, -4, 1), IndexError, r"range of \[-3, 3\], but got -4"),
    (lambda x: x.narrow(0, 0, -1), RuntimeError, "length must be non-negative"),
    (lambda x: x[0, 0].narrow(0, 0, 1), RuntimeError, "cannot be applied to a 0-dim tensor"),
    (lambda x: x.unfold(0, 4, 1), RuntimeError, "maximum size for tensor at dimension 0 is 3 but"),
    (lambda x: x.unfold(0, -1, 1), RuntimeError, "size is -1 but must be >= 0"),
    (lambda x: x.unfold(0, 2, 0), RuntimeError, "step is 0 but must be > 0"),
    (lambda x: x[3], IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    (lambda x: x[0, 4], IndexError, "index 4 is out of bounds for dimension 1 with size 4"),
    (lambda x: x[None, ..., -5], IndexError, "index -5 is out of bounds for dimension 1 with size"),
    (lambda x: x[0, 0, 0], IndexError, "too many indices for tensor of dimension 2"),
    (lambda x: x[0, 0][0], IndexError, "invalid index of a 0-dim tensor"),
    (lambda x: x[::-1], ValueError, "step must be greater than zero"),
    (lambda x: x[torch.tensor([3])], IndexError, "index 3 is out of bounds for dimension 0 with"),
    (lambda x: x[torch.tensor([1.0])], IndexError, "must be long, int, byte or bool tensors"),
    (lambda x: x[torch.tensor([True, False])], IndexError, r"mask \[2\] at index 0 does not match"),
    (torch.view_as_complex, RuntimeError, "Tensor must have a last dimension of size 2"),
    (lambda x: torch.view_as_complex(x[:, 1:3]), RuntimeError, "a storage_offset divisible by 2"),
    (lambda x: torch.view_as_complex(x[:, ::2]), RuntimeError, "a last dimension with stride 1"),
    (torch.view_as_real, TypeError, "only supported for complex tensors"),
    (lambda x: x[:, :3].view(torch.float64), RuntimeError, r"size\(-1\) must be divisible by 2 to"),
    (
        lambda x: x[:, 1:3].view(torch.int64),
        RuntimeError,
        r"storage_offset\(\) must be .* but got 1",
    ),
    (lambda x: x.t().view(torch.int16), RuntimeError, r"stride\(-1\) must be 1 to view Float as"),
    (lambda x: x[[0, 1], [0, 1, 2]], IndexError, r"broadcast together with shapes \[2\], \[3\]"),
]


@pytest.mark.parametrize(("make", "error", "text"), REFUSED_VIEWS)
def test_a_view_that_cannot_be_is_refused_with_its_numbers(
    make: Callable[..., Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make(torch.arange(12.0).view(3, 4))


def test_attributes_show_a_tensor_another_way() -> None:
    x = torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], requires_grad=True)
    assert x.T.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.T._base is x
    assert x.H.shape == x.mT.shape == x.mH.shape == (3, 2)
    assert torch.zeros(4, 2, 3).mT.shape == (4, 3, 2)
    (x.T * torch.arange(6.0).view(3, 2)).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0, 2, 4], [1, 3, 5]]
    assert x.real is x
    z = torch.tensor([1 + 2j, 3 - 4j])
    assert z.real.tolist() == [1, 3]
    assert z.imag.tolist() == [2, -4]
    assert z.view(1, 2).mH.tolist() == [[1 - 2j], [3 + 4j]]
    z.real = torch.tensor([5.0, 6.0])
    z.imag = 7
    assert z.tolist() == [5 + 7j, 6 + 7j]
    with pytest.raises(TypeError, match="imag is not implemented for tensors with non-complex"):
        _ = x.imag
    with pytest.raises(RuntimeError, match=r"tensor.mT is only supported on matrices .* 1-D"):
        _ = torch.zeros(3).mT
    with pytest.raises(RuntimeError, match=r"tensor.H is only supported on matrices .* 3-D"):
        _ = torch.zeros(1, 1, 1).H
    for name in ("T", "mT", "H", "mH"):
        with pytest.raises(AttributeError):
            setattr(x, name, x)
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del z.real


def test_parts_of_complex_numbers_are_views_whose_writes_the_base_records() -> None:
    z = torch.tensor([1 + 2j, 3 - 4j], requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        z.real.mul_(2)
    base = z * 1
    real, imag, numbers = base.real, base.imag, torch.view_as_real(base)
    assert [v._base is base for v in (real, imag, numbers)] == [True] * 3
    real.mul_(3)
    assert base._version == imag._version == numbers._version == 1
    names = [v.grad_fn.name() for v in (base, real, imag, numbers)]
    strided = "AsStridedBackward0"
    assert names == ["torch::autograd::CopySlices", strided, strided, "ViewAsRealBackward0"]
    assert real.grad_fn.next_functions[0][0].name() == "ViewAsRealBackward0"
    assert base.tolist() == [3 + 2j, 9 - 4j]
    (real.sum() + imag.sum() * 2).backward()
    assert z.grad is not None
    assert z.grad.tolist() == [3 + 2j, 3 + 2j]
    # A base without history, whose first element lies between two pairs of its memory.
    rest = torch.arange(6.0)[1:].detach()
    factor = torch.tensor([2 + 0j, 1j], requires_grad=True)
    torch.view_as_complex(rest[1:].view(2, 2)).mul_(factor)
    assert rest.tolist() == [1, 4, 6, -5, 4]
    (rest * torch.arange(5.0)).sum().backward()
    assert factor.grad is not None
    assert factor.grad.tolist() == [2 * 1 + 3 * 2 + (2 * 2 - 3 * 1) * 1j, 4 * 3 + 5 * 4 + 1j]


@pytest.mark.parametrize("dtype", [torch.int32, torch.float64, torch.complex64, torch.float32])
def test_another_dtype_shares_memory_and_version_but_no_history(dtype: torch.dtype) -> None:
    x = torch.ones(2, 4, requires_grad=True)
    product = x * x
    seen = product.view(dtype)
    assert (seen.requires_grad, seen.grad_fn, seen._is_view()) == (False, None, False)
    assert seen.data_ptr() == product.data_ptr()
    later = (product * product).sum()
    seen.zero_()
    assert product._version == seen._version == 1
    assert product.tolist() == [[0] * 4] * 2
    assert product.grad_fn.name() == "MulBackward0"
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        later.backward()
    x.view(dtype).zero_()
    assert x.tolist() == [[0] * 4] * 2


def test_a_reshaped_copy_is_a_view_of_nothing() -> None:
    x = torch.ones(2, 3, 2, requires_grad=True)
    for copy in (x.mT.flatten(1), x.mT.reshape(-1), x.mT.reshape(3, 4)):
        assert (copy._is_view(), copy._base) == (False, None)
    copy = (x * 1).mT.flatten()
    copy[0] = 5.0
    copy.sum().backward()
    assert x.grad is not None
    assert x.grad.flatten().tolist() == [0.0] + [1.0] * 11
    assert x.mT.transpose(1, 2).flatten()._is_view()
