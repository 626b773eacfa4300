"""``bcomplex32``: two ``bfloat16``, which are stored, moved, compared and converted.

What PyTorch 2.15 does with it was looked up by runs of it: it computes with none of these numbers
unless they stand beside wider ones. Expected values follow from the rounding of ``bfloat16``.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch

BC32 = torch.bcomplex32


def numbers() -> torch.Tensor:
    return torch.tensor([1 + 2j, 3.1, 1e30], dtype=BC32)


def parts(t: torch.Tensor) -> Any:
    """The parts as the integers of their bits."""
    return torch.view_as_real(t).view(torch.int16).tolist()


def test_the_properties_of_the_dtype() -> None:
    assert repr(BC32) == "torch.bcomplex32"
    assert BC32.is_complex
    assert BC32.is_signed
    assert not BC32.is_floating_point
    assert BC32.itemsize == 4
    assert BC32.to_real() is torch.bfloat16
    assert torch.bfloat16.to_complex() is BC32
    assert copy.deepcopy(BC32) is BC32
    assert pickle.loads(pickle.dumps(BC32)) is BC32
    info = torch.finfo(BC32)
    assert (info.dtype, info.bits, info.eps) == ("bfloat16", 16, 2.0**-7)


def test_numbers_are_rounded_to_bfloat16() -> None:
    assert numbers().tolist()[:2] == [1 + 2j, 3.09375 + 0j]
    assert numbers()[2].item().real == torch.tensor(1e30, dtype=torch.bfloat16).item()
    assert str(numbers()[:2]) == "tensor([1.0000+2.j, 3.0938+0.j], dtype=torch.bcomplex32)"
    wide = torch.randn(50, dtype=torch.complex64)
    halves = torch.view_as_real(wide).bfloat16()
    assert torch.equal(torch.view_as_real(wide.to(BC32)), halves)
    assert torch.equal(torch.view_as_real(wide[::2].to(BC32)), halves[::2])
    assert torch.equal(wide.to(BC32).to(torch.complex64), torch.view_as_complex(halves.float()))


@pytest.mark.parametrize(
    ("other", "both"),
    [
        (torch.bool, BC32),
        (torch.int64, BC32),
        (torch.bfloat16, BC32),
        (torch.float16, torch.complex64),
        (torch.complex32, torch.complex64),
        (torch.float32, torch.complex64),
        (torch.complex64, torch.complex64),
        (torch.float64, torch.complex128),
        (torch.complex128, torch.complex128),
    ],
)
def test_other_dtypes_meet_it_in_one_that_holds_both(other: Any, both: Any) -> None:
    assert torch.promote_types(BC32, other) is both
    assert torch.promote_types(other, BC32) is both
    assert torch.can_cast(other, BC32)
    back = numbers()[:2].to(other)
    assert back.dtype is other
    assert torch.zeros(2, dtype=other).to(BC32).tolist() == [0, 0]


def test_elements_are_made_moved_and_written() -> None:
    x = numbers()[:2]
    assert torch.zeros(2, dtype=BC32).tolist() == [0, 0]
    assert torch.cat([x, x])[::2].tolist() == [1 + 2j, 1 + 2j]
    assert torch.stack([x, x.cfloat()]).dtype is torch.complex64
    assert x[torch.tensor([1, 0])].tolist() == x.roll(1).tolist()
    assert torch.where(torch.tensor([True, False]), x, x.flip(0)).tolist() == [1 + 2j, 1 + 2j]
    assert x.masked_fill(torch.tensor([True, False]), 1j)[0].item() == 1j
    assert x.clone().copy_(torch.tensor([1j, 2])).tolist() == [1j, 2]
    assert x.view(torch.bfloat16).tolist() == [1, 2, 3.09375, 0]
    assert x.imag.tolist() == [2, 0]
    y = x.clone()
    y.real.zero_()
    assert y.tolist() == [2j, 0]
    z = torch.zeros(2, dtype=BC32)
    z.index_put_((torch.tensor([0, 0]),), x, accumulate=True)
    assert z[0].item() == 4.09375 + 2j
    assert ((x == x.clone()).tolist(), x.any().item(), x.isnan().tolist()) == (
        [True, True],
        True,
        [False, False],
    )
    assert x.conj().resolve_conj().tolist() == [1 - 2j, 3.09375]


def test_random_numbers_have_parts_as_those_of_complex_numbers_do() -> None:
    torch.manual_seed(0)
    drawn = torch.rand(1000, dtype=BC32).cfloat()
    assert 0 <= drawn.real.min() < 0.1 < 0.9 < drawn.imag.max() <= 1
    normal = torch.randn(1000, dtype=BC32).cfloat()
    assert abs(normal.abs().square().mean().item() - 1) < 0.2
    with pytest.raises(NotImplementedError, match="Float8_e5m2"):
        torch.rand(2, dtype=torch.float8_e5m2)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + x,
        lambda x: x * x,
        lambda x: x / x,
        lambda x: -x,
        lambda x: x.abs(),
        lambda x: x.exp(),
        lambda x: x.sum(),
        lambda x: x @ x,
        lambda x: x.cumsum(0),
        lambda x: x.view(1, 2) @ x.view(2, 1),
        lambda x: torch.sparse_coo_tensor(torch.tensor([[0, 1]]), x),
    ],
)
def test_what_has_no_kernel_names_the_dtype(call: Callable[[torch.Tensor], Any]) -> None:
    with pytest.raises(NotImplementedError, match="BComplex32"):
        call(numbers()[:2])


def test_beside_wider_numbers_it_is_computed_with() -> None:
    x = numbers()[:2]
    for wide in (torch.ones(2), torch.ones(2, dtype=torch.complex64)):
        assert (x + wide).tolist() == [2 + 2j, 4.09375]
        assert (wide * x).dtype is torch.complex64


def test_gradients_pass_through_conversions() -> None:
    x = torch.tensor([3 + 4j, 1], requires_grad=True)
    x.to(BC32).to(torch.complex64).abs().sum().backward()
    assert torch.allclose(x.grad, torch.tensor([0.6 + 0.8j, 1]), atol=4e-3)


def test_files_and_copies_keep_it() -> None:
    x = numbers()
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    for again in (torch.load(file), pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert again.dtype is BC32
        assert parts(again) == parts(x)
    with pytest.raises(TypeError):
        x.numpy()
    with pytest.raises(BufferError, match="BComplex32 type is not supported by dlpack"):
        x.__dlpack__()


def test_what_is_not_zero_is_found_and_slices_are_filled() -> None:
    x = torch.tensor([1, 0, 2j]).to(BC32)
    assert x.nonzero().tolist() == torch.argwhere(x).tolist() == [[0], [2]]
    assert x.nonzero(as_tuple=True)[0].tolist() == [0, 2]
    assert torch.nonzero_static(x, size=3).tolist() == [[0], [2], [-1]]
    index = torch.tensor([1])
    assert x.index_fill(0, index, 3 + 1j).to(torch.complex64).tolist() == [1, 3 + 1j, 2j]
    assert x.index_fill(0, index, torch.tensor(4.0)).to(torch.complex64).tolist() == [1, 4, 2j]
    narrow = torch.ones(3).to(torch.float8_e5m2)
    with pytest.raises(NotImplementedError, match=r"nonzero_count_cpu.*'Float8_e5m2'"):
        narrow.nonzero()
    with pytest.raises(NotImplementedError, match=r"index_fill_cpu.*'Float8_e5m2'"):
        narrow.index_fill_(0, index, 2.0)
    assert narrow.float().tolist() == [1, 1, 1]


def test_the_sign_is_refused_in_its_own_words() -> None:
    x = torch.tensor([1, 0]).to(BC32)
    with pytest.raises(NotImplementedError, match="\"sgn_cpu\" not implemented for 'BComplex32'"):
        x.sgn()
