"""Cycles of leaves through recorded gradients: the collector frees those that nobody uses."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import pullback as torch
from pullback import nn


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Using backward\\(\\) with create_graph=True")
        yield


def backward(loss: Any) -> None:
    loss.backward(create_graph=True)


def test_a_leaf_goes_that_only_its_own_gradient_holds() -> None:
    x = torch.ones(3, requires_grad=True)
    backward((x**3).sum())
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_leaves_of_one_graph_go_together() -> None:
    model: Any = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    for _ in range(2):
        backward((model(torch.ones(2, 3)) ** 2).sum())
    gone = [weakref.ref(parameter) for parameter in model.parameters()]
    kept = model[0].weight
    del model
    gc.collect()
    # The gradients of all lead to all.
    assert all(ref() is not None for ref in gone)
    assert kept.grad.grad_fn is not None
    del kept
    gc.collect()
    assert all(ref() is None for ref in gone)


def test_what_is_in_use_keeps_its_gradient() -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    backward((x**3).sum())
    again = x.grad
    gc.collect()
    assert x.grad is again
    gradient = x.grad
    ref = weakref.ref(x)
    del x, again
    gc.collect()
    # The graph of a gradient in use leads to the leaf.
    leaf = ref()
    assert leaf is not None
    (second,) = torch.autograd.grad(gradient.sum(), leaf, retain_graph=True)
    assert second.tolist() == [12, 18]
    loss = (leaf * gradient).sum()
    del leaf, gradient, second
    gc.collect()
    loss.backward()
    leaf = ref()
    assert leaf is not None
    assert leaf.grad is not None
    del loss, leaf
    gc.collect()
    assert ref() is None


def test_a_leaf_that_a_weak_reference_was_followed_to_is_in_use() -> None:
    x = torch.ones(2, requires_grad=True)
    backward((x**2).sum())
    ref = weakref.ref(x)
    del x
    again = ref()
    gc.collect()
    assert again is not None
    assert again.grad is not None
    del again
    gc.collect()
    assert ref() is None


def test_a_gradient_that_the_program_sets_may_lead_to_its_leaf() -> None:
    x = torch.ones(2, requires_grad=True)
    x.grad = x * 2
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_hooks_and_attributes_go_with_the_leaf() -> None:
    class Witness:
        pass

    witness = Witness()
    x: Any = torch.ones(2, requires_grad=True)
    x.witness = witness
    backward((x**2).sum())
    gone = weakref.ref(witness)
    del x, witness
    gc.collect()
    assert gone() is None


def test_views_written_through_are_seen_through() -> None:
    x = torch.ones(4, requires_grad=True)
    y = x * 1
    y[1:].mul_(x[1:])
    backward((y**2).sum())
    gone = weakref.ref(x)
    del x, y
    gc.collect()
    assert gone() is None


def test_backward_warns_of_the_cycle_once() -> None:
    code = (
        "import warnings, pullback as torch\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    (x ** 2).sum().backward(create_graph=True)\n"
        "    torch.autograd.backward((x ** 2).sum(), create_graph=True)\n"
        "    torch.autograd.grad((x ** 2).sum(), x, create_graph=True)\n"
        "assert len(seen) == 1, seen\n"
        "assert 'create a reference cycle' in str(seen[0].message)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
