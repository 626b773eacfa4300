"""Tools built on hooks of saved tensors, paragraph by paragraph."""

from __future__ import annotations

from typing import Any

import pytest

import pullback as torch
from pullback.autograd.graph import allow_mutation_on_saved_tensors
from pullback.utils.checkpoint import checkpoint


def leaf(*values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0), requires_grad=True)


def test_saved_tensors_are_cloned_before_the_first_write_and_no_more_often() -> None:
    with allow_mutation_on_saved_tensors() as state:
        a = leaf() * 1
        out: Any = (a**2).sum()
        assert (len(state.tid_to_weakhandle), len(state.original), len(state.cloned)) == (1, 1, 0)
        a.mul_(2)
        assert (len(state.original), len(state.cloned)) == (0, 1)
        a.mul_(2)
        assert len(state.cloned) == 1
        del out
        assert (len(state.tid_to_weakhandle), len(state.cloned)) == (0, 0)
        a.mul_(2)
        assert len(state.cloned) == 0  # What is no longer saved is not cloned.
        b = a * a
        b.sum().backward()
    assert not state.tid_to_weakhandle
    assert not state.sid_to_tid


@pytest.mark.parametrize(
    "write",
    [
        lambda w: w.add_(5),
        lambda w: torch.sin(torch.ones(2), out=w),
        lambda w: w.__setitem__(0, 7),
        lambda w: w.view(-1).mul_(3),
        lambda w: w[1:].zero_(),
    ],
)
def test_any_kind_of_write_leaves_the_saved_values(write: Any) -> None:
    x, w = leaf(), torch.tensor([3.0, 4.0])
    with allow_mutation_on_saved_tensors():
        y = x * w
        write(w)
        y.sum().backward()
    assert x.grad.tolist() == [3, 4]


def test_the_context_ends_with_an_error_too_and_backward_belongs_inside() -> None:
    with pytest.raises(ValueError, match="mine"), allow_mutation_on_saved_tensors():
        raise ValueError("mine")
    with allow_mutation_on_saved_tensors():
        y: Any = (leaf() * 1) ** 2
        with (
            pytest.raises(RuntimeError, match="contexts cannot be nested"),
            allow_mutation_on_saved_tensors(),
        ):
            pass
    with pytest.raises(AssertionError, match="Trying to backward outside of the"):
        y.sum().backward()


def test_a_checkpoint_that_pins_memory_needs_no_accelerator_on_the_cpu() -> None:
    x = leaf()
    with torch.autograd.graph.save_on_cpu():
        y: Any = x * x
    saved = y.grad_fn._saved_self
    assert saved is not x
    assert saved.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_regions_inside_of_regions_recompute_their_inputs_first() -> None:
    order: list[str] = []

    def inner(a: Any) -> Any:
        order.append("inner")
        return a.sin()

    def outer(a: Any) -> Any:
        order.append("outer")
        return checkpoint(inner, a * a, use_reentrant=False).cos()

    x = leaf()
    checkpoint(outer, x, use_reentrant=False).sum().backward()
    assert order == ["outer", "inner", "outer", "inner", "inner"]
    expected = -(x**2).sin().sin() * (x**2).cos() * 2 * x
    assert torch.allclose(x.grad, expected)
