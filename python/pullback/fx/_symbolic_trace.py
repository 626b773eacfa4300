"""Tracing: a module's or function's program is run with stand-ins, and each call becomes a node."""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from .. import _C, nn
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .proxy import ParameterProxy, Proxy, TracerBase

__all__ = ["PHWithMeta", "ProxyableClassMeta", "Tracer", "symbolic_trace", "wrap"]

# Functions that a program wants to be nodes: where they stand, and under which name.
_WRAPPED: list[tuple[dict[str, Any], str]] = []


class PHWithMeta:
    """A concrete argument that is an input of the graph, with something to keep in its node."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


PH = PHWithMeta()


class ProxyableClassMeta(type):
    """Classes whose objects may be made of stand-ins while a program is traced."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes an object, or a node that will."""
        instance = cls.__new__(cls)  # type: ignore[call-overload]
        found = [value for value in (*args, *kwargs.values()) if isinstance(value, Proxy)]
        if found:
            return found[0].tracer.create_proxy("call_function", cls, args, kwargs)
        instance.__init__(*args, **kwargs)
        return instance


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Lets calls of a function of the calling module be nodes: ``wrap("len")``.

    To be called at the top level of a module, or as a decorator there.

    Raises:
        RuntimeError: for what is no function or name.
        NotImplementedError: if it is not called at the top level of a module.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _WRAPPED.append((caller.f_globals, name))
    return fn_or_name


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which is a node where an argument is a stand-in."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxies: list[Proxy] = []

        def see(value: Any) -> None:
            if isinstance(value, Proxy):
                proxies.append(value)
            elif isinstance(value, list | tuple):
                for item in value:
                    see(item)
            elif isinstance(value, dict):
                see(list(value.values()))

        see(args)
        see(kwargs)
        if not proxies:
            return function(*args, **kwargs)
        return proxies[0].tracer.create_proxy("call_function", function, args, kwargs)

    return call


class _Patches:
    """Attributes that are replaced while a program is traced, to be restored afterwards."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._seen: set[tuple[int, str]] = set()

    def item(self, names: dict[str, Any], name: str, value: Any) -> None:
        """Replaces a name of a module."""
        if (id(names), name) in self._seen:
            return
        self._seen.add((id(names), name))
        if name in names:
            before = names[name]
            self._undo.append(lambda: names.__setitem__(name, before))
        else:
            self._undo.append(lambda: names.pop(name, None) and None)
        names[name] = value

    def attribute(self, owner: Any, name: str, value: Any) -> None:
        """Replaces an attribute of a class."""
        if (id(owner), name) in self._seen:
            return
        self._seen.add((id(owner), name))
        if name in vars(owner):
            before = vars(owner)[name]
            self._undo.append(lambda: setattr(owner, name, before))
        else:
            self._undo.append(lambda: delattr(owner, name))
        setattr(owner, name, value)

    def __enter__(self) -> _Patches:
        return self

    def __exit__(self, *error: object) -> None:
        while self._undo:
            self._undo.pop()()


class Tracer(TracerBase):
    """Traces modules; a class derived from it may say what is a leaf.

    Args:
        autowrap_modules: modules whose functions are nodes, not looked into.
        autowrap_functions: such functions.
        param_shapes_constant: whether the shapes of parameters are numbers of the program.
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._functions: set[int] = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        }
        self._functions.update(id(function) for function in autowrap_functions)
        self._modules = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.root: nn.Module = nn.Module()
        self.root_module_name = ""
        self.submodule_paths: dict[nn.Module, str] | None = None
        self.tensor_attrs: dict[Any, str] = {}
        self.traced_func_name = "forward"

    # --- what may be overridden ----------------------------------------------------------------

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a module is one node, and not looked into: those of the library are."""
        own = type(m).__module__
        base = nn.__name__
        is_own = own == base or own.startswith((f"{base}.", "torch.nn."))
        return is_own and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """The name of a submodule of the traced module.

        Raises:
            NameError: if it is none.
        """
        if self.submodule_paths is not None and mod in self.submodule_paths:
            return self.submodule_paths[mod]
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(
        self,
        m: nn.Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """The result of a call of a module in a trace: a node, or the result of its forward."""
        name = self.path_of_module(m)
        if self.is_leaf_module(m, name):
            return self.create_proxy("call_module", name, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """The value of a module's attribute for the program: parameters become nodes."""
        if not isinstance(attr_val, nn.Parameter):
            is_buffer = self.proxy_buffer_attributes and isinstance(attr_val, _C.TensorBase)
            if not is_buffer:
                return attr_val
        name = self._name_of(attr_val)
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            factory = None
            if self.param_shapes_constant:

                def factory(node: Node) -> Proxy:
                    return ParameterProxy(self, node, name, attr_val)

            parameter_proxy_cache[name] = self.create_proxy(
                "get_attr", name, (), {}, proxy_factory_fn=factory
            )
        return parameter_proxy_cache[name]

    def _name_of(self, tensor: Any) -> str | None:
        named = [*self.root.named_parameters(), *self.root.named_buffers()]
        return next((name for name, own in named if own is tensor), None)

    def create_arg(self, a: Any) -> Any:
        """An argument of a node: tensors of the module are read, others are added to it."""
        if isinstance(a, nn.Parameter):
            name = self._name_of(a)
            if name is None:
                raise NameError("parameter is not a member of this module")
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, _C.TensorBase):
            name = self._name_of(a) or self.tensor_attrs.get(a)
            if name is None:
                name = self._new_constant(a)
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    def _new_constant(self, tensor: Any) -> str:
        number = 0
        while hasattr(self.root, f"_tensor_constant{number}"):
            number += 1
        name = f"_tensor_constant{number}"
        self.tensor_attrs[tensor] = name
        setattr(self.root, name, tensor)
        return name

    # --- the trace -----------------------------------------------------------------------------

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | None = None,
    ) -> tuple[Callable[..., Any], list[Any]]:
        """The function and stand-ins for its parameters; those with concrete values are no inputs.

        Raises:
            RuntimeError: for parameters by name only without default.
        """
        function = inspect.unwrap(root_fn)
        parameters = list(inspect.signature(function).parameters.values())
        args: list[Any] = []
        if is_module:
            args.append(self.root)
            parameters = parameters[1:]
        for parameter in parameters:
            if parameter.kind is parameter.VAR_POSITIONAL:
                args.append(self.create_proxy("placeholder", f"*{parameter.name}", (), {}))
            elif parameter.kind is parameter.VAR_KEYWORD:
                args.append(self.create_proxy("placeholder", f"**{parameter.name}", (), {}))
            else:
                args.append(self._placeholder(parameter, concrete_args or {}))
        return function, args

    def _placeholder(self, parameter: inspect.Parameter, concrete: dict[str, Any]) -> Any:
        name = parameter.name
        default = () if parameter.default is parameter.empty else (parameter.default,)
        if name in concrete and not isinstance(concrete[name], PHWithMeta):
            # (The input stays, so that calls look as they did; nothing uses it.)
            self.create_proxy("placeholder", name, default, {})
            return concrete[name]
        type_expr = None if parameter.annotation is parameter.empty else parameter.annotation
        return self.create_proxy("placeholder", name, default, {}, type_expr=type_expr)

    def trace(
        self,
        root: nn.Module | Callable[..., Any],
        concrete_args: dict[str, Any] | None = None,
    ) -> Graph:
        """Runs a module or function with stand-ins.

        Args:
            root: what to trace.
            concrete_args: values of parameters that are part of the program.

        Returns:
            The graph of its calls.

        Raises:
            TraceError: if what it does depends on a value.
        """
        if isinstance(root, nn.Module):
            self.root = root
            function: Any = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root, function = nn.Module(), root
            self.root_module_name = ""
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = _tensors_of(self.root)
        function, args = self.create_args_for_root(
            function, isinstance(root, nn.Module), concrete_args
        )
        with self._patched(function):
            by_name = _by_name(function)
            count = len(args) - len(by_name)
            result = function(*_spread(function, args[:count]), **_named(by_name, args[count:]))
        self.graph.output(self.create_arg(result))
        self.submodule_paths = None
        return self.graph

    @contextlib.contextmanager
    def _patched(self, function: Callable[..., Any]) -> Iterator[None]:
        """While the program runs: calls of modules and reads of parameters come here."""
        call, read = nn.Module.__call__, nn.Module.__getattr__
        cache: dict[str, Any] = {}

        def called(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return call(module, *args, **kwargs)

            self._wrap_names(
                patches, getattr(getattr(module, "forward", module), "__globals__", {})
            )
            return self.call_module(module, forward, args, kwargs)

        def got(module: nn.Module, name: str) -> Any:
            return self.getattr(name, read(module, name), cache)

        with _Patches() as patches:
            patches.attribute(nn.Module, "__call__", called)
            patches.attribute(nn.Module, "__getattr__", got)
            for names, name in _WRAPPED:
                known = names[name] if name in names else getattr(builtins, name)
                patches.item(names, name, _recording(known))
            for module in self._modules:
                self._wrap_names(patches, vars(module))
            self._wrap_names(patches, getattr(function, "__globals__", {}))
            yield

    def _wrap_names(self, patches: _Patches, names: dict[str, Any]) -> None:
        for name, value in list(names.items()):
            if not name.startswith("_") and callable(value) and id(value) in self._functions:
                patches.item(names, name, _recording(value))


def _tensors_of(module: nn.Module) -> dict[Any, str]:
    """Tensors that are plain attributes of modules, by their names."""
    found: dict[Any, str] = {}
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            if isinstance(value, _C.TensorBase):
                found[value] = f"{path}.{name}" if path else name
    return found


def _by_name(function: Callable[..., Any]) -> list[str]:
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [("**" if p.kind is kinds[1] else "") + p.name for p in parameters if p.kind in kinds]


def _spread(function: Callable[..., Any], args: list[Any]) -> list[Any]:
    parameters = list(inspect.signature(function).parameters.values())
    has_rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    # (`*args` is one value here.)
    return [*args[:-1], args[-1]] if has_rest else args


def _named(names: list[str], values: list[Any]) -> dict[str, Any]:
    return {name.lstrip("*"): value for name, value in zip(names, values, strict=True)}


def symbolic_trace(
    root: nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """Traces a module or function.

    Args:
        root: what to trace.
        concrete_args: values of parameters that are part of the program.

    Returns:
        A module that computes the same, and whose ``graph`` can be changed.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
