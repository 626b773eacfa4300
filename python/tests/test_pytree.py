"""Containers of containers as lists of leaves."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
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


@dataclass
class Record:
    x: Any
    y: Any = None
    note: str = "none"


@dataclass(frozen=True)
class Setting:
    value: int


def test_the_fields_of_a_registered_data_class_are_its_children() -> None:
    pytree.register_dataclass(
        Record,
        field_names=["x", "y"],
        drop_field_names=["note"],
        serialized_type_name="test_pytree.Record",
    )
    leaves, spec = pytree.tree_flatten(Record(1, [2], "dropped"))
    assert (leaves, spec.context) == ([1, 2], [["x", "y"], []])
    assert pytree.tree_unflatten([5, 6], spec) == Record(5, [6])
    steps = pytree.tree_flatten_with_path(Record(1, 2))[0]
    assert [(pytree.keystr(path), leaf) for path, leaf in steps] == [(".x", 1), (".y", 2)]
    # A field that is None is no child: the trees are not alike.
    assert pytree.tree_flatten(Record(1))[0] == [1]
    assert pytree.tree_structure(Record(1)) != spec
    assert pytree.tree_map(lambda x: x + 1, Record(1)) == Record(2)
    written = pytree.treespec_dumps(spec)
    assert pytree.treespec_loads(written) == spec
    with pytest.warns(UserWarning, match="already registered"):
        pytree.register_dataclass(Record)
    assert pytree.tree_leaves(Record(1, 2, "kept")) == [1, 2, "kept"]


def test_fields_that_are_not_those_of_the_class_are_refused() -> None:
    @dataclass
    class Pair:
        a: int
        b: int

    class Plain:
        def __init__(self, a: int) -> None:
            self.a = a

    with pytest.raises(ValueError, match=r"Missing fields in `field_names`: {'b'}"):
        pytree.register_dataclass(Pair, field_names=["a"])
    with pytest.raises(ValueError, match=r"Unexpected fields in `field_names`: {'c'}"):
        pytree.register_dataclass(Pair, field_names=["a", "b", "c"])
    with pytest.raises(ValueError, match="as it is not a dataclass"):
        pytree.register_dataclass(Plain)
    assert pytree.tree_leaves([Pair(1, 2)]) == [Pair(1, 2)]
    pytree.register_dataclass(Plain, field_names=["a"])
    assert pytree.tree_map(lambda x: -x, Plain(3)).a == -3


def test_a_constant_belongs_to_the_structure() -> None:
    class Unequal:
        pass

    pytree.register_constant(Setting)
    leaves, spec = pytree.tree_flatten([Setting(1), 2])
    assert leaves == [2]
    assert pytree.tree_unflatten([3], spec) == [Setting(1), 3]
    assert spec != pytree.tree_structure([Setting(2), 2])
    assert (pytree.is_constant_class(Setting), pytree.is_constant_class(int)) == (True, False)
    with pytest.raises(TypeError, match="non-default `__eq__`"):
        pytree.register_constant(Unequal)
    with pytest.raises(TypeError, match="non-default `__hash__`"):
        pytree.register_constant(dataclass(Unequal))


def test_specs_are_made_by_hand() -> None:
    made = pytree.treespec_tuple([pytree.treespec_leaf(), pytree.tree_structure([1])])
    assert made == pytree.tree_structure((1, [2]))
    assert pytree.treespec_tuple() == pytree.tree_structure(())
    with pytest.raises(ValueError, match="Expected a tuple of TreeSpec values"):
        pytree.treespec_tuple([1])  # type: ignore[list-item]
    assert {list, dict, tuple} < pytree.BUILTIN_TYPES
