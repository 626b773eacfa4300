"""Whatever sizes, strides and offsets are asked for: no tensor reaches beyond its storage."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

import pullback as torch
from pullback import _C

DTYPES = [torch.uint8, torch.int16, torch.float32, torch.float64, torch.complex128, torch.bool]
NUMBERS = [0, 1, 2, 3, 5, 7, -1, -3, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63)]
# (Chosen often, so that many calls are valid.)
SMALL = [0, 1, 1, 2, 2, 3, 4]

Numbers = Sequence[int]


def over(size: int, dtype: torch.dtype, place: int, sizes: Numbers, strides: Numbers) -> object:
    storage = _C._storage_from_bytes(bytes(size))
    return _C._tensor_over(storage, dtype, place, list(sizes), list(strides))


def as_strided(
    size: int, dtype: torch.dtype, place: int, sizes: Numbers, strides: Numbers
) -> object:
    whole = torch.frombuffer(bytearray(size), dtype=dtype)
    return whole.as_strided(sizes, strides, place)


def in_place(size: int, dtype: torch.dtype, place: int, sizes: Numbers, strides: Numbers) -> object:
    return torch.zeros(size // dtype.itemsize, dtype=dtype).as_strided_(sizes, strides, place)


def set_(size: int, dtype: torch.dtype, place: int, sizes: Numbers, strides: Numbers) -> object:
    storage = _C._storage_from_bytes(bytes(size))
    return torch.empty(0, dtype=dtype).set_(storage, place, tuple(sizes), tuple(strides))


WAYS: dict[str, Callable[[int, torch.dtype, int, Numbers, Numbers], object]] = {
    "_tensor_over": over,
    "as_strided": as_strided,
    "as_strided_": in_place,
    "set_": set_,
}


def reach(place: int, sizes: Numbers, strides: Numbers) -> int:
    """One more than the furthest element, in elements; 0 if there are none."""
    if 0 in sizes:
        return 0
    steps = zip(sizes, strides, strict=True)
    return place + sum((size - 1) * stride for size, stride in steps) + 1


@pytest.mark.parametrize("name", WAYS)
def test_what_is_made_lies_inside_and_all_else_is_refused(name: str) -> None:
    rng = random.Random(name)
    made = refused = 0
    for _ in range(4000):
        number = SMALL if rng.random() < 0.8 else NUMBERS
        rank = rng.randrange(4)
        sizes = [rng.choice(number) for _ in range(rank)]
        strides = [rng.choice(number) for _ in range(rank + rng.choice([0, 0, 0, 0, 1, -1]))]
        dtype, place = rng.choice(DTYPES), rng.choice(number)
        size = dtype.itemsize * rng.choice([1, 2, 7, 30])
        try:
            tensor = WAYS[name](size, dtype, place, sizes, strides)
        except (RuntimeError, ValueError, IndexError, TypeError, OverflowError):
            refused += 1
            continue
        made += 1
        assert isinstance(tensor, torch.Tensor)
        assert len(sizes) == len(strides)
        have = tensor.untyped_storage().nbytes()
        assert reach(place, sizes, strides) * dtype.itemsize <= have, (sizes, strides, place, have)
        if tensor.numel() and tensor.numel() < 1000:
            tensor.tolist()
    assert made > 100, "some are valid"
    assert refused > 100, "some are not"


def test_sizes_and_strides_are_as_many() -> None:
    storage = _C._storage_from_bytes(bytes(12))
    with pytest.raises(RuntimeError, match="unequal size length"):
        _C._tensor_over(storage, torch.float32, 0, [3], [1, 2**40])


def test_absurd_sizes_beside_a_zero_are_answered_or_refused_at_once() -> None:
    wide, tall = torch.empty(0, 2**40), torch.empty(2**40, 0)
    assert repr(tall) == "tensor([], size=(1099511627776, 0))"
    assert wide.tolist() == []
    with pytest.raises(torch.OutOfMemoryError, match="1099511627776 empty lists"):
        tall.tolist()
    assert torch.empty(3, 0).tolist() == [[], [], []]
