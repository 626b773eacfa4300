"""Ops that programs define, as objects: ``torch.ops.mylib.foo.default``.

A call binds its arguments and goes on in this order: the gradient rule, if an argument requires
grad (a custom :class:`torch.autograd.Function`, which vmap and hooks see as one op); modes and
classes with ``__torch_dispatch__``; the kernel for the device of the arguments. Invariant: what a
kernel computes is not recorded, unless the op says that it is made of others
(``CompositeImplicitAutograd``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _C
from .._ops import OpOverload
from ._schema import Schema

# The device types that a kernel may be registered for.
DEVICES = {
    "CPU": "cpu",
    "CUDA": "cuda",
    "Meta": "meta",
    "XPU": "xpu",
    "MPS": "mps",
}
COMPOSITES = ("CompositeImplicitAutograd", "CompositeExplicitAutograd")
AUTOGRAD = ("Autograd", "AutogradCPU", "AutogradCUDA")


class CustomOverload(OpOverload):
    """One form of an op that a program has defined."""

    def __init__(self, namespace: str, schema: Schema) -> None:
        """An op without kernels yet."""
        super().__init__(schema.name, schema.overload or "default", str(schema), self._run)
        self.namespace = namespace
        self.__module__ = f"torch._ops.{namespace}"
        self._parsed = schema
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.fake: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.vmap: Callable[..., Any] | None = None
        self.torch_dispatch: dict[type, Callable[..., Any]] = {}
        self.autocast: dict[str, Any] = {}
        self._tags: list[Any] = []
        # Whether a result may not be an argument, as holds of what `custom_op` defines.
        self.has_own_results = False
        self._function: type | None = None
        # How a call is recorded, if not by the rules above.
        self.record: Callable[[list[Any]], Any] | None = None

    @property
    def tags(self) -> list[Any]:
        """The tags that the op was defined with."""
        return list(self._tags)

    @property
    def _defined_in_python(self) -> bool:
        """Whether a program has defined it: always."""
        return True

    @property
    def overloadpacket(self) -> CustomPacket:  # type: ignore[override]
        """All overloads of the name."""
        from .. import ops

        packet: CustomPacket = getattr(getattr(ops, self.namespace), self._opname)
        return packet

    def _flops(self, *args: Any, **kwargs: Any) -> int | None:
        """None: nothing says what a program's own kernels compute."""
        return None

    def has_kernel_for_dispatch_key(self, key: str) -> bool:
        """Whether a kernel was registered for a dispatch key."""
        return any(key == own for own, _, _ in self._registrations())

    def _registrations(self) -> list[tuple[str, str, str]]:
        rules = dict(self.kernels)
        rules.update({} if self.fake is None else {"Meta": self.fake})
        rules.update({} if self.backward is None else {"Autograd": self.backward})
        rules.update({} if self.vmap is None else {"FuncTorchBatched": self.vmap})
        return [(key, _described(rule), _place(rule)) for key, rule in rules.items()]

    def _dump(self) -> str:
        """The text of ``torch._C._dispatch_dump``."""
        lines = [f"name: {self.name()}", f"schema: {self.namespace}::{self._parsed}"]
        rules = [f"{key}: {what} at {place}" for key, what, place in self._registrations()]
        return "\n".join([*lines, *rules, ""])

    def register_vmap(self, function: Callable[..., Any]) -> None:
        """The batching rule, ``function(info, in_dims, *args, **kwargs)``."""
        self.vmap = function
        self._function = None

    def register_autograd(
        self, backward: Callable[..., Any], setup_context: Callable[..., Any] | None
    ) -> None:
        """The gradient rule."""
        if not self._parsed.is_functional:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self.name()} with "
                f"schema {self._parsed}: only an operator that writes into no argument and has "
                "results, none of which shows the memory of an argument, has one"
            )
        self.backward, self.setup_context = backward, setup_context
        self._function = None

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        values = self._parsed.bind(self.name(), args, kwargs)
        for key in AUTOGRAD:
            if key in self.kernels and key != "AutogradCUDA":
                return self._called(self.kernels[key], values)
        implicit = self.kernels.get("CompositeImplicitAutograd")
        if implicit is not None and self.backward is None:
            return self._called(implicit, values)
        autocast = self.kernels.get("AutocastCPU")
        if autocast is not None and _C.is_autocast_enabled("cpu"):
            return self._called(autocast, values)
        values = self._cast(values)
        tensors = list(_tensors(values))
        if self._parsed.is_mutable:
            return self._run_mutable(values, tensors)
        is_recorded = _C.is_grad_enabled() and any(t.requires_grad for t in tensors)
        if is_recorded or _is_transformed():
            return self._recorded(values)
        return self._below(values)

    def _cast(self, values: list[Any]) -> list[Any]:
        """The arguments as autocast wants them, where that was registered and is on."""
        for kind, dtype in self.autocast.items():
            if _C.is_autocast_enabled(kind):
                cast = functools.partial(_cast, dtype=dtype)
                return [_mapped(value, cast) for value in values]
        return values

    def _run_mutable(self, values: list[Any], tensors: list[Any]) -> Any:
        written = [
            tensor
            for argument, value in zip(self._parsed.arguments, values, strict=True)
            if argument.is_written
            for tensor in _tensors([value])
        ]
        if _C.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            raise RuntimeError(
                f"{self.name()} writes into its arguments and has no gradient: call it without "
                "arguments that require grad, or under no_grad()"
            )
        from ..autograd.graph import increment_version

        result = self._below(values)
        for tensor in written:
            increment_version(tensor)
        return result

    def _recorded(self, values: list[Any]) -> Any:
        """Runs the op as one node of the graph."""
        if self.record is not None and self.backward is None and self.vmap is None:
            return self.record(values)
        if self._function is None:
            from ._function import function_of

            self._function = function_of(self)
        result = self._function.apply(*_flat(self._parsed, values))  # type: ignore[attr-defined]
        return list(result) if self._parsed.returns == ("Tensor[]",) else result

    def _below(self, values: list[Any]) -> Any:
        """Runs the op below autograd: modes, classes with ``__torch_dispatch__``, kernels."""
        from ..utils._python_dispatch import _pop_mode_temporarily

        if _C._len_torch_dispatch_stack() > 0:
            with _pop_mode_temporarily() as mode:
                rule = _rule_for(self.torch_dispatch, type(mode))
                args, kwargs = self._split(values)
                classes = _classes(values)
                if rule is not None:
                    return rule(mode, self, classes, args, kwargs)
                result = mode.__torch_dispatch__(self, classes, args, kwargs)
                if result is not NotImplemented:
                    return result
        for kind in _classes(values):
            args, kwargs = self._split(values)
            rule = _rule_for(self.torch_dispatch, kind)
            if rule is not None:
                return rule(self, _classes(values), args, kwargs)
            result = kind.__torch_dispatch__(self, _classes(values), args, kwargs)  # type: ignore[attr-defined]
            if result is not NotImplemented:
                return result
        return self._kernel(values)

    def _kernel(self, values: list[Any]) -> Any:
        devices = {tensor.device.type for tensor in _tensors(values)}
        device = next(iter(devices - {"cpu"}), "cpu") if devices else "cpu"
        if device == "meta" and self.fake is not None:
            return self._called(self.fake, values)
        key = next((key for key, kind in DEVICES.items() if kind == device), device)
        function = self.kernels.get(key)
        for composite in COMPOSITES:
            function = function or self.kernels.get(composite)
        if function is None:
            raise NotImplementedError(
                f"Could not run '{self.name()}' with arguments from the '{key}' backend: it has "
                f"kernels for {', '.join(sorted(self.kernels)) or 'none'}"
            )
        from .. import no_grad

        with no_grad():
            return self._checked(self._called(function, values), values)

    def _called(self, function: Callable[..., Any], values: list[Any]) -> Any:
        args, kwargs = self._split(values)
        return function(*args, **kwargs)

    def _split(self, values: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments by position, and those by name; what is left at its default is left out."""
        args, kwargs = [], {}
        for argument, value in zip(self._parsed.arguments, values, strict=True):
            if argument.is_kwarg_only:
                kwargs[argument.name] = value
            else:
                args.append(value)
        return tuple(args), kwargs

    def _checked(self, result: Any, values: list[Any]) -> Any:
        """Refuses results of other types than the signature has, or of arguments' memory.

        The graph would have one tensor twice, or writes into one would change the other unseen, so
        that an op whose results are its own may give neither an argument nor one tensor twice.
        """
        self._check_kinds(result)
        if not self.has_own_results:
            return result
        seen = list(_tensors(values))
        for output in _tensors(result if isinstance(result, tuple | list) else [result]):
            if any(output is tensor or _C._is_alias_of(output, tensor) for tensor in seen):
                raise RuntimeError(
                    f"{self.name()}: the output of this custom operator must not also be an input "
                    "to this custom operator, and may not alias any input or another output: "
                    "return a copy, x.clone()"
                )
            seen.append(output)
        return result

    def _check_kinds(self, result: Any) -> None:
        """Refuses what is no tensor where the signature has one; None stands for no tensor."""
        from .. import Tensor

        returns = self._parsed.returns
        if len(returns) < 2:
            results = (result,) * len(returns)
        elif isinstance(result, tuple | list) and len(result) == len(returns):
            results = tuple(result)
        else:
            given = len(result) if isinstance(result, tuple | list) else 1
            raise RuntimeError(
                f"the kernel of {self.name()} gave {given} result(s), its schema has "
                f"{len(returns)}: {self._parsed}"
            )
        for returned, value in zip(returns, results, strict=True):
            kind = returned.partition(" ")[0]
            if kind.partition("(")[0].rstrip("?") != "Tensor" or "[" in kind:
                continue
            if value is not None and not isinstance(value, Tensor):
                raise RuntimeError(
                    f"Unable to cast {type(value).__name__} to Tensor: that is what the kernel of "
                    f"{self.name()} gave, whose schema is {self._parsed}"
                )


def _rule_for(rules: dict[type, Callable[..., Any]], kind: type) -> Callable[..., Any] | None:
    return next((rules[base] for base in kind.__mro__ if base in rules), None)


def _cast(tensor: Any, dtype: Any) -> Any:
    is_cast = tensor.is_floating_point() and str(tensor.dtype) != "torch.float64"
    return tensor.to(dtype) if is_cast else tensor


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    from .. import Tensor

    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_mapped(item, change) for item in value)
    return value


def _tensors(values: Any) -> Iterator[Any]:
    from .. import Tensor

    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _classes(values: list[Any]) -> tuple[type, ...]:
    """The classes of arguments that dispatch ops below autograd, each once."""
    disabled = _C._disabled_torch_dispatch_impl
    classes: dict[type, None] = {}
    for tensor in _tensors(values):
        rule = getattr(type(tensor), "__torch_dispatch__", None)
        if rule is not None and rule is not disabled:
            classes[type(tensor)] = None
    return tuple(classes)


def _is_transformed() -> bool:
    """Whether a level of vmap or of forward mode, or a transform, is open on the thread."""
    from .. import _transform
    from ..autograd import forward_ad

    is_open = _C._vmap_is_open() or forward_ad._current_level >= 0
    return is_open or bool(_transform.of_thread())


def _flat(schema: Schema, values: list[Any]) -> list[Any]:
    """The arguments for a custom function, which sees tensors only where they stand alone."""
    flat = []
    for argument, value in zip(schema.arguments, values, strict=True):
        if argument.is_list_of_tensors and value is not None:
            flat.extend([len(value), *value])
        else:
            flat.append(value)
    return flat


def list_lengths(schema: Schema, flat: Sequence[Any]) -> list[int | None]:
    """The number of tensors of each list in the result of ``_flat``; None for other arguments."""
    lengths: list[int | None] = []
    at = 0
    for argument in schema.arguments:
        if argument.is_list_of_tensors:
            lengths.append(flat[at])
            at += flat[at] or 0
        at += 1
    return lengths


def unflattened(schema: Schema, flat: Sequence[Any], lengths: Sequence[int | None]) -> list[Any]:
    """What stands for each argument again, from what stands for the parts that ``_flat`` gave."""
    values: list[Any] = []
    rest, of_lists = iter(flat), iter(lengths)
    for argument in schema.arguments:
        value = next(rest)
        length = next(of_lists) if argument.is_list_of_tensors else None
        values.append(value if length is None else [next(rest) for _ in range(length)])
    return values


def find(name: str) -> CustomOverload | None:
    """The op that a program has defined, by its name with namespace: ``mylib::foo.default``."""
    from .. import ops

    namespace, _, rest = name.partition("::")
    op, _, overload = rest.partition(".")
    # (Asking `ops` itself would make the namespace.)
    packet = getattr(vars(ops).get(namespace), op, None) if op else None
    return packet._by_name.get(overload or "default") if isinstance(packet, CustomPacket) else None


def _described(rule: Callable[..., Any]) -> str:
    name: str = getattr(rule, "__qualname__", type(rule).__qualname__)
    return f"{getattr(rule, '__module__', '')}.{name}"


def _place(rule: Callable[..., Any]) -> str:
    code = getattr(rule, "__code__", None)
    return "unknown" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


class CustomPacket:
    """All overloads of a name, as attributes: ``torch.ops.mylib.foo.default``."""

    def __init__(self, namespace: str, name: str) -> None:
        """Made when the first overload is defined."""
        self.__name__ = name
        self._namespace = namespace
        self._qualified_op_name = f"{namespace}::{name}"
        self._by_name: dict[str, CustomOverload] = {}

    def overloads(self) -> list[str]:
        """The names of the overloads."""
        return list(self._by_name)

    def __getattr__(self, name: str) -> CustomOverload:
        found = self.__dict__.get("_by_name", {}).get(name)
        if found is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        return found  # type: ignore[no-any-return]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the overload that takes such arguments."""
        overloads = list(self._by_name.values())
        if len(overloads) == 1:
            return overloads[0](*args, **kwargs)
        for overload in overloads:
            try:
                overload._parsed.bind(overload.name(), args, kwargs)
            except RuntimeError:
                continue
            return overload(*args, **kwargs)
        raise RuntimeError(f"no overload of {self} takes these arguments")

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"
