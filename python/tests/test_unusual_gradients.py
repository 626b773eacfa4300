"""Ops whose derivatives are zero, nowhere, or not there; and what goes with them."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch


def test_neighbours_have_no_slope_where_the_numbers_are_equal() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = torch.tensor([1.0, 1.0, 4.0], requires_grad=True)
    torch.nextafter(x, y).backward(torch.tensor([1.0, 2.0, 3.0]))
    assert x.grad.tolist() == [0.0, 2.0, 3.0]
    assert y.grad.tolist() == [0.0, 0.0, 0.0]
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x.detach(), torch.ones(3))
        moved = torch.autograd.forward_ad.unpack_dual(torch.nextafter(dual, y.detach()))
    assert moved.tangent.tolist() == [0.0, 1.0, 1.0]


def test_the_gradient_of_pooling_depends_on_the_shape_of_its_input_alone() -> None:
    grad = torch.ones(1, 1, 1, 1, requires_grad=True)
    image = torch.rand(1, 1, 2, 2, requires_grad=True)
    place = torch.tensor([[[[2]]]])
    backward = torch.ops.aten.max_pool2d_with_indices_backward
    slope = backward(grad, image, [2, 2], [2, 2], [0, 0], [1, 1], False, place)
    assert slope.flatten().tolist() == [0.0, 0.0, 1.0, 0.0]
    by_grad, by_image = torch.autograd.grad(slope.sum(), (grad, image), create_graph=True)
    assert by_grad.item() == 1.0
    assert by_image.flatten().tolist() == [0.0] * 4


@pytest.mark.parametrize(
    ("call", "op"),
    [
        (lambda x: torch.histogram(x, 3), "histogram"),
        (lambda x: torch.histogram(x, torch.tensor([0.0, 0.5, 1.0])), "histogram"),
        (lambda x: torch.histogram(torch.ones(4), 3, weight=x), "histogram"),
        (lambda x: torch.histogramdd(x.view(2, 2), [2, 3]), "_histogramdd_from_bin_cts"),
        (
            lambda x: torch.histogramdd(x.view(2, 2), [torch.arange(3.0), torch.arange(2.0)]),
            "_histogramdd_from_bin_tensors",
        ),
    ],
)
def test_histograms_say_that_they_have_no_derivative(call: Any, op: str) -> None:
    x = torch.rand(4, requires_grad=True)
    histogram = call(x).hist
    assert histogram.requires_grad
    with pytest.raises(RuntimeError, match=f"derivative for aten::{op} is not implemented"):
        histogram.sum().backward()
    assert x.grad is None
    with torch.no_grad():
        assert not call(x).hist.requires_grad


def test_powers_in_place_are_for_double_precision() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    assert x.float_power_(2) is x
    assert x.tolist() == [1.0, 4.0, 9.0]
    assert x.float_power_(torch.tensor([0.5])).tolist() == [1.0, 2.0, 3.0]
    assert not hasattr(torch, "float_power_")
    for base, exponent, wanted in [
        (torch.ones(2), 2, "Double"),
        (torch.ones(2, dtype=torch.int64), torch.ones(2), "Double"),
        (torch.ones(2, dtype=torch.complex64), 2, "ComplexDouble"),
        (torch.ones(2, dtype=torch.float64), 1j, "ComplexDouble"),
    ]:
        with pytest.raises(RuntimeError, match=f"float_power_ has dtype .* dtype {wanted}"):
            base.float_power_(exponent)
        assert base.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="shape"):
        x.float_power_(torch.ones(2, 3))
    leaf = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    leaf.clone().float_power_(3).sum().backward()
    assert leaf.grad.tolist() == [12.0, 27.0]


def test_truth_values_are_exponents_of_two() -> None:
    flags = torch.tensor([True, False])
    for name in ("float16", "float32", "float64", "int64", "complex64"):
        x = torch.tensor([3, 5], dtype=getattr(torch, name))
        assert torch.ldexp(x, flags).tolist() == [6, 5]
    assert torch.ldexp(flags, flags).tolist() == [2.0, 0.0]


def test_products_of_slices_of_truth_values_say_where_all_are_true() -> None:
    x = torch.tensor([[True, True], [True, False]])
    rows = torch.tensor([[True, False], [True, True]])
    at = torch.tensor([0, 0])
    assert x.index_reduce(0, at, rows, "prod").tolist() == [[True, False], [True, False]]
    alone = x.index_reduce(0, at[:1], rows[:1], "prod", include_self=False)
    assert alone.tolist() == [[True, False], [True, False]]
    with pytest.raises(NotImplementedError, match="index_func_"):
        x.index_reduce(0, at, rows, "mean")


def test_nothing_has_no_hash_unless_a_dimension_is_named() -> None:
    with pytest.raises(RuntimeError, match="Expected reduction dim to be specified"):
        torch.hash_tensor(torch.empty(0))
    with pytest.raises(IndexError, match="Expected reduction dim 1 to have non-zero size"):
        torch.hash_tensor(torch.empty(2, 0), 1)
    assert torch.hash_tensor(torch.empty(0, 2), 1).shape == (0,)


def test_a_sum_to_a_number_is_a_new_number() -> None:
    number = torch.tensor(3, dtype=torch.int32)
    total = number.sum_to_size(())
    assert total.dtype is torch.int64
    assert total.data_ptr() != number.data_ptr()
    matrix = torch.ones(2, 3)
    assert matrix.sum_to_size(2, 3) is matrix


def test_running_logarithms_of_nothing_move_forward() -> None:
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.empty(0, 3), torch.empty(0, 3))
        assert torch.logcumsumexp(dual, 0).shape == (0, 3)


def test_statistics_of_half_precision_have_the_dtype_of_the_parameters() -> None:
    x, half = torch.rand(3, 2).bfloat16(), torch.ones(2).bfloat16()
    for parameter, expected in [(half, torch.bfloat16), (torch.ones(2), torch.float32)]:
        running = (parameter.clone(), parameter.clone())
        results = torch._native_batch_norm_legit(x, parameter, None, *running, True, 0.1, 1e-5)
        assert [t.dtype for t in results] == [torch.bfloat16, expected, expected]
    alone = torch._native_batch_norm_legit(x, None, None, True, 0.1, 1e-5)
    assert [t.dtype for t in alone] == [torch.bfloat16] * 3


def test_ops_as_objects_give_plain_tuples() -> None:
    x = torch.tensor([2.0, 1.0])
    assert type(torch.ops.aten.sort.default(x)) is tuple
    assert type(torch.ops.aten.sort(x)) is tuple
    assert torch.sort(x).values.tolist() == [1.0, 2.0]
