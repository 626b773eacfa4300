"""Data sets and their combinations, and how items become batches."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import pytest

import pullback as torch
from pullback.utils import data

Pair = namedtuple("Pair", "left right")


def numbers(*values: int) -> Any:
    return data.TensorDataset(torch.tensor(values))


def test_tensor_datasets_have_one_length() -> None:
    dataset = data.TensorDataset(torch.arange(3), torch.ones(3, 2))
    assert len(dataset) == 3
    left, right = dataset[1]
    assert left.item() == 1
    assert right.shape == (2,)
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        data.TensorDataset(torch.ones(3), torch.ones(4))


def test_concatenation_counts_through_from_both_ends() -> None:
    both = numbers(1, 2) + numbers(3)
    assert [both[k][0].item() for k in (0, 1, 2, -1, -3)] == [1, 2, 3, 3, 1]
    assert both.cumulative_sizes == [2, 3]
    with pytest.raises(ValueError, match="absolute value of index"):
        both[-4]
    with pytest.raises(AssertionError, match="should not be an empty iterable"):
        data.ConcatDataset([])


class Count(data.IterableDataset[int]):
    def __init__(self, stop: int) -> None:
        self.stop = stop

    def __iter__(self) -> Any:
        return iter(range(self.stop))

    def __len__(self) -> int:
        return self.stop


def test_streams_are_chained() -> None:
    chain = Count(2) + Count(3)
    assert list(chain) == [0, 1, 0, 1, 2]
    assert len(chain) == 5
    with pytest.raises(AssertionError, match="only supports IterableDataset"):
        list(data.ChainDataset([numbers(1)]))
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        data.ConcatDataset([Count(2)])


def test_stacks_give_tuples_or_dicts() -> None:
    stacked = data.StackDataset(range(3), "abc")
    assert stacked[1] == (1, "b")
    assert stacked.__getitems__([0, 2]) == [(0, "a"), (2, "c")]
    named = data.StackDataset(number=range(3), letter="abc")
    assert named[2] == {"number": 2, "letter": "c"}
    assert named.__getitems__([1]) == [{"number": 1, "letter": "b"}]
    with pytest.raises(ValueError, match="Size mismatch between datasets"):
        data.StackDataset(range(3), range(4))
    with pytest.raises(ValueError, match="At least one dataset"):
        data.StackDataset()
    with pytest.raises(ValueError, match="both types are given"):
        data.StackDataset(range(3), letter="abc")


def test_a_subset_maps_indices_and_guards_its_overrides() -> None:
    subset = data.Subset(range(10, 20), [3, 5, 7])
    assert [subset[0], *subset.__getitems__([1, 2])] == [13, 15, 17]
    assert len(subset) == 3
    with pytest.raises(NotImplementedError, match="overrides __getitem__ but not __getitems__"):
        type("Doubled", (data.Subset,), {"__getitem__": lambda self, k: 2})(range(3), [0])


def test_splits_are_disjoint_and_use_up_everything() -> None:
    parts = data.random_split(range(11), [0.5, 0.25, 0.25])
    assert [len(part) for part in parts] == [6, 3, 2]
    assert sorted(item for part in parts for item in part) == list(range(11))
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        data.random_split(range(5), [2, 2])
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        data.random_split(range(5), [1.5, -0.5])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        data.random_split(range(3), [0.9, 0.1])


def test_numbers_become_tensors_of_their_kind() -> None:
    assert data.default_collate([1, 2]).dtype == torch.int64
    assert data.default_collate([1.5, 2.0]).dtype == torch.float64
    assert data.default_collate([True, False]).dtype == torch.bool
    assert data.default_collate(["a", "b"]) == ["a", "b"]
    assert data.default_collate([torch.ones(2), torch.zeros(2)]).shape == (2, 2)


def test_containers_are_walked_and_keep_their_type() -> None:
    batch = data.default_collate([{"a": 1, "b": [1, 2]}, {"a": 3, "b": [4, 5]}])
    assert batch["a"].tolist() == [1, 3]
    assert [part.tolist() for part in batch["b"]] == [[1, 4], [2, 5]]
    pairs = data.default_collate([Pair(1, "x"), Pair(2, "y")])
    assert isinstance(pairs, Pair)
    assert pairs.right == ("x", "y")
    assert type(data.default_collate([(1, 2), (3, 4)])) is list
    assert type(data.default_collate([OrderedDict(a=1)])) is OrderedDict
    assert type(data.default_collate([range(2), range(2)])) is list


def test_what_no_tensor_can_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors"):
        data.default_collate([object()])
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        data.default_collate([[1], [1, 2]])


def test_arrays_are_converted_where_numpy_is_loaded() -> None:
    numpy = pytest.importorskip("numpy")
    assert data.default_collate([numpy.float64(1), numpy.float64(2)]).dtype == torch.float64
    assert data.default_collate([numpy.float32(1), numpy.float32(2)]).dtype == torch.float32
    assert data.default_collate([numpy.arange(3)] * 2).shape == (2, 3)
    with pytest.raises(TypeError, match="found <U1"):
        data.default_collate([numpy.array(["a"])])
    converted = data.default_convert({"a": numpy.arange(3), "b": ("x", numpy.float32(2))})
    assert converted["a"].tolist() == [0, 1, 2]
    assert converted["b"][0] == "x"
    assert isinstance(converted["b"][1], torch.Tensor)
    text = numpy.array(["a"])
    assert data.default_convert(text) is text


def test_an_own_table_decides_first() -> None:
    from pullback.utils.data.collate import collate

    table = {int: lambda batch, *, collate_fn_map: sum(batch)}
    assert collate([{"a": 1}, {"a": 2}], collate_fn_map=table) == {"a": 3}
