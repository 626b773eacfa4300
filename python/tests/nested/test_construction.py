"""Nested tensors are made, shown, copied and pickled; what does not fit is refused."""

from __future__ import annotations

import copy
import io
import pickle
import re
import subprocess
import sys
from typing import Any

import pytest

import pullback as torch
from pullback.autograd import forward_ad

nested = torch.nested


def parts(requires_grad: bool = False) -> list[Any]:
    made = [torch.arange(float(5 * n)).reshape(n, 5) for n in (2, 4, 1)]
    return [one.requires_grad_(requires_grad) for one in made]


def jagged(**kwargs: Any) -> Any:
    return nested.nested_tensor(parts(), layout=torch.jagged, **kwargs)


def test_it_is_loaded_at_first_use() -> None:
    program = (
        "import sys, pullback as torch; before = 'pullback.nested._jagged' in sys.modules; "
        "torch.nested.nested_tensor; print(before, 'pullback.nested._jagged' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


def test_the_layout() -> None:
    assert repr(torch.jagged) == "torch.jagged"
    assert isinstance(torch.jagged, torch.layout)
    assert pickle.loads(pickle.dumps(torch.jagged)) is torch.jagged
    assert jagged().layout is torch.jagged
    assert nested.nested_tensor(parts()).layout is torch.strided


def test_sizes() -> None:
    x = jagged()
    assert x.is_nested
    assert not parts()[0].is_nested
    assert x.dim() == x.ndim == 3
    assert len(x) == 3
    assert x.numel() == 35
    assert x.size(0) == 3
    assert x.size(-1) == 5
    assert x.shape[1] == x.size(1)
    assert re.fullmatch(r"torch\.Size\(\[3, j\d+, 5\]\)", repr(x.shape))
    assert x.size(1) == (x * 2).size(1) != jagged().size(1)
    assert re.fullmatch(r"\(5\*j\d+, 5, 1\)", repr(x.stride()))
    assert x.offsets().tolist() == [0, 2, 6, 7]
    assert x.lengths() is None
    assert x._max_seqlen == 4
    assert x._min_seqlen == 1
    assert torch.equal(x.values(), torch.cat(parts()))
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.size(3)


def test_nested_tensor_copies_and_is_a_leaf() -> None:
    given = parts(True)
    x = nested.nested_tensor(given, layout=torch.jagged, requires_grad=True)
    assert x.is_leaf
    assert x.requires_grad
    (x * x).values().sum().backward()
    assert given[0].grad is None
    assert x.grad.is_nested
    assert torch.equal(x.grad.values(), 2 * x.values().detach())
    with torch.no_grad():
        x.fill_(7)
    assert torch.equal(given[0], parts()[0])


def test_nested_tensor_of_lists_and_dtypes() -> None:
    x = nested.nested_tensor([[1, 2], [3]], dtype=torch.float64, layout=torch.jagged)
    assert x.dtype == torch.float64
    assert x.values().tolist() == [1, 2, 3]
    empty = nested.nested_tensor([])
    assert empty.is_nested
    assert empty.numel() == 0
    assert empty.unbind() == ()


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_as_nested_tensor_keeps_the_history(layout: Any) -> None:
    given = parts(True)
    x = nested.as_nested_tensor(given, layout=layout)
    assert x.requires_grad
    assert not x.is_leaf
    (x * x).values().sum().backward()
    for one in given:
        torch.testing.assert_close(one.grad, 2 * one.detach())
    rows = nested.as_nested_tensor(torch.ones(2, 3), layout=layout)
    assert [one.tolist() for one in rows.unbind()] == [[1, 1, 1], [1, 1, 1]]
    assert nested.as_nested_tensor(x, layout=layout, dtype=torch.float64).dtype == torch.float64


def test_accumulated_gradients() -> None:
    x = jagged(requires_grad=True)
    for _ in range(2):
        (x * 3).values().sum().backward()
    assert (x.grad.values() == 6).all()


def test_from_jagged_shares_the_values() -> None:
    values, offsets = torch.arange(10.0), torch.tensor([0, 3, 10])
    x = nested.nested_tensor_from_jagged(values, offsets, min_seqlen=3, max_seqlen=7)
    values[0] = 5
    assert x[0].tolist() == [5, 1, 2]
    assert x.size(1) == nested.nested_tensor_from_jagged(values * 2, offsets).size(1)
    lengths = torch.tensor([3, 7])
    assert nested.nested_tensor_from_jagged(values, lengths=lengths).offsets().tolist() == [
        0,
        3,
        10,
    ]
    holes = nested.nested_tensor_from_jagged(values, offsets, torch.tensor([2, 4]))
    assert [one.tolist() for one in holes.unbind()] == [[5, 1], [3, 4, 5, 6]]
    assert not holes.is_contiguous()
    assert holes.contiguous().is_contiguous()
    assert not holes.contiguous().is_contiguous(memory_format=torch.channels_last)
    assert torch.nested.nested_tensor([]).dim() == 1
    assert holes.sum().item() == 24
    assert holes.sum(1).tolist() == [6, 18]
    wide = nested.nested_tensor_from_jagged(torch.ones(2, 10), offsets, jagged_dim=2)
    assert [tuple(one.shape) for one in wide.unbind()] == [(2, 3), (2, 7)]


def test_gradients_of_values_with_holes() -> None:
    values = torch.arange(6.0, requires_grad=True)
    x = nested.nested_tensor_from_jagged(values, torch.tensor([0, 3, 6]), torch.tensor([2, 1]))
    x.sum().backward()
    assert values.grad.tolist() == [1, 1, 0, 1, 0, 0]


def test_narrow() -> None:
    table = torch.arange(12.0).reshape(3, 4).requires_grad_()
    start, length = torch.tensor([0, 1, 2]), torch.tensor([2, 3, 1])
    for layout in (torch.jagged, torch.strided):
        x = nested.narrow(table, 1, start, length, layout=layout)
        assert [one.tolist() for one in x.unbind()] == [[0, 1], [5, 6, 7], [10]]
        (grad,) = torch.autograd.grad(sum(one.sum() for one in x.unbind()), table)
        assert grad.tolist() == [[1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 1, 0]]
    with pytest.raises(RuntimeError, match=r"start \(3\) \+ length \(2\) exceeds dimension size"):
        nested.narrow(table, 1, 3, 2)
    with pytest.raises(RuntimeError, match="jagged layout only supports dim=1"):
        nested.narrow(table[None], 2, 0, 1, layout=torch.jagged)


def test_masked_select() -> None:
    table = torch.arange(6.0).reshape(2, 3).requires_grad_()
    x = nested.masked_select(table, table > 1.5)
    assert [one.tolist() for one in x.unbind()] == [[2], [3, 4, 5]]
    x.values().sum().backward()
    assert table.grad.tolist() == [[0, 0, 1], [1, 1, 1]]
    with pytest.raises(RuntimeError, match="requires a strided tensor"):
        nested.masked_select(x, torch.tensor(True))


def test_padding() -> None:
    given = parts(True)
    padded = nested.to_padded_tensor(nested.as_nested_tensor(given, layout=torch.jagged), -1.0)
    assert padded.shape == (3, 4, 5)
    assert (padded[2, 1:] == -1).all()
    assert torch.equal(padded[0, :2], given[0])
    (padded * padded).sum().backward()
    torch.testing.assert_close(given[1].grad, 2 * given[1].detach())
    assert jagged().to_padded_tensor(0.0, (3, 6, 5)).shape == (3, 6, 5)
    with pytest.raises(RuntimeError, match="Truncation is not supported"):
        jagged().to_padded_tensor(0.0, (3, 3, 5))


def test_printing() -> None:
    x = jagged()
    expected = (
        r"NestedTensor\(size=\(3, j\d+, 5\), offsets=tensor\(\[0, 2, 6, 7\]\), contiguous=True\)"
    )
    assert re.fullmatch(expected, repr(x))
    assert str(x) == repr(x)
    assert "requires_grad=True" in repr(jagged(requires_grad=True))
    y = nested.nested_tensor([torch.ones(2), torch.zeros(1)])
    assert repr(y) == "nested_tensor([\n  tensor([1., 1.]),\n  tensor([0.])\n])"


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_copies_and_files(layout: Any) -> None:
    x = nested.nested_tensor(parts(), layout=layout, requires_grad=True)
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)
    for other in (loaded, pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert type(other) is type(x)
        assert other.requires_grad
        assert other.is_leaf
        torch.testing.assert_close([one.detach() for one in other.unbind()], parts())
    with pytest.raises(RuntimeError):
        copy.deepcopy(x * 2)
    with pytest.raises(RuntimeError, match="only leaves"):
        pickle.dumps(x * 2)


def broken_file() -> None:
    x = jagged()
    function, (given,) = x.__reduce_ex__(2)
    function({**given, "offsets": torch.tensor([0, 90])})


REFUSED = [
    (lambda: nested.nested_tensor(parts(), layout=torch.sparse_coo), RuntimeError, "unsupported"),
    (lambda: nested.nested_tensor(3), TypeError, "are accepted in nested_tensor, got int"),
    (lambda: nested.as_nested_tensor(3), TypeError, "Expected first argument to be a tensor or a"),
    (lambda: nested.as_nested_tensor([1, 2]), TypeError, "Expected first argument"),
    (
        lambda: nested.nested_tensor([torch.ones(2), torch.ones(2, 2)]),
        RuntimeError,
        "must have the same dim",
    ),
    (
        lambda: nested.as_nested_tensor([torch.ones(2), torch.ones(2, dtype=torch.int64)]),
        RuntimeError,
        "same dtype and device",
    ),
    (
        lambda: nested.nested_tensor([torch.ones(1, 2), torch.ones(2, 1)], layout=torch.jagged),
        RuntimeError,
        "Cannot represent given tensor list as a nested tensor with the jagged layout",
    ),
    (
        lambda: nested.nested_tensor([], layout=torch.jagged),
        RuntimeError,
        "Cannot construct a nested tensor from an empty tensor list",
    ),
    (
        lambda: nested.as_nested_tensor(jagged(), layout=torch.strided),
        RuntimeError,
        "Converting between nested tensor layouts is not supported",
    ),
    (
        lambda: nested.nested_tensor_from_jagged(torch.ones(3)),
        RuntimeError,
        "At least one of offsets or lengths is required",
    ),
    (
        lambda: nested.nested_tensor_from_jagged(torch.ones(3), torch.tensor([0, 4])),
        RuntimeError,
        "does not lie within values",
    ),
    (
        lambda: nested.nested_tensor_from_jagged(torch.ones(3), torch.tensor([0, 2]), max_seqlen=1),
        RuntimeError,
        "max_seqlen is 1",
    ),
    (lambda: nested.to_padded_tensor(torch.ones(2), 0.0), RuntimeError, "expected a nested tensor"),
    (lambda: torch.ones(2).to_padded_tensor(0.0), NotImplementedError, "of nested tensors"),
    (lambda: jagged() + jagged(), RuntimeError, "cannot call binary pointwise function add.Tensor"),
    (
        lambda: jagged().sum(0),
        RuntimeError,
        "reducing along the batch dimension but not the ragged",
    ),
    (lambda: jagged().sum((1, 2)), RuntimeError, "reducing along a ragged and non-batch dimension"),
    (lambda: jagged().softmax(0), RuntimeError, "batch dimension"),
    (lambda: jagged().transpose(0, 1), ValueError, "Transpose is not supported on the batch"),
    (lambda: jagged().permute(1, 0, 2), ValueError, "Permute is not supported on the batch"),
    (lambda: jagged().unsqueeze(0), RuntimeError, r"unsqueeze\(\): not supported .* on dim=0"),
    (lambda: jagged().narrow(1, 0, 1), RuntimeError, r"narrow\(\): not supported .* on ragged dim"),
    (lambda: jagged().unbind(1), RuntimeError, "only supported for NestedTensor on dim=0"),
    (lambda: jagged()[3], IndexError, "out of range"),
    (lambda: jagged()[1:], RuntimeError, r"slice\(\): not supported for NestedTensor on dim=0"),
    (lambda: jagged().view(3, 7, 5), RuntimeError, "cannot view shape"),
    (lambda: torch.cat([jagged(), jagged()], -1), RuntimeError, "one ragged structure"),
    (lambda: jagged() @ jagged(), RuntimeError, "not supported between inputs of shapes"),
    (lambda: jagged().tolist(), RuntimeError, "not supported for tensor subclasses"),
    (lambda: jagged().numpy(), RuntimeError, "not supported for tensor subclasses"),
    (lambda: jagged().item(), RuntimeError, "cannot be converted to Scalar"),
    (broken_file, RuntimeError, "does not lie within values"),
]


@pytest.mark.parametrize("at", range(len(REFUSED)))
def test_what_is_refused(at: int) -> None:
    call, kind, words = REFUSED[at]
    with pytest.raises(kind, match=words):
        call()


def test_forward_mode() -> None:
    values, tangent, offsets = torch.arange(5.0), torch.ones(5), torch.tensor([0, 2, 5])

    def f(values: Any) -> Any:
        x = nested.nested_tensor_from_jagged(values, offsets)
        return (x * x).softmax(1).values()

    _, result = torch.func.jvp(f, (values,), (tangent,))
    leaf = values.clone().requires_grad_()
    rows = torch.stack([torch.autograd.grad(f(leaf)[at], leaf)[0] for at in range(5)])
    torch.testing.assert_close(result, rows @ tangent)


def test_duals_of_both_layouts() -> None:
    parts = [torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(4, 3)]
    tangents = [torch.ones(2, 3), torch.full((4, 3), 2.0)]
    with forward_ad.dual_level():
        for layout in (torch.jagged, torch.strided):
            x = nested.nested_tensor(parts, layout=layout)
            like = x.offsets() if layout is torch.jagged else None
            tangent = (
                nested.nested_tensor_from_jagged(torch.cat(tangents), like)
                if like is not None
                else nested.nested_tensor(tangents, layout=layout)
            )
            dual = forward_ad.make_dual(x, tangent)
            result = forward_ad.unpack_dual(dual * dual).tangent
            assert result is not None
            for got, part, moved in zip(result.unbind(), parts, tangents, strict=True):
                torch.testing.assert_close(got, 2 * part * moved)


def test_what_is_packed_twice_fits_together() -> None:
    padded, starts = torch.arange(30.0).reshape(2, 5, 3), torch.tensor([0, 1])
    x = nested.narrow(padded, 1, starts, torch.tensor([2, 3]), layout=torch.jagged)
    factor = torch.tensor([2.0, 3.0]).reshape(2, 1, 1)
    result = x * factor + x.contiguous() * factor
    first, second = result.unbind()
    torch.testing.assert_close(first, padded[0, :2] * 4)
    torch.testing.assert_close(second, padded[1, 1:4] * 6)
