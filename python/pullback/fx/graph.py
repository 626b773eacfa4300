"""Graphs of calls: a list of nodes in the order in which they run."""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ._codegen import Names, PythonCode, generate
from .node import Node, map_arg

if TYPE_CHECKING:
    from .. import nn

__all__ = ["CodeGen", "Graph", "PythonCode"]


class CodeGen:
    """How a graph becomes the text of a function; a class derived from it may change its inputs."""

    def process_inputs(self, *args: Any) -> Any:
        """The inputs of the graph from those of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The result of the function from the output of the graph."""
        return outputs


class _Nodes:
    """The nodes of a graph in their order, or in the reverse one. Nodes may be erased meanwhile."""

    def __init__(self, graph: Graph, step: str = "_next") -> None:
        self._graph = graph
        self._step = step

    def __len__(self) -> int:
        return self._graph._count

    def __iter__(self) -> Iterator[Node]:
        root = self._graph._root
        node = getattr(root, self._step)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self._step)

    def __reversed__(self) -> _Nodes:
        return _Nodes(self._graph, "_prev" if self._step == "_next" else "_next")


class Graph:
    """A list of calls, from placeholders to the output.

    Args:
        owning_module: the module whose attributes the graph names.
        tracer_cls: the class of the tracer that made it.
        tracer_extras: what that needs besides.
    """

    def __init__(
        self,
        owning_module: nn.Module | None = None,
        tracer_cls: type | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._count = 0
        self._names = Names()
        self._insert: Callable[[Node], None] = self._root.prepend
        self._codegen = CodeGen()
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self.owning_module = owning_module

    @property
    def nodes(self) -> _Nodes:
        """All nodes in their order."""
        return _Nodes(self)

    def output_node(self) -> Node:
        """The node that gives the result.

        Raises:
            RuntimeError: if there is none.
        """
        last = self._root._prev
        if last.op != "output":
            raise RuntimeError("the graph has no output")
        return last

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind, in their order.

        Args:
            op: the kind.
            target: what they call; needed for functions.
            sort: not used: they are in order in any case.
        """
        if op == "call_function" and target is None:
            raise AssertionError("find_nodes(op='call_function') needs a target")
        return [node for node in self.nodes if node.op == op and target in (None, node.target)]

    # --- making nodes --------------------------------------------------------------------------

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a node at the point of insertion.

        Raises:
            AssertionError: for a kind that there is not, and arguments of other types.
        """
        args, kwargs = () if args is None else args, kwargs or {}
        if not isinstance(args, tuple):
            raise AssertionError("args must be a tuple")
        if not isinstance(kwargs, dict):
            raise AssertionError("kwargs must be a dict")
        for used in _nodes_of(args, kwargs):
            if used.graph is not self:
                raise RuntimeError(f"node {used.name} belongs to another graph")
        candidate = name if name is not None else self._target_to_str(target)
        node = Node(self, self._names.new(candidate), op, target, args, kwargs, type_expr)
        self._insert(node)
        self._count += 1
        return node

    @staticmethod
    def _target_to_str(target: Any) -> str:
        if callable(target):
            name = str(getattr(target, "__name__", type(target).__name__))
            return name.strip("_").split(".")[0] or name
        return str(target).lstrip("*").replace(".", "_")

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Adds an input. ``default_value`` is its default, if it has one."""
        args = () if default_value in (..., _EMPTY) else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Adds the reading of a parameter, buffer or other attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds the call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds the call of a method of ``args[0]``."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Adds the call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Adds the result."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Adds a copy of a node of another graph, with its arguments transformed."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        result = self.create_node(node.op, node.target, args, dict(kwargs), node.name, node.type)
        result.meta = copy.copy(node.meta)
        return result

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Adds copies of all nodes of another graph; gives what stands for its output.

        Args:
            g: the other graph.
            val_map: what stands for its nodes; those that are not in it are copied and noted.
            return_output_node: whether to give its output node too.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda used: val_map[used])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda used: val_map[used])
        return None

    # --- changing it ---------------------------------------------------------------------------

    def inserting_before(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """Lets nodes be added before ``n``, or at the beginning; also as a ``with`` block."""
        if n is not None and n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _Insertion(self, n.prepend if n is not None else _in_order(self._root))

    def inserting_after(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """Lets nodes be added after ``n``, or at the end; also as a ``with`` block."""
        if n is not None and n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _Insertion(self, _in_order(n) if n is not None else self._root.prepend)

    def erase_node(self, to_erase: Node) -> None:
        """Takes a node out that nobody uses.

        Raises:
            RuntimeError: if somebody uses it, or if it is of another graph.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        self._count -= 1
        to_erase._set(map_arg(to_erase.args, _nothing), map_arg(to_erase.kwargs, _nothing))

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Takes out the nodes whose results nobody uses and that change nothing else.

        Args:
            is_impure_node: says which nodes must stay.

        Returns:
            Whether there were any.
        """
        self.lint()
        is_impure = is_impure_node or Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not is_impure(node):
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """Checks the order of nodes, that names are unique, and that attributes exist.

        Raises:
            RuntimeError: for what is not so.
        """
        known: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node.all_input_nodes:
                if used not in known:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been defined! "
                        f"Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            known.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._check_attribute(node)

    def _check_attribute(self, node: Node) -> None:
        found: Any = self.owning_module
        for part in node.target.split("."):
            if not hasattr(found, part):
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part}"
                )
            found = getattr(found, part)
        from .. import nn

        if node.op == "call_module" and not isinstance(found, nn.Module):
            raise RuntimeError(f"Node {node} target {node.target} does not reference an nn.Module")

    # --- text ----------------------------------------------------------------------------------

    def set_codegen(self, codegen: CodeGen) -> None:
        """Chooses how the graph's function takes inputs and gives results."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """The inputs of the graph from those of its function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The function's result from the output of the graph."""
        return self._codegen.process_outputs(out)

    def python_code(self, root_module: str, **options: Any) -> PythonCode:
        """The graph as a Python function, whose first parameter is the module.

        Args:
            root_module: the parameter's name, ``self``.
            options: PyTorch's options for printing, without effect on what it computes.
        """
        return generate(self, root_module)

    def print_tabular(self) -> None:
        """Prints a table of the nodes."""
        header = ("opcode", "name", "target", "args", "kwargs")
        rows = [header]
        rows += [(n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in self.nodes]
        widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
        rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))

    def __str__(self) -> str:
        placeholders: list[str] = []
        lines = [node.format_node(placeholders) for node in self.nodes]
        head = f"graph({', '.join('%' + name for name in placeholders)}):"
        return head + "".join(f"\n    {line}" for line in lines if line is not None)

    def __deepcopy__(self, memo: Any = None) -> Graph:
        graph = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        graph._codegen = copy.copy(self._codegen)
        values: dict[Node, Node] = {}
        copied = graph.graph_copy(self, values, return_output_node=True)
        if copied is not None:
            result, old = copied
            graph.output(result, old.type).meta = copy.copy(old.meta)
        return graph

    def __reduce__(self) -> Any:
        return _rebuild, (
            [
                (
                    node.name,
                    node.op,
                    node.target,
                    _packed(node.args),
                    _packed(dict(node.kwargs)),
                    node.type,
                )
                for node in self.nodes
            ],
            self._tracer_cls,
        )


_EMPTY = inspect.Parameter.empty


class _Insertion(contextlib.AbstractContextManager[None]):
    """A point of insertion, in force from its making to the end of a ``with`` block over it."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self._graph, self._before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        self._graph._insert = self._before


def _in_order(start: Node) -> Callable[[Node], None]:
    """Inserts nodes after ``start``, each after the one before."""
    last = start

    def insert(node: Node) -> None:
        nonlocal last
        last.append(node)
        last = node

    return insert


class _Named:
    """A node in a pickle."""

    def __init__(self, name: str) -> None:
        self.name = name


def _packed(value: Any) -> Any:
    return map_arg(value, lambda node: _Named(node.name))


def _rebuild(rows: Sequence[Any], tracer_cls: type | None) -> Graph:
    from .node import map_aggregate

    graph = Graph(tracer_cls=tracer_cls)
    made: dict[str, Node] = {}

    def unpack(value: Any) -> Any:
        return map_aggregate(value, lambda v: made[v.name] if isinstance(v, _Named) else v)

    for name, op, target, args, kwargs, kind in rows:
        made[name] = graph.create_node(op, target, unpack(args), dict(unpack(kwargs)), name, kind)
    return graph


def _nothing(node: Node) -> None:
    return None


def _seen(found: list[Node], node: Node) -> Node:
    found.append(node)
    return node


def _nodes_of(args: Any, kwargs: Any) -> list[Node]:
    found: list[Node] = []
    map_arg((args, kwargs), lambda node: _seen(found, node))
    return found
