"""``embedding_bag`` and ``EmbeddingBag``, beside the same written as a loop over bags."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback import nn
from pullback.autograd import gradcheck

LIST = [0, 1, 2, 3, 1, 2]


def one_by_one(
    indices: list[int], weight: Any, offsets: list[int], mode: str, padding_idx: int | None = None
) -> Any:
    """The result, bag by bag."""
    out = []
    for start, end in zip(offsets, [*offsets[1:], len(indices)], strict=True):
        bag = [index for index in indices[start:end] if index != padding_idx]
        if not bag:
            out.append(weight.new_zeros(weight.size(1)))
            continue
        rows = torch.stack([weight[index] for index in bag])
        out.append({"sum": rows.sum(0), "mean": rows.mean(0), "max": rows.amax(0)}[mode])
    return torch.stack(out)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("offsets", [[0], [0, 2], [0, 2, 2, 5], [0, 0, 6]])
@pytest.mark.parametrize("padding_idx", [None, 1, -3])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_bags_of_a_list(
    mode: str, offsets: list[int], padding_idx: int | None, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    weight = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    other = weight.detach().clone().requires_grad_()
    out = F.embedding_bag(
        torch.tensor(LIST, dtype=dtype),
        weight,
        torch.tensor(offsets, dtype=dtype),
        mode=mode,
        padding_idx=padding_idx,
    )
    left_out = None if padding_idx is None else padding_idx % 4
    expected = one_by_one(LIST, other, offsets, mode, left_out)
    assert torch.allclose(out, expected)
    factors = torch.randn_like(out)
    (out * factors).sum().backward()
    (expected * factors).sum().backward()
    assert torch.allclose(weight.grad, other.grad)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_a_matrix(mode: str) -> None:
    weight = torch.randn(4, 3, dtype=torch.float64)
    out = F.embedding_bag(torch.tensor([LIST[:3], LIST[3:]]), weight, mode=mode)
    assert torch.allclose(out, one_by_one(LIST, weight, [0, 3], mode))
    assert (
        F.embedding_bag(torch.ones(2, 0, dtype=torch.int64), weight, mode=mode).tolist()
        == [[0.0] * 3] * 2
    )
    assert F.embedding_bag(torch.ones(0, 2, dtype=torch.int64), weight, mode=mode).shape == (0, 3)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_derivatives(mode: str) -> None:
    torch.manual_seed(1)
    weight = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    indices, offsets = torch.tensor(LIST), torch.tensor([0, 2, 2])
    assert gradcheck(lambda w: F.embedding_bag(indices, w, offsets, mode=mode), (weight,))


def test_factors() -> None:
    weight = torch.arange(12.0).reshape(4, 3).requires_grad_()
    factors = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], requires_grad=True)
    out = F.embedding_bag(
        torch.tensor(LIST),
        weight,
        torch.tensor([0, 2]),
        mode="sum",
        per_sample_weights=factors,
        padding_idx=1,
    )
    out.sum().backward()
    assert out.tolist() == [[0.0, 1.0, 2.0], [90.0, 103.0, 116.0]]
    assert factors.grad.tolist() == [3.0, 0.0, 21.0, 30.0, 0.0, 21.0]
    assert weight.grad[:, 0].tolist() == [1.0, 0.0, 9.0, 4.0]


def test_of_equal_maxima_the_first_has_the_gradient() -> None:
    weight = torch.ones(4, 2, requires_grad=True)
    F.embedding_bag(torch.tensor(LIST), weight, torch.tensor([0, 2]), mode="max").sum().backward()
    assert weight.grad[:, 0].tolist() == [1.0, 0.0, 1.0, 0.0]


def test_maxima_of_nan() -> None:
    weight = torch.tensor([[1.0], [float("nan")], [-float("inf")], [2.0]])
    out = F.embedding_bag(torch.tensor(LIST), weight, torch.tensor([0, 2, 3]), mode="max")
    assert out[0].isnan().all()
    assert out[1].tolist() == [-float("inf")]
    assert out[2].isnan().all()


def test_sparse_gradients_and_frequencies() -> None:
    indices, offsets = torch.tensor(LIST), torch.tensor([0, 2])
    dense = torch.randn(4, 3).requires_grad_()
    sparse = dense.detach().clone().requires_grad_()
    F.embedding_bag(indices, dense, offsets).sum().backward()
    F.embedding_bag(indices, sparse, offsets, sparse=True).sum().backward()
    assert sparse.grad.is_sparse
    assert torch.allclose(sparse.grad.to_dense(), dense.grad)
    dense.grad = None
    F.embedding_bag(indices, dense, offsets, mode="sum", scale_grad_by_freq=True).sum().backward()
    assert torch.allclose(dense.grad, torch.ones(4, 3))


def test_rows_are_scaled_down() -> None:
    weight = torch.full((4, 4), 3.0)
    F.embedding_bag(torch.tensor([0, 2]), weight, torch.tensor([0]), max_norm=1.0)
    assert weight[0].norm().item() == pytest.approx(1.0, abs=1e-4)
    assert weight[1].tolist() == [3.0] * 4


def test_the_last_offset_is_an_end() -> None:
    weight = torch.arange(8.0).reshape(4, 2)
    indices = torch.tensor([0, 1, 2, 3])
    both = F.embedding_bag(indices, weight, torch.tensor([0, 1, 4]), include_last_offset=True)
    assert both.tolist() == [[0.0, 1.0], [4.0, 5.0]]
    # What lies behind it is in no bag.
    one = F.embedding_bag(indices, weight, torch.tensor([0, 2]), include_last_offset=True)
    assert one.tolist() == [[1.0, 2.0]]
    none = torch.tensor([], dtype=torch.int64)
    assert F.embedding_bag(indices, weight, none).shape == (0, 2)
    assert F.embedding_bag(none, weight, torch.tensor([0, 0])).tolist() == [[0.0, 0.0]] * 2


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"offsets": None}, ValueError, "offsets has to be a 1D Tensor but got None"),
        ({"offsets": torch.tensor([[0]])}, ValueError, "offsets has to be a 1D Tensor"),
        ({"offsets": torch.tensor([1])}, RuntimeError, "has to be 0"),
        ({"offsets": torch.tensor([0, 9])}, RuntimeError, "can not be greater than input's length"),
        ({"offsets": torch.tensor([0, 3, 2])}, RuntimeError, "ascending order"),
        ({"offsets": torch.tensor([0.0])}, RuntimeError, "'offsets' to have one of the following"),
        ({"input": torch.zeros(2, 2, dtype=torch.int64)}, ValueError, "offsets has to be None"),
        ({"input": torch.zeros(2, 2, 2, dtype=torch.int64)}, ValueError, "dimension 3"),
        ({"input": torch.tensor([1.0])}, RuntimeError, "'indices' to have one of the following"),
        ({"input": torch.tensor([0, 4])}, RuntimeError, "Index 1 of input takes value 4"),
        ({"input": torch.tensor([0, -1])}, RuntimeError, r"not in the valid range \[0, 4\)"),
        ({"weight": torch.ones(4)}, ValueError, "weight has to be a 2D Tensor"),
        ({"weight": torch.ones(4, 3).long()}, RuntimeError, "Half, BFloat16, Float, Double"),
        ({"mode": "prod"}, ValueError, "mode has to be one of sum, mean or max"),
        ({"mode": "max", "sparse": True}, ValueError, "does not support sparse weights"),
        ({"mode": "max", "scale_grad_by_freq": True}, ValueError, "gradient by the frequency"),
        (
            {"per_sample_weights": torch.ones(6)},
            NotImplementedError,
            "only supported for mode='sum'",
        ),
        ({"mode": "sum", "per_sample_weights": torch.ones(5)}, ValueError, "same shape"),
        (
            {"mode": "sum", "per_sample_weights": torch.ones(6).double()},
            RuntimeError,
            "does not equal torch.DoubleTensor",
        ),
        ({"padding_idx": 7}, RuntimeError, "-4 through 3, but got 7"),
        (
            {"offsets": torch.tensor([]).long(), "include_last_offset": True},
            RuntimeError,
            "should be at least 1",
        ),
    ],
)
def test_what_does_not_fit(change: dict[str, Any], error: type[Exception], text: str) -> None:
    arguments = {
        "input": torch.tensor(LIST),
        "weight": torch.ones(4, 3),
        "offsets": torch.tensor([0, 2]),
    }
    with pytest.raises(error, match=text):
        F.embedding_bag(**{**arguments, **change})


def test_the_former_order_of_arguments() -> None:
    weight, indices, offsets = torch.ones(4, 3), torch.tensor(LIST), torch.tensor([0, 2])
    with pytest.warns(UserWarning, match="Argument order of nn.functional.embedding_bag"):
        assert F.embedding_bag(weight, indices, offsets).shape == (2, 3)


def test_module() -> None:
    torch.manual_seed(0)
    bag = nn.EmbeddingBag(4, 3, mode="sum", padding_idx=-3)
    assert repr(bag) == "EmbeddingBag(4, 3, mode='sum', padding_idx=1)"
    assert bag.weight[1].tolist() == [0.0] * 3
    indices, offsets = torch.tensor(LIST), torch.tensor([0, 2])
    expected = F.embedding_bag(indices, bag.weight, offsets, mode="sum", padding_idx=1)
    assert torch.equal(bag(indices, offsets), expected)
    assert list(bag.state_dict()) == ["weight"]
    table = torch.ones(4, 3)
    shared = nn.EmbeddingBag.from_pretrained(table)
    assert not shared.weight.requires_grad
    assert shared.weight.data_ptr() == table.data_ptr()
    assert nn.EmbeddingBag.from_pretrained(table, freeze=False).weight.requires_grad
    shown = repr(nn.EmbeddingBag(4, 3, max_norm=1.0, scale_grad_by_freq=True, norm_type=1.0))
    assert shown == (
        "EmbeddingBag(4, 3, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True, mode='mean')"
    )
    with pytest.raises(AssertionError, match="padding_idx must be within num_embeddings"):
        nn.EmbeddingBag(4, 3, padding_idx=9)
    with pytest.raises(AssertionError, match="Shape of weight does not match"):
        nn.EmbeddingBag(4, 3, _weight=torch.ones(3, 4))
    with pytest.raises(AssertionError, match="expected to be 2-dimensional"):
        nn.EmbeddingBag.from_pretrained(torch.ones(3))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("index", [-1, 4])
def test_indices_out_of_range_are_named_with_their_value(mode, index):
    weight, given = torch.ones(4, 2), torch.tensor([[0, index]])
    with pytest.raises(RuntimeError, match=rf"Expected idx >= 0 .* but found idx to be {index}"):
        F.embedding_bag(given, weight, mode=mode, padding_idx=0)
    text = "but found idx" if mode == "max" else "which is not in the valid range"
    with pytest.raises(RuntimeError, match=text):
        F.embedding_bag(given, weight, mode=mode)
