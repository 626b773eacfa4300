"""Stand-ins for values while a program is traced: each use of one becomes a node."""

from __future__ import annotations

import enum
import inspect
import operator
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from .. import _C
from .graph import Graph
from .immutable_collections import immutable_dict, immutable_list
from .node import Node, map_aggregate

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "TraceError",
    "TracerBase",
]


class TraceError(ValueError):
    """A program that cannot be traced: what it does depends on a value that is not known."""


class TracerBase:
    """What proxies ask: makes nodes of calls, and of arguments."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    param_shapes_constant = False

    def create_node(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Adds a node to the graph."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if self.record_stack_traces:
            node.stack_trace = "".join(traceback.format_list(traceback.extract_stack()[:-2]))
        return node

    def proxy(self, node: Node) -> Proxy:
        """The stand-in for a node's result."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Adds a node whose arguments may hold proxies; gives its stand-in."""
        node = self.create_node(
            kind, target, self.create_arg(args), dict(self.create_arg(kwargs)), name, type_expr
        )
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Any:
        """An argument of a node from a value of the program.

        Raises:
            NotImplementedError: for values that a graph cannot hold.
        """
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return immutable_list([self.create_arg(item) for item in a])
        if isinstance(a, dict):
            for key in a:
                if isinstance(key, Proxy | Node):
                    raise RuntimeError(
                        "Keys for dictionaries used as an argument cannot contain a Node. Got key: "
                        f"{key}"
                    )
            return immutable_dict({key: self.create_arg(value) for key, value in a.items()})
        if isinstance(a, slice):
            return slice(*(self.create_arg(part) for part in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(a.start, a.stop, a.step)
        plain = str | int | float | bool | complex | bytes | enum.Enum
        if isinstance(a, plain) or a is None or a is ...:
            return a
        if isinstance(a, _C.dtype | _C.device | _C.layout | _C.memory_format | _C.TensorBase):
            return a
        if isinstance(a, type) or inspect.isroutine(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """Called where a program asks whether a value holds."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Proxy]:
        """Called where a program goes through a value; unpacking to so many names is known."""
        frame = inspect.currentframe()
        caller = frame.f_back.f_back if frame is not None and frame.f_back is not None else None
        count = _unpacked(caller)
        if count is None:
            raise TraceError(
                "Proxy object cannot be iterated: how long it is, as in a loop or where it is "
                "spread to arguments, is not known here"
            )
        return iter([obj[number] for number in range(count)])

    def keys(self, obj: Proxy) -> Any:
        """Called when a program reads the keys of a value."""
        return Attribute(obj, "keys")()


def _unpacked(frame: Any) -> int | None:
    """The number of names to which the frame is about to unpack a value."""
    if frame is None:
        return None
    import dis

    code = frame.f_code
    for instruction in dis.get_instructions(code):
        if instruction.offset >= frame.f_lasti:
            if instruction.offset == frame.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
                return int(instruction.arg or 0)
            return None
    return None


class GraphAppendingTracer(TracerBase):
    """Adds nodes to a graph that is there."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """The result of a node, while a program is traced."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        """A stand-in for ``node``."""
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Attribute:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __getitem__(self, key: Any) -> Proxy:
        """An item of the value."""
        return self.tracer.create_proxy("call_function", operator.getitem, (self, key), {})

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        """The call of the value."""
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Proxy]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
        )

    def __index__(self) -> int:
        raise TraceError("a symbolically traced value is no index: it is not known here")

    def __contains__(self, item: Any) -> bool:
        raise TraceError("'in' of a symbolically traced value: it is not known here")

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tracer.create_proxy("call_function", operator.setitem, (self, key, value), {})

    def keys(self) -> Any:
        """The keys of the value."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Proxy:
        """Records the call of a function of the library."""
        args, kwargs = tuple(args), kwargs or {}
        tracer = _tracer_of((args, kwargs))
        if isinstance(orig_method, _METHODS):
            name = orig_method.__name__
            return tracer.create_proxy("call_method", name, args, kwargs)
        if getattr(orig_method, "__objclass__", None) is not None:
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


_METHODS = (type(str.join), type(object.__init__))


def _tracer_of(values: Any) -> TracerBase:
    found: list[TracerBase] = []

    def see(value: Any) -> Any:
        if isinstance(value, Proxy):
            found.append(value.tracer)
        return value

    map_aggregate(values, see)
    if any(tracer is not found[0] for tracer in found):
        raise RuntimeError("arguments of several traces meet in one call")
    return found[0]


class Attribute(Proxy):
    """An attribute of a proxy: a node of its own only where it is not called."""

    def __init__(self, root: Proxy, attr: str) -> None:
        """The attribute ``attr`` of ``root``."""
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the attribute."""
        if self._node is None:
            self._node = self.tracer.create_proxy(
                "call_function", getattr, (self.root, self.attr), {}
            ).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        """The call of the method."""
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter, whose shape is known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        """A stand-in for a parameter."""
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's sizes."""
        return self.param.shape

    def size(self) -> Any:
        """The parameter's sizes."""
        return self.param.size()

    def dim(self) -> int:
        """How many dimensions the parameter has."""
        return int(self.param.dim())

    @property
    def ndim(self) -> int:
        """How many dimensions the parameter has."""
        return int(self.param.ndim)

    def numel(self) -> int:
        """How many elements the parameter has."""
        return int(self.param.numel())


def _operator(name: str, is_reflected: bool = False) -> Callable[..., Proxy]:
    function = getattr(operator, f"{name}_" if name in ("and", "or") else name)

    def call(self: Proxy, *args: Any) -> Proxy:
        values = (*args, self) if is_reflected else (self, *args)
        return self.tracer.create_proxy("call_function", function, values, {})

    call.__name__ = f"__{'r' if is_reflected else ''}{name}__"
    return call


_BINARY = ["add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "lshift", "rshift"]
_BINARY += ["and", "or", "xor", "matmul"]
for _name in [*_BINARY, *["lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "invert"]]:
    setattr(Proxy, f"__{_name}__", _operator(_name))
for _name in _BINARY:
    setattr(Proxy, f"__r{_name}__", _operator(_name, is_reflected=True))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
