"""Modules whose forward is made of a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
from collections.abc import Callable
from typing import Any

from .. import nn
from ._codegen import PythonCode
from .graph import Graph

__all__ = ["GraphModule", "reduce_graph_module"]

_numbers = itertools.count()


def _compiled(code: PythonCode) -> Callable[..., Any]:
    """The function of a text; errors show its lines."""
    filename = f"<eval_with_key>.{next(_numbers)}"
    source = code.src
    lines = source.splitlines(keepends=True)
    # (The modification time `None` keeps the entry from being looked for on disk.)
    linecache.cache[filename] = (len(source), None, lines, filename)
    names = dict(code.globals)
    exec(compile(source, filename, "exec"), names)
    function: Callable[..., Any] = names["forward"]
    return function


def reduce_graph_module(body: dict[str, Any], graph: Graph, name: str) -> GraphModule:
    """The function by which a pickle of a :class:`GraphModule` is rebuilt."""
    root = nn.Module()
    root.__dict__.update(body)
    return GraphModule(root, graph, name)


class GraphModule(nn.Module):
    """A module that computes what its graph says.

    Args:
        root: a module, or a dictionary by names, that has what the graph's ``call_module`` and
            ``get_attr`` nodes name.
        graph: the graph; its ``owning_module`` is this module from now on.
        class_name: the name of the module's class.

    Raises:
        RuntimeError: if something that the graph names is not there.
    """

    _graph: Graph

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        """Each module has a class of its own, whose ``forward`` is its graph's."""
        own = next(base for base in cls.__mro__ if not base.__dict__.get("_is_generated", False))
        kind = type(own.__name__, (own,), {"_is_generated": True})
        return super().__new__(kind)

    def __init__(
        self, root: nn.Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        type(self).__name__ = class_name
        names = sorted(
            {node.target for node in graph.nodes if node.op in ("call_module", "get_attr")},
            key=lambda name: name.count("."),
        )
        if isinstance(root, nn.Module):
            self.training = root.training
            for name in names:
                _copy(root, self, name)
        else:
            for name in names:
                if name not in root:
                    raise RuntimeError(
                        f"a node of the graph references target {name} but a reference to that "
                        "target was not provided in ``root``!"
                    )
                _assign(self, name, root[name])
        self.meta: dict[str, Any] = {}
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph. After a change of it, :meth:`recompile` makes the module follow."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(graph)}")
        if graph.owning_module is not None and graph.owning_module is not self:
            graph = copy.deepcopy(graph)
        object.__setattr__(self, "_graph", graph)
        graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The text of ``forward``."""
        return str(self._code)

    def recompile(self) -> PythonCode:
        """Makes ``forward`` of the graph anew."""
        code = self._graph.python_code("self")
        object.__setattr__(self, "_code", code.src)
        codegen = self._graph._codegen
        function = _compiled(code)
        if type(codegen).process_inputs is not _PLAIN_INPUTS:
            inner = function

            def function(self: Any, *args: Any) -> Any:
                return codegen.process_outputs(inner(self, *codegen.process_inputs(*args)))

        type(self).forward = function
        return code

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Puts a module under a name, ``encoder.layer``; makes what is missing on the way.

        Returns:
            Whether it could be put there.
        """
        *path, name = target.split(".")
        owner: nn.Module = self
        for part in path:
            inside = getattr(owner, part, None)
            if inside is None:
                inside = nn.Module()
                setattr(owner, part, inside)
            if not isinstance(inside, nn.Module):
                return False
            owner = inside
        owner.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Takes a submodule out.

        Returns:
            Whether it was there.
        """
        *path, name = target.split(".")
        owner: Any = self
        for part in path:
            owner = getattr(owner, part, None)
            if not isinstance(owner, nn.Module):
                return False
        if not isinstance(getattr(owner, name, None), nn.Module):
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Takes out the submodules that no node names."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[:length]) for length in range(1, len(parts) + 1))
                if node.op == "call_module":
                    inside = self.get_submodule(node.target)
                    used.update(f"{node.target}.{name}" for name, _ in inside.named_modules())
        for name, _ in list(self.named_modules()):
            if name and name not in used:
                self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The text of the module; printed, unless that is not wanted."""
        text = f"class {type(self).__name__}(torch.nn.Module):" + self.code.replace("\n", "\n    ")
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Writing a module as a package of source files is not supported.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("GraphModule.to_folder(): save the module with torch.save()")

    def __deepcopy__(self, memo: Any) -> GraphModule:
        root = nn.Module()
        root.__dict__.update(copy.deepcopy(self._plain_dict(), memo))
        result = GraphModule(root, copy.deepcopy(self.graph), type(self).__name__)
        result.meta = copy.copy(self.meta)
        result.training = self.training
        return result

    def __copy__(self) -> GraphModule:
        result = GraphModule(self, copy.deepcopy(self.graph), type(self).__name__)
        result.meta = self.meta
        return result

    def _plain_dict(self) -> dict[str, Any]:
        left_out = ("_graph", "_code", "meta")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __reduce__(self) -> Any:
        return reduce_graph_module, (self._plain_dict(), self._graph, type(self).__name__)

    def __str__(self) -> str:
        return (
            f"{super().__str__()}\n{self._code}\n"
            "# To see more debug info, please use `graph_module.print_readable()`"
        )


from .graph import CodeGen as _CodeGen  # noqa: E402

_PLAIN_INPUTS = _CodeGen.process_inputs


_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class _CodeOnlyModule(nn.Module):
    """A module with the attributes of another one, to make a copy of: none of its methods."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _copy_attr(from_module: nn.Module, to_module: nn.Module, target: str) -> None:
    """Lets a module have what another one has under a name with points."""
    _copy(from_module, to_module, target)


def _copy(source: nn.Module, target: nn.Module, name: str) -> None:
    """Lets a module have what another one has under a name."""
    found: Any = source
    for part in name.split("."):
        if not hasattr(found, part):
            raise RuntimeError(f"the module has no {name!r}, which a node of the graph names")
        found = getattr(found, part)
    _assign(target, name, found)


def _assign(owner: nn.Module, name: str, value: Any) -> None:
    from .. import Tensor

    *path, last = name.split(".")
    for part in path:
        inside = getattr(owner, part, None)
        if inside is None:
            inside = nn.Module()
            setattr(owner, part, inside)
        owner = inside
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        if getattr(owner, last, None) is not value:
            owner.register_buffer(last, value)
    elif getattr(owner, last, None) is not value:
        setattr(owner, last, value)
