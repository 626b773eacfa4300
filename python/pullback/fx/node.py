"""Nodes of a graph of calls: what is called, with which arguments, and who uses the result."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Argument", "Node", "has_side_effect", "map_aggregate", "map_arg"]

OPS = (
    "placeholder",
    "get_attr",
    "call_function",
    "call_method",
    "call_module",
    "output",
    "root",
)
# A node, plain data, or a collection of these.
Argument = Any
Target = Any
_SIDE_EFFECTS: set[Callable[..., Any]] = {builtins.print, builtins.setattr}


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Says that calls of a function must stay, whether their result is used or not."""
    _SIDE_EFFECTS.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """Applies ``fn`` to all that is in nested tuples, lists, dictionaries and slices."""
    if isinstance(a, tuple):
        mapped = [map_aggregate(item, fn) for item in a]
        return type(a)(*mapped) if hasattr(a, "_fields") else tuple(mapped)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(part, fn) for part in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """Applies ``fn`` to all nodes in an argument."""
    if not callable(fn):
        raise TypeError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda item: fn(item) if isinstance(item, Node) else item)


def _module_name(function: Any) -> str:
    """The module under which a function is found, as programs spell it."""
    from .. import nn

    name, top = function.__name__, _top()
    module = str(getattr(function, "__module__", None) or "")
    own = top.__name__
    if module and module != own and not module.startswith((f"{own}.", "torch.")):
        return module
    calls = (
        (top, "torch"),
        (nn.functional, "torch.nn.functional"),
        *(
            (getattr(top, part), f"torch.{part}")
            for part in ("linalg", "special", "fft")
            if hasattr(top, part)
        ),
    )
    for owner, path in calls:
        if getattr(owner, name, None) is function:
            return path
    return module


def _top() -> Any:
    import sys

    return sys.modules[__name__.partition(".")[0]]


def qualified_name(function: Any) -> str:
    """How generated code calls a function: ``torch.relu``, ``torch.ops.aten.add.Tensor``."""
    name = getattr(function, "__name__", None)
    if name is not None and getattr(builtins, name, None) is function:
        return str(name)
    from .._ops import OpOverload

    if isinstance(function, OpOverload):
        return f"torch.ops.{function}"
    if isinstance(function, types.MethodDescriptorType | types.WrapperDescriptorType):
        return f"{function.__objclass__.__name__}.{function.__name__}"
    if name is None:
        return type(function).__name__
    if name == "<lambda>":
        raise RuntimeError("lambda functions are not allowed: give the function a name")
    module = _module_name(function)
    own = _top().__name__
    if module == own or module.startswith(own + "."):
        module = "torch" + module[len(own) :]
    return f"{module}.{name}" if module else str(name)


class Node:
    """One call of a graph.

    Attributes:
        op: ``placeholder`` (an input), ``get_attr``, ``call_function``, ``call_method``,
            ``call_module`` or ``output``.
        target: a name, or the function.
        users: the nodes that use the result, as keys.
        meta: whatever passes keep here.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any | None = None,
    ) -> None:
        """Made by :meth:`Graph.create_node`."""
        if op not in OPS:
            raise AssertionError(f"{op!r} is none of {OPS}")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target).__name__} but a Callable is expected"
            )
        if op not in ("call_function", "root") and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target).__name__} but a str is expected"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._set(args, kwargs)

    # --- the list ------------------------------------------------------------------------------

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: Node) -> None:
        """Moves ``x`` directly before this node."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Moves ``x`` directly after this node."""
        self._next.prepend(x)

    def __lt__(self, other: Node) -> bool:
        return self._position() < other._position()

    def __gt__(self, other: Node) -> bool:
        return self._position() > other._position()

    def _position(self) -> int:
        return next(number for number, node in enumerate(self.graph.nodes) if node is self)

    # --- arguments -----------------------------------------------------------------------------

    @property
    def args(self) -> tuple[Argument, ...]:
        """The arguments by position."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._set(self._args, kwargs)

    def _set(self, args: Sequence[Argument], kwargs: Mapping[str, Argument]) -> None:
        for used in self._input_nodes:
            used.users.pop(self, None)
        self._input_nodes = {}

        def see(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args: tuple[Argument, ...] = map_arg(tuple(args), see)
        self._kwargs: dict[str, Argument] = map_arg(dict(kwargs), see)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes whose results it uses, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replaces an argument by position."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Puts an argument before the one at a position."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replaces an argument by name."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Uses ``new_input`` wherever ``old_input`` was used."""

        def swap(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set(map_arg(self.args, swap), map_arg(self.kwargs, swap))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Lets the users of this node use another one; gives those that were changed."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # --- questions -----------------------------------------------------------------------------

    @property
    def stack_trace(self) -> str | None:
        """The lines of the program that made the call, if they were recorded."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node must stay even if nobody uses its result."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            name = getattr(self.target, "__name__", "")
            writes = name.endswith("_") and not name.endswith("__")
            draws = impure_random and name in _RANDOM
            return self.target in _SIDE_EFFECTS or writes or draws or "out" in self.kwargs
        if self.op == "call_module":
            owner = self.graph.owning_module
            module = owner.get_submodule(self.target) if owner is not None else None
            return bool(getattr(module, "_is_impure", False))
        if self.op == "call_method":
            return bool(self.target.endswith("_") and not self.target.endswith("__"))
        return False

    def normalized_arguments(
        self,
        root: Any,
        arg_types: Any = None,
        kwarg_types: Any = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """The arguments by the names of the callee's signature; None if it has none."""
        from .operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(
                self.target,
                self.args,
                self.kwargs,
                arg_types,
                kwarg_types,
                normalize_to_only_use_kwargs,
            )
        if self.op == "call_module":
            return normalize_module(
                root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs
            )
        return None

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """A line that describes the node."""
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(str(self.target))
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            head = f"%{self.name} : [num_users={len(self.users)}]"
            return f"{head} = {self.op}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={self.target}]"
        if self.op == "output":
            return f"return {self.args[0] if self.args else None}"
        target = self.target if isinstance(self.target, str) else _shown_target(self.target)
        return (
            f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={target}]"
            f"(args = {_shown(self.args)}, kwargs = {_shown(self.kwargs)})"
        )

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn is not None else self.name

    def __reduce__(self) -> Any:
        raise TypeError("a Node cannot be pickled: pickle its Graph or GraphModule")


_RANDOM = {"dropout", "rand", "randn", "randint", "bernoulli", "normal", "multinomial", "randperm"}


def _shown(value: Any) -> str:
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, tuple):
        items = ", ".join(_shown(item) for item in value)
        return f"({items}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(_shown(item) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_shown(item)}' for key, item in value.items())}}}"
    return repr(value)


def _shown_target(target: Any) -> str:
    return qualified_name(target) if callable(target) else str(target)


def nodes_in(values: Iterable[Any]) -> list[Node]:
    """The nodes in nested collections."""
    found: list[Node] = []

    def see(node: Node) -> Node:
        found.append(node)
        return node

    map_arg(tuple(values), see)
    return found
