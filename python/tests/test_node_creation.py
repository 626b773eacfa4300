"""`node_creation_hook`: functions that see each node as it is made."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import pullback as torch
from pullback.autograd.graph import node_creation_hook


class Names:
    """Notes the names of nodes."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def __call__(self, node: Any) -> None:
        self.all.append(node.name().removeprefix("torch::autograd::"))

    def take(self) -> list[str]:
        taken, self.all = self.all, []
        return taken


def test_each_node_is_seen_once_when_it_is_complete() -> None:
    x = torch.ones(5, requires_grad=True)
    seen: list[Any] = []

    def hook(node: Any) -> None:
        saved = getattr(node, "_saved_self", None)
        following = [None if n is None else n.name() for n, _ in node.next_functions]
        seen.append((node.name(), following, saved is x))

    accumulate = "torch::autograd::AccumulateGrad"
    with node_creation_hook(hook):
        y = x * x
        z = y.sum()
        y.detach().exp()
        with torch.no_grad():
            x.exp()
    assert seen == [
        (accumulate, [], False),
        ("MulBackward0", [accumulate, accumulate], True),
        ("SumBackward0", ["MulBackward0"], False),
    ]
    seen.clear()
    z.exp()
    assert not seen


def test_results_have_their_outputs_bound() -> None:
    x = torch.ones(4, requires_grad=True)
    nodes: list[Any] = []
    with node_creation_hook(nodes.append):
        y = x.exp()
        parts = y.split(2)
    assert nodes[1] is y.grad_fn
    assert nodes[2] is parts[0].grad_fn is parts[1].grad_fn
    assert torch.equal(nodes[1]._saved_result, y)


def test_all_hooks_of_nested_contexts_are_called_outermost_first() -> None:
    x = torch.ones(2, requires_grad=True)
    calls: list[str] = []
    keep = x * 1
    outer = node_creation_hook(lambda node: calls.append("outer"))
    with outer, node_creation_hook(lambda node: calls.append("inner")):
        x * 2
    assert calls == ["outer", "inner"]
    with outer:
        x * 2
        with outer:
            x * 3
    assert calls == ["outer", "inner", "outer", "outer", "outer"]
    x * 2
    assert len(calls) == 5
    del keep


def test_writes_views_and_functions() -> None:
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad

    x = torch.ones(4, requires_grad=True)
    y = x * 1
    names = Names()
    with node_creation_hook(names):
        y.add_(1)
        assert names.take() == ["AddBackward0"]
        part = y[1:]
        names.take()
        part.mul_(2)
        assert "CopySlices" in names.take()
        assert part.grad_fn is not None
        assert "MulBackward0" not in names.take()
        saved: list[Any] = []
        with node_creation_hook(lambda node: saved.extend(node.saved_tensors)):
            Same.apply(x)
        assert names.take() == ["SameBackward"]
        assert saved[0] is x


def test_backward_takes_hooks_along() -> None:
    x = torch.ones(3, requires_grad=True)
    names = Names()
    y = (x**2).sum()
    with node_creation_hook(names):
        y.backward(retain_graph=True)
        assert names.take() == []
        torch.autograd.grad(y, x, create_graph=True)
        assert "MulBackward0" in names.take()
        thread = threading.Thread(target=lambda: x * 2)
        thread.start()
        thread.join()
        assert names.take() == []


def test_nodes_of_calls_that_failed_are_not_seen() -> None:
    x = torch.ones(3, requires_grad=True)
    names = Names()

    def refuse(tensor: torch.Tensor) -> Any:
        raise ValueError("not to be saved")

    with node_creation_hook(names):
        saving = torch.autograd.graph.saved_tensors_hooks(refuse, lambda kept: kept)
        with saving, pytest.raises(ValueError, match="not to be saved"):
            x.exp()
        names.take()
        x * 2
        assert names.take() == ["AccumulateGrad", "MulBackward0"]


def test_hooks_may_mark_nodes_and_add_hooks_to_them() -> None:
    x = torch.ones(2, requires_grad=True)
    ran: list[str] = []

    def hook(node: Any) -> None:
        node.metadata["made"] = node.name()
        node.register_prehook(lambda grads: ran.append(node.name()))

    with node_creation_hook(hook):
        y = (x * 2).sum()
    assert y.grad_fn is not None
    assert y.grad_fn.metadata == {"made": "SumBackward0"}
    y.backward()
    assert ran[:2] == ["SumBackward0", "MulBackward0"]


def test_an_error_of_a_hook_is_that_of_the_op() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 1

    def refuse(node: Any) -> None:
        raise ValueError(f"no {node.name()}")

    with node_creation_hook(refuse):
        with pytest.raises(ValueError, match="no MulBackward0"):
            x * 2
        with pytest.raises(ValueError, match="no MulBackward0"):
            y.mul_(2)
        x.detach() * 2
    with (
        pytest.raises(RuntimeError, match="must return None, got int"),
        node_creation_hook(
            lambda node: 5  # type: ignore[arg-type]
        ),
    ):
        x * 2
    assert (x * 2).sum().item() == 4


def test_hooks_make_no_nodes() -> None:
    x = torch.ones(2, requires_grad=True)

    def make(node: Any) -> None:
        x.exp()

    with (
        node_creation_hook(make),
        pytest.raises(
            RuntimeError, match="Creating a new autograd node from inside a node creation hook"
        ),
    ):
        x * 2

    def compute(node: Any) -> None:
        x.detach().exp()

    with node_creation_hook(compute):
        x * 2


def test_what_cannot_be_called_is_refused() -> None:
    for wrong in (3, None):
        with (
            pytest.raises(TypeError, match="must be callable"),
            node_creation_hook(
                wrong  # type: ignore[arg-type]
            ),
        ):
            pass
