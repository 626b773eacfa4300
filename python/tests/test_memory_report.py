"""`memory_report` says which bytes a graph keeps, for which op, line and module."""

from __future__ import annotations

import json
from typing import Any

import pytest

import pullback as torch
from pullback import nn
from pullback.autograd.graph import saved_tensors_hooks
from pullback.utils.checkpoint import checkpoint

HERE = __file__


def line_of(text: str) -> str:
    """File and line of this file that ends in a mark."""
    with open(HERE, encoding="utf-8") as file:
        lines = enumerate(file, 1)
        return next(f"{HERE}:{n}" for n, line in lines if line.rstrip().endswith(f"# {text}"))


class Net(nn.Module):
    """Two layers with a function between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: Any) -> Any:
        hidden = self.first(x)  # first
        return self.second(hidden.tanh())  # second


def test_ops_lines_and_modules_of_activations_are_named_in_bytes() -> None:
    net, x = Net(), torch.randn(32, 8)
    found = torch.memory_report(lambda: net(x).exp().sum())  # exp
    # (The second layer saves the result of tanh, which tanh's own node kept before it.)
    assert found.by_op() == {"tanh": 32 * 16 * 4, "exp": 32 * 4 * 4}
    assert found.by_line() == {line_of("second"): 32 * 16 * 4, line_of("exp"): 32 * 4 * 4}
    assert found.by_module() == {"Net": 32 * 16 * 4, "(no module)": 32 * 4 * 4}
    assert found.total() == 32 * 20 * 4
    assert found.total("input") == x.nbytes
    assert found.total("parameter") == net.second.weight.nbytes
    assert found.total(None) == sum(item.bytes for item in found.kept)
    tanh = next(item for item in found.kept if item.op == "tanh")
    assert (tanh.name, tanh.shape, tanh.dtype, tanh.nodes) == ("result", (32, 16), "float32", 2)


def test_sum_of_activations_is_what_the_allocator_holds_for_the_graph() -> None:
    x = torch.randn(1000, 1000, requires_grad=True)
    before = torch.memory.live_bytes()
    loss = (x.sin().exp() * x.cos()).sum()
    kept = torch.memory.live_bytes() - before
    # (Blocks are a little larger than what is in them.)
    assert 0.95 * kept < torch.memory_report(loss).total() <= kept


def test_storage_that_several_nodes_save_counts_once() -> None:
    x = torch.randn(10, requires_grad=True)
    y = -x
    found = torch.memory_report([y.sin().sum(), y.cos().sum(), y[:5].exp().sum()])
    assert found.by_op() == {"sin": 40, "exp": 20}
    assert next(item.nodes for item in found.kept if item.op == "sin") == 2


def test_model_on_meta_is_reported_as_the_one_that_computes() -> None:
    def of(device: str) -> dict[str, Any]:
        with torch.device(device):
            net, x = Net(), torch.ones(32, 8)
        return torch.memory_report(lambda: net(x).square().sum()).to_dict()

    assert of("meta") == of("cpu")


def test_modules_are_paths_and_a_graph_that_is_there_shows_those_with_parameters() -> None:
    net = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.Tanh(), nn.Dropout()), nn.Linear(8, 2))
    x = torch.randn(3, 4)
    found = torch.memory_report(lambda: net(x).sum()).by_module()
    assert found == {"Sequential.1.0": 96, "Sequential.1.1": 96, "Sequential.2": 96}
    found = torch.memory_report(net(x).sum()).by_module()
    assert found == {"(no module)": 192, "Sequential.2": 96}
    # (Hooks that were left would count calls on: nothing is called twice.)
    assert torch.memory_report(net(x).sum()).by_module() == found


def test_custom_functions_and_sparse_tensors_count() -> None:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.saved_tensors[0]

    x = torch.ones(6, requires_grad=True)
    assert torch.memory_report(Exp.apply(x).sum()).by_op() == {"ExpBackward": 24}
    weight = torch.ones(3, 2, requires_grad=True)
    found = torch.memory_report(torch.sparse.mm(torch.eye(3).to_sparse(), weight).sum())
    # Three pairs of int64 and three float32.
    assert found.total() == 3 * 2 * 8 + 3 * 4


def test_what_hooks_packed_or_backward_freed_is_counted_as_nodes_and_not_unpacked() -> None:
    net, x = Net(), torch.randn(4, 8)
    found = torch.memory_report(checkpoint(net, x, use_reentrant=False).sum())
    assert (found.total(None), found.packed) == (0, 3)

    def refuse(packed: Any) -> Any:
        raise AssertionError

    with saved_tensors_hooks(lambda t: t, refuse):
        loss = net(x).sum()
    found = torch.memory_report(loss)
    assert (found.total(None), found.packed) == (0, 3)
    assert "Not counted: 3 nodes" in str(found)
    loss = net(x).sum()
    loss.backward()
    assert torch.memory_report(loss).packed == 3


def test_table_dictionary_and_page_say_the_same_and_load_nothing() -> None:
    net, x = Net(), torch.randn(32, 8)
    found = torch.memory_report(lambda: net(x).sum())
    assert "2.05 kB" in str(found)
    assert "hidden.tanh()" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["by_op"] == found.by_op()
    page = found.to_html()
    assert "tanh: 2.05 kB, 100.0 %" in page
    assert "http" not in page
    assert "<script" not in page
    assert found._repr_html_() in page


def test_text_of_programs_is_escaped_in_pages() -> None:
    x = torch.ones(3, requires_grad=True)
    page = torch.memory_report((x.exp() if 1 < 2 else x).sum()).to_html()
    assert "if 1 &lt; 2 else" in page


def test_what_keeps_nothing_says_so() -> None:
    found = torch.memory_report(torch.ones(3))
    assert (found.total(None), found.kept) == (0, [])
    assert "Nothing is kept" in found.to_html()


def test_what_is_no_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match="not float"):
        torch.memory_report(3.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not dict"):
        torch.memory_report(dict)  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        torch.memory_report(lambda: 1 // 0)  # type: ignore[arg-type,return-value]
