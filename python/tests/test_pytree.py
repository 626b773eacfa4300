"""Containers of containers as lists of leaves."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

import pullback as torch
from pullback.utils import _pytree as pytree

Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("tree", "leaves"),
    [
        (1, [1]),
        ((), []),
        (None, [None]),
        ((1, [2, {"a": 3, "b": (4,)}], None), [1, 2, 3, 4, None]),
        (OrderedDict(b=1, a=[2]), [1, 2]),
        (defaultdict(list, {"k": [1, 2]}), [1, 2]),
        (deque([1, (2,)], 5), [1, 2]),
        (Point(1, Point([2], 3)), [1, 2, 3]),
    ],
)
def test_a_tree_is_taken_apart_and_put_together(tree: Any, leaves: list[Any]) -> None:
    found, spec = pytree.tree_flatten(tree)
    assert found == leaves
    assert (spec.num_leaves, spec.is_leaf()) == (len(leaves), leaves == [tree])
    again = pytree.tree_unflatten(found, spec)
    assert again == tree
    assert type(again) is type(tree)
    assert pytree.tree_structure(again) == spec
    doubled = pytree.tree_map(lambda x: x and x * 2, tree)
    assert pytree.tree_leaves(doubled) == [x and x * 2 for x in leaves]


def test_results_with_names_keep_their_type() -> None:
    result = torch.tensor([[1.0, 2.0]]).max(1)
    moved = pytree.tree_map(lambda x: x + 1, {"r": result})
    assert type(moved["r"]) is type(result)
    assert moved["r"].values.tolist() == [3.0]


def test_further_trees_may_go_on_below_leaves_but_not_differ_above() -> None:
    both = pytree.tree_map(lambda a, b: (a, b), [1, (2,)], ["x", (["y"],)])
    assert both == [(1, "x"), ((2, ["y"]),)]
    for other in ([1], [1, [2]], [1, (2, 3)], 1):
        with pytest.raises(ValueError, match="Node type mismatch"):
            pytree.tree_map(lambda a, b: a, [1, (2,)], other)


def test_leaves_of_some_types_are_mapped() -> None:
    tree = [1, "a", (2.5, True)]
    assert pytree.tree_map_only(float, lambda x: -x, tree) == [1, "a", (-2.5, True)]
    assert pytree.tree_map_only((int, float), str, tree) == ["1", "a", ("2.5", "True")]
    assert pytree.tree_map_only(lambda x: x == "a", str.upper, tree) == [1, "A", (2.5, True)]
    assert pytree.tree_all(lambda x: x is not None, tree)
    assert not pytree.tree_any(lambda x: x is None, tree)
    assert pytree.tree_leaves([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]


def test_wrong_leaves_and_specs_are_refused() -> None:
    _, spec = pytree.tree_flatten((1, 2))
    with pytest.raises(ValueError, match="has length 3 but the spec"):
        pytree.tree_unflatten([1, 2, 3], spec)
    with pytest.raises(TypeError, match="instance of TreeSpec"):
        pytree.tree_unflatten([1], "spec")  # type: ignore[arg-type]


def test_a_type_of_ones_own_becomes_a_container_once() -> None:
    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    assert pytree.tree_leaves(pair := Pair(1, 2)) == [pair]
    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda c, _: Pair(*c))
    assert pytree.tree_leaves([Pair(1, [2])]) == [1, 2]
    assert pytree.tree_map(lambda x: x + 1, Pair(1, 2)).b == 3
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Pair, lambda p: ([], None), lambda c, _: None)
