"""Functions that sort their arguments in Python, and the namespaces beside the main one."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback import _C


def test_tensors_may_come_one_by_one_or_in_a_list() -> None:
    a, b = torch.arange(3), torch.arange(2)
    for grid in (torch.meshgrid(a, b, indexing="xy"), torch.meshgrid([a, b], indexing="xy")):
        for ours, theirs in zip(grid, np.meshgrid(a.numpy(), b.numpy()), strict=True):
            assert ours.tolist() == theirs.tolist()
    for pair in (
        torch.broadcast_tensors(a[:, None], b),
        torch.broadcast_tensors((a[:, None], b)),
    ):
        assert [t.shape for t in pair] == [(3, 2), (3, 2)]
    with pytest.raises(RuntimeError, match="must match"):
        torch.broadcast_tensors(a, b)


def test_einsum_takes_operands_lists_of_them_and_dimension_numbers() -> None:
    a, b = torch.randn(2, 3), torch.randn(3, 4)
    expected = (a @ b).tolist()
    assert torch.einsum("ij,jk->ik", a, b).tolist() == expected
    assert torch.einsum("ij,jk->ik", [a, b]).tolist() == expected
    assert torch.einsum(a, [0, 1], b, [1, 2], [0, 2]).tolist() == expected
    assert torch.einsum(a, [..., 1], b, [1, 2]).tolist() == expected
    assert torch.einsum("ii", torch.eye(3)).item() == 3
    with pytest.raises(ValueError, match="at least one operand"):
        torch.einsum("ij")
    with pytest.raises(ValueError, match="valid range"):
        torch.einsum(a, [0, 52])


def test_nonzero_and_where_give_one_vector_per_dimension() -> None:
    x = torch.tensor([[0, 2], [3, 0]])
    expected = [part.tolist() for part in np.nonzero(x.numpy())]
    for parts in (
        torch.nonzero(x, as_tuple=True),
        x.nonzero(as_tuple=True),
        torch.where(x != 0),
    ):
        assert [part.tolist() for part in parts] == expected
    assert x.nonzero().tolist() == torch.nonzero(x).tolist() == [[0, 1], [1, 0]]
    assert x[torch.where(x > 0)].tolist() == [2, 3]
    out = torch.empty(0, dtype=torch.int64)
    assert torch.nonzero(x, out=out) is out
    assert out.tolist() == [[0, 1], [1, 0]]


def test_tensordot_takes_a_number_or_two_lists() -> None:
    a, b = torch.randn(2, 3, 4), torch.randn(3, 4, 5)
    expected = np.tensordot(a.numpy(), b.numpy(), 2)
    for dims in (2, ([1, 2], [0, 1]), torch.tensor([[1, 2], [0, 1]])):
        np.testing.assert_allclose(torch.tensordot(a, b, dims).numpy(), expected, rtol=1e-5)
    with pytest.raises(RuntimeError, match="dims >= 0"):
        torch.tensordot(a, b, -1)
    with pytest.raises(RuntimeError, match="dims < ndim_a"):
        torch.tensordot(a, b, 4)


def test_linalg_has_every_op_of_its_family() -> None:
    ops = {name.removeprefix("linalg_") for name in dir(_C._linalg) if name[0] != "_"}
    assert ops == set(torch.linalg.__all__) - {"LinAlgError"}
    a = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    u, s, vh = torch.linalg.svd(a)
    assert torch.allclose((u * s) @ vh, a)
    assert torch.allclose(a @ torch.linalg.solve(a, torch.ones(2)), torch.ones(2))
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.inv(torch.zeros(2, 2))


def test_cuda_says_that_it_is_not_there() -> None:
    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == 0
    torch.cuda.manual_seed_all(1)
    with pytest.raises(RuntimeError, match="no cuda backend"):
        torch.cuda.current_device()
