"""`as_sparse_gradcheck`: gradcheck of functions from sparse tensors to sparse ones."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback.autograd import gradcheck
from pullback.autograd.gradcheck import GradcheckError

check = torch.sparse.as_sparse_gradcheck(gradcheck)
LAYOUTS = ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]


def given(name: str) -> Any:
    dense = torch.tensor([[0, 2, 0, 1], [3, 0, 4, 0]], dtype=torch.float64)
    blocks = (1, 2) if name in ("sparse_bsr", "sparse_bsc") else None
    sparse = dense.to_sparse(layout=getattr(torch, name), blocksize=blocks)
    return sparse.requires_grad_()


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("fast_mode", [True, False])
@pytest.mark.parametrize(
    "function",
    [
        torch.Tensor.to_dense,
        torch.Tensor.to_sparse,
        torch.Tensor.values,
        torch.Tensor.sum,
        lambda x: x,
        lambda x: (x * 2, x.sum()),
    ],
)
def test_outputs_may_be_sparse(name: str, masked: bool, fast_mode: bool, function: Any) -> None:
    assert check(function, (given(name),), masked=masked, fast_mode=fast_mode)


class Doubled(torch.autograd.Function):
    """The same tensor, with twice its gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return gradient * 2


@pytest.mark.parametrize("masked", [True, False])
def test_a_wrong_gradient_fails(masked: bool) -> None:
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        check(lambda x: Doubled.apply(x.to_dense()), (given("sparse_csr"),), masked=masked)


def test_strided_inputs_are_checked_as_ever() -> None:
    x = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    assert check(lambda x: x.sin().to_sparse(), x)
