"""Nested containers as a list of leaves and a description of the rest.

Containers are tuples, lists, dictionaries, named tuples, ``OrderedDict``, ``defaultdict``,
``deque`` and what :func:`register_pytree_node` adds; everything else is a leaf, ``None`` included.
Types are compared exactly: a subclass of a container that was not registered is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ._pytree_path import NAMES, WITH_KEYS
from ._pytree_path import GetAttrKey as GetAttrKey
from ._pytree_path import KeyEntry as KeyEntry
from ._pytree_path import KeyPath as KeyPath
from ._pytree_path import MappingKey as MappingKey
from ._pytree_path import SequenceKey as SequenceKey
from ._pytree_path import _register_namedtuple as _register_namedtuple
from ._pytree_path import key_get as key_get
from ._pytree_path import keystr as keystr
from ._pytree_path import tree_flatten_with_path as tree_flatten_with_path
from ._pytree_path import tree_leaves_with_path as tree_leaves_with_path
from ._pytree_path import tree_map_with_path as tree_map_with_path
from ._pytree_path import treespec_dumps as treespec_dumps
from ._pytree_path import treespec_loads as treespec_loads
from ._pytree_path import treespec_pprint as treespec_pprint

__all__ = [
    "PyTree",
    "Context",
    "FlattenFn",
    "UnflattenFn",
    "DumpableContext",
    "ToDumpableContextFn",
    "FromDumpableContextFn",
    "PyTreeSpec",
    "TreeSpec",
    "LeafSpec",
    "keystr",
    "key_get",
    "register_pytree_node",
    "tree_is_leaf",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_unflatten",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_structure",
    "tree_map",
    "tree_map_with_path",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_all",
    "tree_any",
    "tree_all_only",
    "tree_any_only",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
]

PyTree = Any
Context = Any
DumpableContext = Any
ToDumpableContextFn = Callable[[Any], Any]
FromDumpableContextFn = Callable[[Any], Any]
FlattenFunc = Callable[[Any], tuple[list[Any], Context]]
UnflattenFunc = Callable[[Iterable[Any], Context], Any]
FlattenFn = FlattenFunc
UnflattenFn = UnflattenFunc


class NodeDef(NamedTuple):
    """How containers of one type are taken apart and put together."""

    type: type[Any]
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc


SUPPORTED_NODES: dict[type[Any], NodeDef] = {}


def register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """Makes a type a container.

    Args:
        cls: the type.
        flatten_fn: gives its children as a list, and what else it needs, as the context.
        unflatten_fn: makes it of children and context.
        serialized_type_name: its name in structures that are written as texts.
        to_dumpable_context: makes text of the context, for the same purpose.
        from_dumpable_context: makes the context of the text.
        flatten_with_keys_fn: gives children with their keys, as a list of pairs, and the context.

    Raises:
        ValueError: if it is one already, and for one of the two functions of texts alone.
    """
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or "
            "registered."
        )
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn)
    NAMES[cls] = (serialized_type_name, to_dumpable_context, from_dumpable_context)
    if flatten_with_keys_fn is not None:
        WITH_KEYS[cls] = flatten_with_keys_fn


_register_pytree_node = register_pytree_node


def register_dataclass(
    cls: type[Any],
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Makes a class a container of its fields, in order; those that are None are no children.

    Args:
        cls: a data class, or a class whose ``__init__`` takes ``field_names`` as keywords.
        field_names: the fields; by default those of the data class that ``__init__`` takes.
        drop_field_names: fields that are left out, and have their defaults when it is made anew.
        serialized_type_name: its name in structures that are written as texts.

    Raises:
        ValueError: if the names are not the fields of the data class, or are not given for a class
            that is none.
    """
    names = _checked_fields(cls, field_names, drop_field_names or [])

    def flatten_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], Context]:
        pairs = [(name, getattr(tree, name)) for name in names]
        present = [(GetAttrKey(name), value) for name, value in pairs if value is not None]
        absent = [name for name, value in pairs if value is None]
        return present, [[key.name for key, _ in present], absent]

    def flatten(tree: Any) -> tuple[list[Any], Context]:
        present, context = flatten_with_keys(tree)
        return [value for _, value in present], context

    def unflatten(children: Iterable[Any], context: Context) -> Any:
        present, absent = context
        return cls(**dict(zip(present, children, strict=True)), **dict.fromkeys(absent))

    if cls in SUPPORTED_NODES:
        import warnings

        warnings.warn(
            f"{cls} is already registered as pytree node. Overwriting the previous registration.",
            stacklevel=2,
        )
        _forget(cls)
    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


def _checked_fields(
    cls: type[Any], field_names: list[str] | None, drop_field_names: list[str]
) -> list[str]:
    import dataclasses

    if not dataclasses.is_dataclass(cls):
        if field_names is None:
            raise ValueError(
                "field_names must be specified with a list of all fields used to initialize "
                f"{cls}, as it is not a dataclass."
            )
        return field_names
    own = [field.name for field in dataclasses.fields(cls) if field.init]
    if field_names is None:
        return [name for name in own if name not in drop_field_names]
    text = ""
    if missing := set(own) - set(field_names) - set(drop_field_names):
        text += f" Missing fields in `field_names`: {missing}; name them there or drop them."
    if unexpected := set(field_names) - (set(own) - set(drop_field_names)):
        text += f" Unexpected fields in `field_names`: {unexpected}."
    if text:
        raise ValueError(f"field_names does not include all dataclass fields.{text}")
    return field_names


def _forget(cls: type[Any]) -> None:
    """Makes a container type a leaf again."""
    del SUPPORTED_NODES[cls]
    NAMES.pop(cls, None)
    WITH_KEYS.pop(cls, None)


class ConstantNode(NamedTuple):
    """The context of a constant: the value itself, so that trees with another are not equal."""

    value: Any


_CONSTANTS: set[type[Any]] = set()


def register_constant(cls: type[Any]) -> None:
    """Makes a class a container without children: what its values are belongs to the spec.

    Args:
        cls: a class with ``__eq__`` and ``__hash__`` of its own, by which specs are compared.

    Raises:
        TypeError: if it has not both.
    """
    for method in ("__eq__", "__hash__"):
        if getattr(cls, method) in (None, getattr(object, method)):
            raise TypeError(
                f"register_constant(cls) expects `cls` to have a non-default `{method}` "
                f"implementation, but {cls} has none"
            )
    register_pytree_node(
        cls,
        lambda tree: ([], ConstantNode(tree)),
        lambda children, context: context.value,
        flatten_with_keys_fn=lambda tree: ([], ConstantNode(tree)),
    )
    _CONSTANTS.add(cls)


def is_constant_class(cls: type[Any]) -> bool:
    """Whether :func:`register_constant` was called for this class."""
    return cls in _CONSTANTS


def _add(
    cls: type[Any],
    context: Callable[[Any], Any],
    children: Callable[[Any], Iterable[Any]],
    make: UnflattenFunc,
) -> None:
    register_pytree_node(cls, lambda tree: (list(children(tree)), context(tree)), make)


def _keys(tree: dict[Any, Any]) -> list[Any]:
    return list(tree)


def _list_flatten(d: Any) -> tuple[list[Any], Any]:
    """The items of a list, or of a tuple."""
    return list(d), None


def _list_flatten_with_keys(d: Any) -> tuple[list[tuple[KeyEntry, Any]], Any]:
    """The items of a list with the steps that lead to them."""
    return [(SequenceKey(place), item) for place, item in enumerate(d)], None


def _list_unflatten(values: Iterable[Any], context: Any) -> list[Any]:
    """A list of its items."""
    return list(values)


def _tuple_unflatten(values: Iterable[Any], context: Any) -> tuple[Any, ...]:
    """A tuple of its items."""
    return tuple(values)


_tuple_flatten, _tuple_flatten_with_keys = _list_flatten, _list_flatten_with_keys

register_pytree_node(tuple, _tuple_flatten, _tuple_unflatten)
register_pytree_node(list, _list_flatten, _list_unflatten)


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Any]:
    """The values of a dictionary, and its keys as the context."""
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[KeyEntry, Any]], Any]:
    """The values of a dictionary with the steps that lead to them, and its keys."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _dict_unflatten(values: Iterable[Any], context: Any) -> dict[Any, Any]:
    """A dictionary of values and keys."""
    return dict(zip(context, values, strict=True))


register_pytree_node(dict, _dict_flatten, _dict_unflatten)


def _ordereddict_unflatten(values: Iterable[Any], context: Any) -> OrderedDict[Any, Any]:
    """An ordered dictionary of values and keys."""
    return OrderedDict(zip(context, values, strict=True))


_ordereddict_flatten = _dict_flatten
_ordereddict_flatten_with_keys = _dict_flatten_with_keys
register_pytree_node(OrderedDict, _ordereddict_flatten, _ordereddict_unflatten)
_add(
    defaultdict,
    lambda tree: [tree.default_factory, _keys(tree)],
    defaultdict.values,
    lambda children, context: defaultdict(context[0], zip(context[1], children, strict=True)),
)
_add(deque, lambda tree: tree.maxlen, iter, lambda children, length: deque(children, length))
# (Named tuples are known by their function: each is a type of its own.)
BUILTIN_TYPES: frozenset[Any] = frozenset(
    {tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque}
)

_NAMED = NodeDef(tuple, lambda tree: (list(tree), type(tree)), lambda children, cls: cls(*children))
# Named tuples of results take one sequence.
_STRUCT = NodeDef(tuple, lambda tree: (list(tree), type(tree)), lambda children, cls: cls(children))
_BY_KIND: dict[Any, NodeDef] = {namedtuple: _NAMED, "struct": _STRUCT}


def _node_of(tree: Any) -> NodeDef | None:
    found = SUPPORTED_NODES.get(type(tree))
    if found is None and isinstance(tree, tuple):
        if hasattr(type(tree), "_fields") and hasattr(type(tree), "_make"):
            return _NAMED
        if hasattr(type(tree), "n_sequence_fields"):
            return _STRUCT
    return found


class TreeSpec:
    """A tree without its leaves.

    Args:
        type: the kind of container at the root; None for a leaf.
        context: what its children do not tell, such as keys.
        children_specs: a spec for each child.
    """

    # (A class by hand: specs are made in every call of a transform, and data classes are slower.)
    __slots__ = ("children_specs", "context", "num_leaves", "type")
    type: Any
    context: Context
    children_specs: list[TreeSpec]
    num_leaves: int

    def __init__(self, type: Any, context: Context, children_specs: list[TreeSpec]) -> None:
        """Counts the leaves."""
        self.type = type
        self.context = context
        self.children_specs = children_specs
        count = 1 if type is None else 0
        for child in children_specs:
            count += child.num_leaves
        self.num_leaves = count

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (
            self.type == other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def is_leaf(self) -> bool:
        """Whether the spec is a single leaf."""
        return self.type is None

    @property
    def num_children(self) -> int:
        """The number of children of the root."""
        return len(self.children_specs)

    @property
    def num_nodes(self) -> int:
        """The number of containers and leaves."""
        return 1 + sum(child.num_nodes for child in self.children_specs)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves.

        Raises:
            ValueError: if there are more or fewer than the tree has.
        """
        given = leaves if type(leaves) is list else list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec "
                f"refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return given[0] if self.type is None else self._filled(iter(given))

    def _filled(self, leaves: Any) -> Any:
        children = [
            next(leaves) if child.type is None else child._filled(leaves)
            for child in self.children_specs
        ]
        node = SUPPORTED_NODES.get(self.type) or _BY_KIND[self.type]
        return node.unflatten_fn(children, self.context)

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        name = self.type if isinstance(self.type, str) else self.type.__name__
        # (The first child stands on the line of its parent, each other one on a line of its own.)
        below = ",\n  ".join(repr(child).replace("\n", "\n  ") for child in self.children_specs)
        return f"TreeSpec({name}, {self.context}, [{below}])"


class LeafSpec(TreeSpec):
    """The spec of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF = LeafSpec()


def treespec_leaf() -> LeafSpec:
    """The spec of a leaf."""
    return _LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The spec of a tuple.

    Args:
        iterable: the specs of its items.

    Raises:
        ValueError: for items that are no specs.
    """
    children = list(iterable)
    if not all(isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children}.")
    return TreeSpec(tuple, None, children)


IsLeaf = Callable[[Any], bool] | None


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the tree without them.

    Args:
        tree: containers of containers.
        is_leaf: what it says true of is not taken apart.
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    node = None if is_leaf is not None and is_leaf(tree) else _node_of(tree)
    if node is None:
        leaves.append(tree)
        return _LEAF
    children, context = node.flatten_fn(tree)
    kind = namedtuple if node is _NAMED else "struct" if node is _STRUCT else type(tree)
    if is_leaf is not None:
        return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])
    specs = []
    for child in children:
        # (Most children are leaves, which need no call of their own.)
        if type(child) in SUPPORTED_NODES or isinstance(child, tuple):
            specs.append(_flatten(child, leaves, None))
        else:
            leaves.append(child)
            specs.append(_LEAF)
    return TreeSpec(kind, context, specs)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree that :func:`tree_flatten` took apart, with other leaves.

    Raises:
        TypeError: if ``treespec`` is none.
        ValueError: for another number of leaves.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but "
            f"got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of a call's arguments, those by name last."""
    return tree_leaves(args) + tree_leaves(list(kwargs.values()))


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """The tree without its leaves."""
    return tree_flatten(tree, is_leaf)[1]


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Any:
    """An iterator over the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree of ``func(leaf, ...)``; further trees have the same structure at least.

    Raises:
        ValueError: if a further tree differs.
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(_leaves_below(rest, spec) for rest in rests)]
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """As :func:`tree_map`, for the effects of ``func``; returns the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _leaves_below(tree: Any, spec: TreeSpec) -> list[Any]:
    """The subtrees of ``tree`` in the places where ``spec`` has leaves."""
    if spec.is_leaf():
        return [tree]
    node = _node_of(tree)
    children, context = node.flatten_fn(tree) if node is not None else ([], None)
    kind = namedtuple if node is _NAMED else "struct" if node is _STRUCT else type(tree)
    if kind != spec.type or len(children) != spec.num_children or context != spec.context:
        raise ValueError(f"Node type mismatch; expected {spec}, but got {tree!r}.")
    pairs = zip(children, spec.children_specs, strict=True)
    return [leaf for child, below in pairs for leaf in _leaves_below(child, below)]


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: IsLeaf = None
) -> list[Any] | None:
    """For each leaf of a spec, the leaf of ``tree`` that stands at its place or above it.

    Args:
        tree: the beginning of a tree of that structure: a leaf may stand for a whole branch.
        treespec: the structure.
        is_leaf: what it says true of is not taken apart.

    Returns:
        The leaves, or None if the structures do not fit.
    """
    node = None if is_leaf is not None and is_leaf(tree) else _node_of(tree)
    if node is None:
        return [tree] * treespec.num_leaves
    children, context = node.flatten_fn(tree)
    kind = namedtuple if node is _NAMED else "struct" if node is _STRUCT else type(tree)
    if kind != treespec.type or context != treespec.context:
        return None
    if len(children) != treespec.num_children:
        return None
    found: list[Any] = []
    for child, below in zip(children, treespec.children_specs, strict=True):
        leaves = _broadcast_to_and_flatten(child, below, is_leaf)
        if leaves is None:
            return None
        found += leaves
    return found


def tree_map_only(
    type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None
) -> Any:
    """As :func:`tree_map` for leaves of some types (or of which a function says true)."""
    wanted = type_or_types_or_pred
    if isinstance(wanted, (type, tuple)):
        types = wanted
        return tree_map(lambda x: func(x) if isinstance(x, types) else x, tree, is_leaf=is_leaf)
    return tree_map(lambda x: func(x) if wanted(x) else x, tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None
) -> Any:
    """As :func:`tree_map_only`, for the effects of ``func``; returns the tree."""
    tree_map_only(type_or_types_or_pred, func, tree, is_leaf)
    return tree


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether ``pred`` is true of all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether ``pred`` is true of some leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether the tree is a leaf, which is not taken apart."""
    return (is_leaf is not None and is_leaf(tree)) or _node_of(tree) is None


def _only(type_or_types: Any, tree: Any, is_leaf: IsLeaf) -> list[Any]:
    return [leaf for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types)]


def tree_all_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None
) -> bool:
    """Whether ``pred`` is true of all leaves of some types."""
    return all(map(pred, _only(type_or_types, tree, is_leaf)))


def tree_any_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None
) -> bool:
    """Whether ``pred`` is true of some leaf of some types."""
    return any(map(pred, _only(type_or_types, tree, is_leaf)))


def is_namedtuple_class(cls: Any) -> bool:
    """Whether a value is a class of named tuples."""
    is_tuple = isinstance(cls, type) and issubclass(cls, tuple)
    return is_tuple and hasattr(cls, "_fields") and hasattr(cls, "_make")


def is_namedtuple_instance(obj: object) -> bool:
    """Whether a value is a named tuple."""
    return is_namedtuple_class(type(obj))


def _get_node_type(tree: object) -> Any:
    """The class by which a tree is looked up; ``namedtuple`` for those that are not registered."""
    is_plain = is_namedtuple_instance(tree) and type(tree) not in SUPPORTED_NODES
    return namedtuple if is_plain else type(tree)


def is_namedtuple(obj: object) -> bool:
    """Whether a value is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether a value is a class of results with names, as ``torch.return_types.max``."""
    is_tuple = isinstance(cls, type) and issubclass(cls, tuple)
    return is_tuple and isinstance(getattr(cls, "n_sequence_fields", None), int)


def is_structseq_instance(obj: object) -> bool:
    """Whether a value is a result with names."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether a value is a result with names, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


PyTreeSpec = TreeSpec
