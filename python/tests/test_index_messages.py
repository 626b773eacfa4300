"""What is said first where sizes, dtypes and indices do not fit."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch


@pytest.mark.parametrize(
    ("a", "b", "sizes"),
    [
        ((10, 10), (11, 11), (10, 11, 1)),
        ((3, 10, 10), (4, 10, 11), (10, 11, 2)),
        ((3, 10, 10), (4, 10, 10), (3, 4, 0)),
        ((2, 5), (3, 4, 1, 6), (5, 6, 3)),
    ],
)
def test_the_last_dimension_that_does_not_match_is_named(a: Any, b: Any, sizes: Any) -> None:
    phrase = (
        rf"tensor a \({sizes[0]}\) must match the size of tensor b \({sizes[1]}\) "
        rf"at non-singleton dimension {sizes[2]}"
    )
    x, y = torch.zeros(a), torch.zeros(b)
    for call in (torch.add, lambda x, y: torch._foreach_add([x], [y])):
        with pytest.raises(RuntimeError, match=phrase):
            call(x, y)


@pytest.mark.parametrize("values", [[], [1.0, 2.0, 3.0], [1, 2, 3]])
def test_the_shape_of_values_is_looked_at_before_their_dtype(values: list[Any]) -> None:
    x = torch.arange(4)
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape"):
        x[x > -1] = torch.tensor(values)
    if len(values) == 3:
        with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape"):
            x.index_put_((torch.tensor([0, 1]),), torch.tensor(values))
    with pytest.raises(RuntimeError, match="source and destination dtypes match, got Long"):
        x[x > -1] = torch.zeros(4)
    assert x.tolist() == [0, 1, 2, 3]


def test_a_dimension_without_elements_has_no_index() -> None:
    phrase = "index is out of bounds for dimension with size 0"
    for x, index in [
        (torch.empty(10, 0), (slice(None), [0, 1])),
        (torch.empty(0, 2), ([0, 5],)),
        (torch.empty(0, 3), ([0], [1])),
    ]:
        with pytest.raises(IndexError, match=phrase):
            x[index]
    assert torch.empty(10, 0)[[], []].shape == (0,)
