"""Derivatives of ``pullback.masked``: both modes, twice, in batches, and of what is masked out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import pullback as torch
from pullback import masked
from pullback.autograd import forward_ad as fwAD
from pullback.autograd import gradcheck, gradgradcheck

MASK = torch.tensor([[True, False, True, True], [True, True, False, True], [True] * 4])
OTHER = torch.arange(12.0, dtype=torch.float64).reshape(3, 4).cos()
# (No column and no row without an element that counts, and at least two in each.)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda x, m: masked.sum(x, 1, mask=m),
    "sum_all": lambda x, m: masked.sum(x, mask=m),
    "prod": lambda x, m: masked.prod(x, (0, 1), mask=m),
    "amax": lambda x, m: masked.amax(x, 1, mask=m),
    "amin": lambda x, m: masked.amin(x, None, keepdim=True, mask=m),
    "mean": lambda x, m: masked.mean(x, 0, mask=m),
    "median": lambda x, m: masked.median(x, 1, mask=m),
    "norm_2": lambda x, m: masked.norm(x, 2, 1, mask=m),
    "norm_1": lambda x, m: masked.norm(x, 1, mask=m),
    "norm_3": lambda x, m: masked.norm(x, 3, (1,), keepdim=True, mask=m),
    "norm_half": lambda x, m: masked.norm(x, 0.5, 1, mask=m),
    "norm_inf": lambda x, m: masked.norm(x, math.inf, 0, mask=m),
    "norm_minus_inf": lambda x, m: masked.norm(x, -math.inf, 0, mask=m),
    "norm_minus_1": lambda x, m: masked.norm(x, -1, 1, mask=m),
    "var": lambda x, m: masked.var(x, 1, mask=m),
    "var_uncorrected": lambda x, m: masked.var(x, None, False, keepdim=True, mask=m),
    "std": lambda x, m: masked.std(x, 1, correction=0.5, mask=m),
    "logsumexp": lambda x, m: masked.logsumexp(x, 1, mask=m),
    "softmax": lambda x, m: masked.softmax(x, 1, mask=m),
    "softmin": lambda x, m: masked.softmin(x, 0, mask=m),
    "normalize": lambda x, m: masked.normalize(x, 2, 1, mask=m),
    "normalize_3": lambda x, m: masked.normalize(x, 3, 0, eps=1e-3, mask=m),
    "cumsum": lambda x, m: masked.cumsum(x, 1, mask=m),
    "cumprod": lambda x, m: masked.cumprod(x, 1, mask=m),
    "logaddexp": lambda x, m: masked.logaddexp(x, OTHER, input_mask=m),
}
COMPLEX = [
    name
    for name in FUNCTIONS
    if name.partition("_")[0] in ("sum", "prod", "mean", "var", "std", "logsumexp", "cumsum")
    or name in ("cumprod", "norm_2", "norm_1", "norm_3", "normalize")
]


def point(dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Numbers whose absolute values are all different, none near zero."""
    order = torch.tensor([5, 2, 9, 4, 11, 7, 1, 8, 3, 12, 6, 10]).reshape(3, 4)
    x = (order * 0.15 + 0.2) * torch.tensor([1, -1, 1, -1])
    if dtype.is_complex:
        return torch.complex(x.double(), (order * 0.7).cos().double()).to(dtype)
    return x.to(dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_agree_with_differences(name: str) -> None:
    x = point().requires_grad_()
    assert gradcheck(
        lambda x: FUNCTIONS[name](x, MASK),
        (x,),
        check_forward_ad=True,
        check_batched_grad=True,
        check_batched_forward_grad=True,
    )
    assert gradgradcheck(lambda x: FUNCTIONS[name](x, MASK), (x,), check_fwd_over_rev=True)


def test_derivatives_of_log_softmax_where_it_is_finite() -> None:
    x = point().requires_grad_()
    flags = MASK.nonzero(as_tuple=True)
    assert gradcheck(
        lambda x: masked.log_softmax(x, 1, mask=MASK)[flags], (x,), check_forward_ad=True
    )
    assert gradgradcheck(lambda x: masked.log_softmax(x, 1, mask=MASK)[flags], (x,))


@pytest.mark.parametrize("name", COMPLEX)
def test_derivatives_of_complex_numbers(name: str) -> None:
    x = point(torch.complex128).requires_grad_()
    assert gradcheck(lambda x: FUNCTIONS[name](x, MASK), (x,), check_forward_ad=True)
    assert gradgradcheck(lambda x: FUNCTIONS[name](x, MASK), (x,))


def test_products_can_be_derived_where_factors_are_zero() -> None:
    x = point()
    x[0, 0] = x[1, 1] = x[1, 3] = x[2, 3] = 0
    x.requires_grad_()
    for name in ("prod", "cumprod"):
        assert gradcheck(lambda x, name=name: FUNCTIONS[name](x, MASK), (x,))
        assert gradgradcheck(lambda x, name=name: FUNCTIONS[name](x, MASK), (x,))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("filler", [math.nan, math.inf, -math.inf, 0.0])
def test_what_is_masked_out_has_no_gradient_and_spoils_none(name: str, filler: float) -> None:
    function = FUNCTIONS[name]
    clean = point().requires_grad_()
    x = point().masked_fill(~MASK, filler).requires_grad_()
    x_result, result = function(x, MASK), function(clean, MASK)
    assert torch.equal(x_result, result)
    seed = torch.arange(1, result.numel() + 1, dtype=torch.float64).reshape(result.shape)
    (expected,) = torch.autograd.grad(result, clean, seed)
    (found,) = torch.autograd.grad(x_result, x, seed)
    assert torch.equal(found, expected)
    assert (found[~MASK] == 0).all()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("filler", [math.nan, math.inf])
def test_tangents_of_what_is_masked_out_do_not_matter(name: str, filler: float) -> None:
    tangents = []
    for x, tangent in (
        (point(), torch.ones(3, 4, dtype=torch.float64)),
        (point().masked_fill(~MASK, filler), torch.where(MASK, 1.0, filler).double()),
    ):
        with fwAD.dual_level():
            result = FUNCTIONS[name](fwAD.make_dual(x, tangent), MASK)
            tangents.append(fwAD.unpack_dual(result).tangent)
    assert torch.equal(*tangents)
    assert tangents[0].isfinite().all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_lines_without_elements_that_count_have_no_gradient(name: str) -> None:
    none = torch.zeros(3, 4, dtype=torch.bool)
    for filler in (1.0, math.nan, math.inf):
        x = torch.full((3, 4), filler, dtype=torch.float64, requires_grad=True)
        FUNCTIONS[name](x, none).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [[0] * 4] * 3


@pytest.mark.parametrize("name", FUNCTIONS)
def test_batches_of_inputs_and_of_masks(name: str) -> None:
    function = FUNCTIONS[name]
    x, m = torch.stack([point(), point().flip(1)]), torch.stack([MASK, MASK.flip(0)])
    together = torch.func.vmap(function)(x, m)
    one_by_one = torch.stack([function(a, b) for a, b in zip(x, m, strict=True)])
    torch_close(together, one_by_one)
    shared = torch.func.vmap(function, in_dims=(0, None))(x, MASK)
    torch_close(shared, torch.stack([function(a, MASK) for a in x]))


def torch_close(a: torch.Tensor, b: torch.Tensor) -> None:
    assert a.shape == b.shape
    assert torch.allclose(a, b, rtol=1e-14, atol=1e-14)


def test_the_gradient_of_equal_extremes_is_shared() -> None:
    x = torch.tensor([2.0, 2.0, 2.0, 1.0], requires_grad=True)
    masked.amax(x, mask=torch.tensor([True, False, True, True])).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.5, 0, 0.5, 0]


def test_indices_have_no_gradient() -> None:
    x = point().requires_grad_()
    for function in (masked.argmax, masked.argmin):
        assert not function(x, 1, mask=MASK).requires_grad
        assert not function(x, mask=MASK, dtype=torch.float32).requires_grad
