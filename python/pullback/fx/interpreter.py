"""Running a graph node by node, and making a new one on the way."""

from __future__ import annotations

from typing import Any

from .. import nn
from ._symbolic_trace import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_aggregate, map_arg
from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs the nodes of a module's graph; classes derived from it change what each does.

    Args:
        module: the module.
        garbage_collect_values: whether a result is dropped after its last use.
        graph: the graph to run, if it is not the module's.
    """

    def __init__(
        self, module: nn.Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = graph if graph is not None else module.graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            from ._codegen import last_uses

            self.user_to_last_uses = last_uses(self.graph)

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """Runs the graph.

        Args:
            args: its inputs.
            initial_env: results that are known.
            enable_io_processing: whether the graph's code generator prepares inputs and results.

        Returns:
            The result.
        """
        self.env = dict(initial_env or {})
        given = self.graph.process_inputs(*args) if enable_io_processing else args
        self.args_iter = iter(given)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback and hasattr(error, "add_note"):
                    error.add_note(f"While executing {node.format_node()}")
                raise
            for used in self.user_to_last_uses.get(node, []):
                del self.env[used]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def run_node(self, n: Node) -> Any:
        """Runs one node, by the method of its kind."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An input.

        Raises:
            RuntimeError: if it is missing and has no default.
        """
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a method of the first argument."""
        self_, *rest = args
        return getattr(self_, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """What the module has under a name.

        Raises:
            RuntimeError: if it has nothing there.
        """
        found: Any = self.module
        for part in target.split("."):
            if not hasattr(found, part):
                raise RuntimeError(f"Node referenced nonexistent target {target}")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values of a node's arguments."""
        args = self.map_nodes_to_values(n.args, n)
        kwargs = self.map_nodes_to_values(n.kwargs, n)
        return tuple(args), dict(kwargs)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Arguments with values in the places of nodes.

        Raises:
            RuntimeError: for a node that was not run.
        """

        def load(used: Node) -> Any:
            if used not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {used}! Run Graph.lint() to diagnose"
                )
            return self.env[used]

        return _thawed(map_arg(args, load))

    def boxed_run(self, args_list: list[Any]) -> Any:
        """As :meth:`run`; takes the inputs out of the list."""
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args)


def _thawed(value: Any) -> Any:
    """Collections of the program's own kinds again."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_thawed(item) for item in value)
    if isinstance(value, list):
        return [_thawed(item) for item in value]
    if isinstance(value, dict):
        return {key: _thawed(item) for key, item in value.items()}
    return value


class Transformer(Interpreter):
    """Makes a new graph of what the methods do with each node of a module's graph.

    Args:
        module: the module.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = _TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """An input of the new graph."""
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """The reading of an attribute in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a module in the new graph."""
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of a function in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        result = super().run(enable_io_processing=False)
        if result is not None:

            def node_of(value: Any) -> Any:
                return value.node if isinstance(value, Proxy) else value

            self.new_graph.output(map_aggregate(result, node_of))
        return GraphModule(self.module, self.new_graph)


class _TransformerTracer(Tracer):
    """Adds to the new graph; every module is one node."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return True
