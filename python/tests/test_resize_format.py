"""``resize_`` and ``resize_as_`` with a memory format."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch

CASES = [
    ((2, 3, 4, 5), torch.channels_last, (60, 1, 15, 3)),
    ((2, 3, 2, 2, 5), torch.channels_last_3d, (60, 1, 30, 15, 3)),
    ((2, 3, 4, 5), torch.contiguous_format, (60, 20, 5, 1)),
    ((0, 3, 4, 5), torch.channels_last, (60, 1, 15, 3)),
]


@pytest.mark.parametrize(("shape", "layout", "strides"), CASES)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_the_elements_keep_their_order_in_memory(
    shape: tuple[int, ...], layout: Any, strides: tuple[int, ...], device: str
) -> None:
    x = torch.arange(7.0, device=device)
    version = x._version
    assert x.resize_(shape, memory_format=layout) is x
    assert (x.shape, x.stride(), x._version) == (shape, strides, version + 1)
    if device == "cpu" and x.numel():
        assert x.as_strided((7,), (1,)).tolist() == list(range(7))


def test_the_same_sizes_take_another_format() -> None:
    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    x.resize_(1, 2, 3, 4, memory_format=torch.channels_last)
    assert x.stride() == (24, 1, 8, 2)
    assert x[0, :, 0, 0].tolist() == [0, 1]
    x.resize_(1, 2, 3, 4)
    assert x.stride() == (24, 1, 8, 2)


def test_the_format_of_the_template_is_kept_where_asked() -> None:
    image = torch.zeros(1, 2, 3, 4).to(memory_format=torch.channels_last)
    volume = torch.zeros(1, 2, 3, 2, 2).to(memory_format=torch.channels_last_3d)
    preserve: Any = torch.preserve_format
    for template in (image, volume):
        got = torch.zeros(24).resize_as_(template, memory_format=preserve)
        assert got.stride() == template.stride()
        assert torch.zeros(24).resize_as_(template).is_contiguous()
    assert torch.zeros(6).resize_as_(torch.zeros(2, 3).T, memory_format=preserve).stride() == (2, 1)
    got = torch.zeros(24).resize_as_(image.contiguous(), memory_format=torch.channels_last)
    assert got.stride() == image.stride()


@pytest.mark.parametrize(
    ("layout", "phrase"),
    [
        (torch.channels_last, "required rank 4 tensor to use channels_last format"),
        (torch.channels_last_3d, "required rank 5 tensor to use channels_last_3d format"),
        (torch.preserve_format, "Unsupported memory format"),
    ],
)
def test_formats_that_do_not_fit_leave_the_tensor_as_it_is(layout: Any, phrase: str) -> None:
    x = torch.arange(24)
    with pytest.raises(RuntimeError, match=phrase):
        x.resize_(2, 3, 4, memory_format=layout)
    assert (x.shape, x._version) == ((24,), 0)
