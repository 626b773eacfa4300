"""The formulas of `torch.utils.flop_counter`, by name, and what a program counts by them."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.nn import functional as F
from pullback.utils import flop_counter as flops


def counted(call: object) -> int:
    with flops.FlopCounterMode(display=False) as mode:
        call()  # type: ignore[operator]
    return mode.get_total_flops()


def test_products_count_as_the_ops_do() -> None:
    a, b = torch.ones(5, 2, 3), torch.ones(5, 3, 4)
    bias = torch.ones(4)
    assert flops.mm_flop((2, 3), (3, 4)) == counted(lambda: a[0] @ b[0]) == 48
    assert flops.mm_flop(a[0], b[0]) == 48
    assert flops.addmm_flop(bias, a[0], b[0]) == counted(lambda: torch.addmm(bias, a[0], b[0]))
    assert flops.bmm_flop(a, b) == counted(lambda: torch.bmm(a, b)) == 240
    whole = torch.ones(5, 2, 4)
    assert flops.baddbmm_flop(whole, a, b) == counted(lambda: torch.baddbmm(whole, a, b))
    with pytest.raises(AssertionError, match="inner dimensions 3 and 2 differ"):
        flops.mm_flop((2, 3), (2, 4))
    with pytest.raises(AssertionError, match="batch dimensions 5 and 4 differ"):
        flops.bmm_flop((5, 2, 3), (4, 3, 4))


def test_convolutions_count_each_output_with_each_weight() -> None:
    x, w = torch.ones(2, 3, 8, 8), torch.ones(4, 3, 3, 3)
    once = flops.conv_flop_count(x.shape, w.shape, (2, 4, 6, 6))
    assert once == 2 * (2 * 4 * 6 * 6) * (3 * 3 * 3)
    assert once == counted(lambda: F.conv2d(x, w))
    rest = (None, (1, 1), (0, 0), (1, 1), False)
    assert flops.conv_flop(x, w, *rest, out_val=torch.ones(2, 4, 6, 6)) == once
    back = ((0, 0), 1, [True, True, False])
    assert flops.conv_backward_flop(torch.ones(2, 4, 6, 6), x, w, *rest, *back) == 2 * once
    back = ((0, 0), 1, [False, True, False])
    assert flops.conv_backward_flop(torch.ones(2, 4, 6, 6), x, w, *rest, *back) == once
    turned = flops.conv_flop_count((2, 3, 8, 8), (3, 4, 3, 3), (2, 4, 10, 10), transposed=True)
    assert turned == counted(lambda: F.conv_transpose2d(x, torch.ones(3, 4, 3, 3)))


def test_attention_counts_its_products() -> None:
    q, k = torch.ones(2, 4, 8, 16, requires_grad=True), torch.ones(2, 4, 6, 16)
    forward = flops.sdpa_flop_count(q.shape, k.shape, k.shape)
    assert forward == flops.sdpa_flop(q, k, k) == 2 * 2 * (2 * 4) * 8 * 6 * 16
    assert counted(lambda: F.scaled_dot_product_attention(q, k, k)) == forward
    both = counted(lambda: F.scaled_dot_product_attention(q, k, k).sum().backward())
    backward = flops.sdpa_backward_flop_count(q.shape, q.shape, k.shape, k.shape)
    assert both == forward + backward
    assert flops.sdpa_backward_flop(q, q, k, k) == backward
    with pytest.raises(AssertionError, match="do not fit"):
        flops.sdpa_flop_count((2, 8, 16), (2, 6, 15), (2, 6, 16))


def test_counts_are_written_with_suffixes() -> None:
    assert flops.get_suffix_str(999) == ""
    assert [flops.get_suffix_str(10**at) for at in (3, 4, 6, 7, 9, 20)] == [
        "",
        "K",
        "K",
        "M",
        "M",
        "T",
    ]
    assert flops.convert_num_with_suffix(12345678, "M") == "12.346M"
    assert flops.convert_num_with_suffix(12, "") == "12.000"
    assert flops.convert_to_percent_str(1, 3) == "33.33%"
    assert flops.convert_to_percent_str(1, 0) == "0%"
    assert flops.get_shape(torch.ones(2, 3)) == (2, 3)
    assert flops.get_shape(4) == 4
