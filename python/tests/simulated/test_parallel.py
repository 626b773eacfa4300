"""Scatter and gather over simulated devices."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import pullback as torch
from pullback.nn.parallel import comm, gather, scatter
from pullback.nn.parallel.scatter_gather import scatter_kwargs


class _Pair(NamedTuple):
    a: Any
    b: Any


def _devices(tensors: Any) -> list[str]:
    return [str(t.device) for t in tensors]


def test_gather_of_scatter_is_the_identity_and_so_is_its_gradient() -> None:
    x = torch.arange(10.0).reshape(5, 2).requires_grad_()
    parts = scatter(x, [0, 1])
    assert _devices(parts) == ["cuda:0", "cuda:1"]
    assert [len(p) for p in parts] == [3, 2]
    y = gather(parts, "cpu")
    assert torch.equal(y, x)
    (y * y).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, 2 * x.detach())
    assert parts[0].grad_fn is not None
    assert parts[0].grad_fn.name() == "torch::autograd::Gather"
    assert y.grad_fn is not None
    assert y.grad_fn.name() == "torch::autograd::Scatter"


def test_containers_are_taken_apart_and_put_together() -> None:
    given = {"x": torch.arange(4.0), "rest": [torch.ones(2, 1), "same"], "pair": _Pair(1, None)}
    first, second = scatter(given, ["cuda:0", "cuda:1"])
    assert first["x"].tolist() == [0.0, 1.0]
    assert second["x"].tolist() == [2.0, 3.0]
    assert second["rest"][1] == "same"
    assert isinstance(second["rest"], list)
    assert isinstance(first["pair"], _Pair)
    assert first["pair"].a == 1
    parts = [{"x": part["x"], "p": _Pair(part["x"], None)} for part in (first, second)]
    together = gather(parts, 1)
    assert together["x"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert isinstance(together["p"], _Pair)
    assert together["p"].b is None
    assert str(together["p"].a.device) == "cuda:1"
    args, named = scatter_kwargs((torch.ones(2),), {"k": 3}, [0, 1])
    assert [a[0].tolist() for a in args] == [[1.0], [1.0]]
    assert named == ({"k": 3}, {"k": 3})
    assert scatter_kwargs((), None, [0, 1]) == ((), ())
    with pytest.raises(ValueError, match="same number of keys"):
        gather([{"x": first["x"]}, {}], 0)


def test_numbers_become_a_vector() -> None:
    numbers = [torch.tensor(1.0, device="cuda:0"), torch.tensor(2.0, device="cuda:1")]
    with pytest.warns(UserWarning, match="will instead unsqueeze and return a vector"):
        assert gather(numbers, 0).tolist() == [1.0, 2.0]


def test_tensors_in_main_memory_are_not_gathered() -> None:
    with pytest.raises(AssertionError, match="Gather function not implemented for CPU tensors"):
        gather([torch.ones(2)], 0)
    with pytest.raises(RuntimeError, match="All inputs to Gather must be CUDA tensors"):
        comm.gather([torch.ones(2)])
    with pytest.raises(AssertionError, match="input 0 is on CPU"):
        comm.reduce_add([torch.ones(2)])


def test_copies_and_sums_have_gradients() -> None:
    x = torch.tensor([1.0, 2.0], device="cuda:0", requires_grad=True)
    copies = comm.broadcast(x, [0, 1])
    assert copies[0] is x
    assert _devices(copies) == ["cuda:0", "cuda:1"]
    total = comm.reduce_add([copies[0] * 2, copies[1] * 3], "cuda:1")
    assert total.tolist() == [5.0, 10.0]
    assert str(total.device) == "cuda:1"
    total.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [5.0, 5.0]
    pairs = comm.broadcast_coalesced([x.detach(), x.detach() + 1], [0, 1])
    assert [[t.tolist() for t in pair] for pair in pairs] == [[[1.0, 2.0], [2.0, 3.0]]] * 2
    assert [t.tolist() for t in comm.reduce_add_coalesced(pairs)] == [[2.0, 4.0], [4.0, 6.0]]
    with pytest.raises(ValueError, match="input 1 has invalid size: got 1, but expected 2"):
        comm.reduce_add([x.detach(), x.detach()[:1]])


def test_targets_are_written_to() -> None:
    x = torch.arange(3.0)
    out = [torch.empty(1, device="cuda:0"), torch.empty(2, device="cuda:1")]
    assert comm.scatter(x, out=out)[0] is out[0]
    assert [t.tolist() for t in out] == [[0.0], [1.0, 2.0]]
    whole = torch.empty(3)
    assert comm.gather(out, out=whole) is whole
    assert whole.tolist() == [0.0, 1.0, 2.0]
    assert comm.broadcast(x, out=[whole])[0] is whole
    for refused in (
        lambda: comm.scatter(x, [0], out=out),
        lambda: comm.scatter(x, chunk_sizes=[3], out=out),
        lambda: comm.gather(out, destination=0, out=whole),
        lambda: comm.broadcast(x),
    ):
        with pytest.raises(RuntimeError, match="must"):
            refused()
    sizes = [len(part) for part in torch.cuda.comm.scatter(x, [0, 1], [2, 1])]
    assert sizes == [2, 1]
