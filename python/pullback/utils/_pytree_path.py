"""Leaves of containers with the way that leads to each, and structures as texts."""

from __future__ import annotations

import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._pytree import TreeSpec

__all__ = [
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "MappingKey",
    "SequenceKey",
    "key_get",
    "keystr",
    "tree_flatten_with_path",
    "tree_leaves_with_path",
    "tree_map_with_path",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
]


@dataclass(frozen=True)
class SequenceKey:
    """The index in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """What is there."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """The key in a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """What is there."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """The name of an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """What is there."""
        return getattr(obj, self.name)


KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]
# The functions of a registered type: its children with keys; its name and its context as text.
WITH_KEYS: dict[type[Any], Callable[[Any], tuple[list[tuple[Any, Any]], Any]]] = {}
NAMES: dict[type[Any], tuple[str | None, Any, Any]] = {}
_SEQUENCES = (list, tuple, deque)
_MAPPINGS = (dict, OrderedDict, defaultdict)


def _keys(tree: Any, count: int) -> Sequence[Any]:
    """The keys of a container's children, in order.

    Raises:
        ValueError: for a type that does not say them.
    """
    kind = type(tree)
    if kind in WITH_KEYS:
        return [key for key, _ in WITH_KEYS[kind](tree)[0]]
    if kind in _MAPPINGS:
        return [MappingKey(key) for key in tree]
    if kind in _SEQUENCES or hasattr(kind, "n_sequence_fields"):
        return [SequenceKey(index) for index in range(count)]
    if isinstance(tree, tuple) and hasattr(kind, "_fields"):
        return [GetAttrKey(name) for name in kind._fields]
    raise ValueError(
        f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn "
        "argument to register_pytree_node."
    )


def _paths(tree: Any, is_leaf: Any, path: KeyPath, found: list[tuple[KeyPath, Any]]) -> None:
    from ._pytree import _node_of

    node = None if is_leaf is not None and is_leaf(tree) else _node_of(tree)
    if node is None:
        found.append((path, tree))
        return
    children, _ = node.flatten_fn(tree)
    for key, child in zip(_keys(tree, len(children)), children, strict=True):
        _paths(child, is_leaf, (*path, key), found)


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves in order, each with the keys that lead to it, and the tree without them.

    Args:
        tree: containers of containers.
        is_leaf: what it says true of is not taken apart.

    Raises:
        ValueError: for a type that was registered without ``flatten_with_keys_fn``.
    """
    from ._pytree import tree_structure

    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[tuple[KeyPath, Any]]:
    """The leaves in order, each with the keys that lead to it."""
    found: list[tuple[KeyPath, Any]] = []
    _paths(tree, is_leaf, (), found)
    return found


def tree_map_with_path(
    func: Callable[..., Any],
    tree: Any,
    *rests: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """The tree of ``func(keys, leaf, ...)``; further trees have the same structure at least.

    Raises:
        ValueError: if a further tree differs.
    """
    from ._pytree import _leaves_below

    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    rows = [leaves, *(_leaves_below(rest, spec) for rest in rests)]
    return spec.unflatten([func(*first, *more) for first, *more in zip(*rows, strict=True)])


def keystr(kp: KeyPath) -> str:
    """Keys as they would be written behind the tree."""
    return "".join(str(key) for key in kp)


def key_get(obj: Any, kp: KeyPath) -> Any:
    """The subtree at the end of a path of keys."""
    for key in kp:
        obj = key.get(obj)
    return obj


_PROTOCOL = 1
_BUILTIN = {
    "builtins.list": list,
    "builtins.tuple": tuple,
    "builtins.dict": dict,
    "collections.OrderedDict": OrderedDict,
    "collections.defaultdict": defaultdict,
    "collections.deque": deque,
    "collections.namedtuple": namedtuple,
}
# The names that classes of named tuples have in texts.
_NAMED_TUPLES: dict[type[Any], str] = {}


def _register_namedtuple(cls: type[Any], *, serialized_type_name: str) -> None:
    """Gives a class of named tuples the name by which it is known in structures that are texts.

    Args:
        cls: the class.
        serialized_type_name: the name.
    """
    _NAMED_TUPLES[cls] = serialized_type_name


def _name_of(kind: Any, context: Any) -> str:
    for name, known in _BUILTIN.items():
        if kind is known:
            return name
    if isinstance(kind, str):
        raise NotImplementedError(f"Can't serialize TreeSpec of {context}, a result with names.")
    registered = NAMES.get(kind, (None, None, None))[0]
    if registered is None:
        raise NotImplementedError(
            f"No registered serialization name for {kind} found. Please update your "
            "_register_pytree_node call with a `serialized_type_name` kwarg."
        )
    return registered


def _enumerator(key: Any) -> Any:
    """A member of an enumeration as text."""
    import enum

    if isinstance(key, enum.Enum):
        return {"__enum__": True, "fqn": f"{type(key).__module__}:{key}", "name": key.name}
    raise TypeError(f"Object of type {type(key).__name__} is not JSON serializable")


def _dumped(spec: TreeSpec) -> dict[str, Any]:
    import json

    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    name = _name_of(spec.type, spec.context)
    to_text = NAMES.get(spec.type, (None, None, None))[1]
    context: Any
    if to_text is not None:
        context = to_text(spec.context)
    elif spec.type is namedtuple:
        if spec.context not in _NAMED_TUPLES:
            raise NotImplementedError(
                f"Can't serialize TreeSpec of namedtuple class {spec.context} because we didn't "
                "register a serialized_type_name. Please register using `_register_namedtuple`."
            )
        context = _NAMED_TUPLES[spec.context]
    elif spec.type is defaultdict:
        factory, keys = spec.context
        context = {
            "default_factory_module": factory.__module__,
            "default_factory_name": factory.__qualname__,
            "dict_context": list(keys),
        }
    else:
        context = json.dumps(spec.context, default=_enumerator)
    children = [_dumped(child) for child in spec.children_specs]
    return {"type": name, "context": context, "children_spec": children}


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as JSON, in PyTorch's form.

    Raises:
        TypeError: for what is no structure.
        ValueError: for another form than 1.
        NotImplementedError: for a type that was registered without a name.
    """
    import json

    from ._pytree import TreeSpec

    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "Expected `treespec` to be an instance of PyTreeSpec but got item of type "
            f"{type(treespec)}."
        )
    _check_protocol(_PROTOCOL if protocol is None else protocol)
    return json.dumps((_PROTOCOL, _dumped(treespec)), indent=None)


def _check_protocol(protocol: int) -> None:
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")


def _loaded(data: dict[str, Any]) -> TreeSpec:
    import json

    from ._pytree import LeafSpec, TreeSpec

    name, text = data["type"], data["context"]
    if name is None:
        return LeafSpec()
    children = [_loaded(child) for child in data["children_spec"]]
    kind = _BUILTIN.get(name)
    if kind is defaultdict:
        module = importlib.import_module(text["default_factory_module"])
        factory = getattr(module, text["default_factory_name"])
        return TreeSpec(kind, [factory, list(text["dict_context"])], children)
    if kind is namedtuple:
        for cls, own in _NAMED_TUPLES.items():
            if own == text:
                return TreeSpec(kind, cls, children)
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {text} because we couldn't find a "
            "registered class of that name. Please register using `_register_namedtuple`."
        )
    if kind is not None:
        return TreeSpec(kind, json.loads(text), children)
    for registered, (its_name, _, from_text) in NAMES.items():
        if its_name == name:
            context = json.loads(text) if from_text is None else from_text(text)
            return TreeSpec(registered, context, children)
    raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that :func:`treespec_dumps` wrote.

    Raises:
        ValueError: for another form than 1.
        NotImplementedError: for a type that is not registered.
    """
    import json

    protocol, data = json.loads(serialized)
    _check_protocol(protocol)
    return _loaded(data)


class _Star:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The structure as a tree whose leaves are stars."""
    return repr(treespec.unflatten([_Star() for _ in range(treespec.num_leaves)]))
