"""The named tuples of ops with several results: one type each for results and for `out=`."""

from __future__ import annotations

import os

import pytest

import pullback as torch
from pullback.utils import _pytree as pytree


def test_what_out_names_is_of_a_type_of_its_own() -> None:
    x = torch.tensor([[1.0, 3.0], [4.0, 2.0]])
    out = (torch.empty(0), torch.empty(0, dtype=torch.int64))
    result = torch.max(x, 0, out=out)
    assert type(result) is torch.return_types.max_out
    assert result[0] is out[0]
    assert result.indices.tolist() == [1, 0]
    assert repr(result).startswith("torch.return_types.max_out(\nvalues=")
    assert type(torch.max(x, 0)) is torch.return_types.max
    assert torch.return_types.max_out is not torch.return_types.max
    with pytest.raises(AttributeError, match="no_such_op_out"):
        torch.return_types.no_such_op_out  # noqa: B018


def test_all_types_are_listed_once() -> None:
    listed = torch.return_types.all_return_types
    assert len(set(listed)) == len(listed) > 60
    assert {torch.return_types.sort, torch.return_types.sort_out} <= set(listed)
    assert all(kind.__module__ == "torch.return_types" for kind in listed)
    assert all(issubclass(kind, tuple) for kind in listed)


def test_results_are_containers_and_others_can_be_made_so() -> None:
    leaves, spec = pytree.tree_flatten(torch.max(torch.eye(2), 0))
    assert len(leaves) == 2
    assert type(pytree.tree_unflatten(leaves, spec)) is torch.return_types.max
    found = os.stat(".")
    torch.return_types.pytree_register_structseq(os.stat_result)
    try:
        leaves, spec = pytree.tree_flatten(found)
        assert leaves == list(found)
        assert pytree.tree_unflatten(leaves, spec) == found
        keys = [path[0].idx for path, _ in pytree.tree_flatten_with_path(found)[0]]
        assert keys == list(range(len(found)))
        with pytest.raises(ValueError, match="already registered"):
            torch.return_types.pytree_register_structseq(os.stat_result)
    finally:
        del pytree.SUPPORTED_NODES[os.stat_result]
