"""Shapes and strides of pooled volumes, of items without channels, and refused unpooling."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback.nn import functional as F


def test_a_volume_without_batch_keeps_its_channels_last() -> None:
    batch = torch.arange(576.0).reshape(1, 3, 4, 6, 8).to(memory_format=torch.channels_last_3d)
    plain = F.max_pool3d(batch[0].contiguous(), 2, return_indices=True)
    for volume in (batch[0], batch[0].clone()):
        pooled = F.max_pool3d(volume, 2, return_indices=True)
        for got, expected in zip(pooled, plain, strict=True):
            assert got.unsqueeze(0).is_contiguous(memory_format=torch.channels_last_3d)
            assert got.stride() == (1, 36, 12, 3)
            assert torch.equal(got, expected)
            assert expected.is_contiguous()


def test_a_volume_is_no_batch_of_images() -> None:
    volume = torch.arange(576.0).reshape(3, 4, 6, 8).to(memory_format=torch.channels_last)
    assert F.max_pool3d(volume, 2).is_contiguous()


@pytest.mark.parametrize("name", ["adaptive_avg_pool", "adaptive_max_pool"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_an_item_may_have_no_channels(name: str, rank: int) -> None:
    x = torch.ones((0, *[6] * rank), requires_grad=True)
    pooled = getattr(F, f"{name}{rank}d")(x, 4)
    assert pooled.shape == (0, *[4] * rank)
    pooled.sum().backward()
    assert x.grad is not None
    assert x.grad.shape == x.shape
    with pytest.raises(RuntimeError, match="being empty"):
        getattr(F, f"{name}{rank}d")(torch.ones((2, 0, *[6] * (rank - 1))), 4)


def test_windows_without_result_say_that_the_output_is_too_small() -> None:
    for pool in (F.max_pool1d, F.max_pool1d_with_indices):
        with pytest.raises(RuntimeError, match="Output size is too small"):
            pool(torch.ones(1, 1, 4), 3, stride=2, dilation=2)


@pytest.mark.parametrize(
    ("rank", "window"),
    [
        (3, {"kernel_size": [1, 1]}),
        (3, {"kernel_size": 1, "stride": [1, 1]}),
        (3, {"kernel_size": 1, "padding": [0, 0]}),
        (2, {"kernel_size": [1, 1, 1]}),
        (1, {"kernel_size": [1, 1]}),
    ],
)
def test_windows_of_another_rank_unpool_nothing(rank: int, window: dict[str, Any]) -> None:
    x = torch.ones(1, 3, *[1] * rank)
    with pytest.raises(RuntimeError, match=f"exactly {rank} elements in"):
        getattr(F, f"max_unpool{rank}d")(x, torch.zeros_like(x, dtype=torch.int64), **window)
