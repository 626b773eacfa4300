"""Ops as objects: ``torch.ops.aten.mul.Tensor``, as ``__torch_dispatch__`` is given them.

An :class:`OpOverload` is one form of one op: functional, in-place (``mul_``) or with ``out=``.
Calling it binds the arguments to that overload alone and runs it, recording included. The extension
makes each of them once, so that they can be compared by ``is``; here are only their faces and
names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from . import _C

_NAMESPACE = "aten"


class OpOverload:
    """One form of one op, ``aten.mul.Tensor``."""

    def __init__(self, name: str, overload: str, schema: str, call: Callable[..., Any]) -> None:
        """Made by the extension.

        Args:
            name: the op's name, with an underscore for the in-place form.
            overload: the overload's name; ``default`` if it has none.
            schema: the signature of the functional form.
            call: runs the op.
        """
        self._opname = name
        self._overloadname = overload
        self._schema_text = schema
        self._call = call
        self.namespace = _NAMESPACE
        self.__name__ = f"{name}.{overload}"
        self.__qualname__ = self.__name__
        self.__module__ = f"torch._ops.{_NAMESPACE}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the op; several results are a plain tuple, without names."""
        results = self._call(*args, **kwargs)
        return tuple(results) if isinstance(results, tuple) else results

    @property
    def _schema(self) -> Any:
        """The signature of this form, a ``FunctionSchema``."""
        known = self.__dict__.get("_parsed_schema")
        if known is None:
            from ._function_schema import of_form

            text, names = self._schema_text, (self._opname, self._overloadname)
            known = self._parsed_schema = of_form(text, self.namespace, *names)
        return known

    @property
    def _defined_in_python(self) -> bool:
        """Whether a program has defined it (`library._overload`)."""
        return False

    @property
    def _name(self) -> str:
        """As :meth:`name`."""
        return self.name()

    def name(self) -> str:
        """The name with namespace, ``aten::mul.Tensor``; an overload without name is left out."""
        overload = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"{self.namespace}::{self._opname}{overload}"

    def _flops(self, *args: Any, **kwargs: Any) -> int | None:
        """How many operations on numbers a call makes, if it is made of products."""
        count: int | None = self._call._flops(*args, **kwargs)  # type: ignore[attr-defined]
        return count

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """All forms of the same name."""
        packet: OpOverloadPacket = getattr(aten, self._opname)
        return packet

    @property
    def tags(self) -> list[Any]:
        """Facts about the op, as members of ``torch.Tag``."""
        from ._tag import tags_of

        return tags_of(self.name())

    def _registrations(self) -> list[tuple[str, str, str]]:
        """The kernels and rules: the dispatch key, the kind, and the place in the source."""
        return _C._dispatch_registrations(self.name())

    def has_kernel_for_dispatch_key(self, key: str) -> bool:
        """Whether there is a kernel or rule for a dispatch key."""
        return _C._dispatch_has_kernel_for_dispatch_key(self.name(), str(key))

    def __repr__(self) -> str:
        head = (
            f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"
        )
        return "\n".join([head, *(f"  {key}: {what}" for key, what, _ in self._registrations())])

    def __str__(self) -> str:
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.overloadpacket, self._overloadname)

    def __deepcopy__(self, memo: Any = None) -> OpOverload:
        return self


class OpOverloadPacket:
    """All overloads of a name, as attributes: ``torch.ops.aten.mul.Tensor``."""

    def __init__(self, name: str, overloads: list[OpOverload]) -> None:
        """Made when :class:`_Namespace` is asked for the name."""
        self.__name__ = name
        self._qualified_op_name = f"{_NAMESPACE}::{name}"
        self._by_name = {overload._overloadname: overload for overload in overloads}

    def overloads(self) -> list[str]:
        """The names of the overloads, those of numbers last."""
        from . import _composite_ops

        further = _composite_ops.find(self.__name__)
        return list(dict.fromkeys([*self._by_name, *(further or ())]))

    def __getattr__(self, name: str) -> OpOverload:
        found = self.__dict__.get("_by_name", {}).get(name)
        if found is None and not name.startswith("_"):
            from . import _composite_ops

            found = _composite_ops.find(self.__name__, name)
        if found is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        return found  # type: ignore[no-any-return]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the overload that takes such arguments.

        Raises:
            TypeError: if none does.
        """
        refusals = []
        for overload in self._by_name.values():
            if overload._overloadname.endswith("out") == ("out" in kwargs):
                try:
                    return overload(*args, **kwargs)
                except TypeError as error:
                    refusals.append(str(error))
        raise TypeError(f"no overload of {self} takes these arguments:\n" + "\n".join(refusals))

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{_NAMESPACE}.{self.__name__}')>"

    def __str__(self) -> str:
        return f"{_NAMESPACE}.{self.__name__}"

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (aten, self.__name__)

    def __deepcopy__(self, memo: Any = None) -> OpOverloadPacket:
        return self


class HigherOrderOperator:
    """A function of functions, as an op: what it computes is what was registered for it.

    Args:
        name: its name.
        cacheable: what a compiler may do, which is not here.
    """

    def __init__(self, name: str, *, cacheable: bool = False) -> None:
        if type(self) is HigherOrderOperator:
            raise RuntimeError(
                "Direct instantiation of HigherOrderOperator is not allowed. Please subclass it."
            )
        self._name = self.__name__ = name
        self.namespace = "higher_order"
        self._rules: dict[str, Callable[..., Any]] = {}

    def py_impl(self, k: Any) -> Callable[[Any], Any]:
        """A decorator that registers what is computed for a dispatch key, a mode or a class."""

        def register(function: Any) -> Any:
            self._rules[getattr(k, "name", None) or getattr(k, "__name__", None) or str(k)] = (
                function
            )
            return function

        return register

    py_autograd_impl = py_functionalize_impl = lambda self, function: function

    def name(self) -> str:
        """The name of the namespace."""
        return self._name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs what is registered for ordinary tensors.

        Raises:
            NotImplementedError: if nothing is.
        """
        for key in ("Autograd", "AutogradCPU", "CompositeExplicitAutograd", "CPU"):
            if key in self._rules:
                return self._rules[key](*args, **kwargs)
        raise NotImplementedError(f"{self._name}: no rule is registered for ordinary tensors")

    def __repr__(self) -> str:
        return f"<torch.ops.higher_order.{self._name}>"


class _Namespace(ModuleType):
    """``torch.ops.aten``: packets by name, made when they are asked for."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        overloads = [] if name.startswith("__") else _C._overloads(name)
        packet = OpOverloadPacket(name, overloads) if overloads else self._composite(name)
        if packet is None:
            raise AttributeError(f"'_OpNamespace' '{_NAMESPACE}' object has no attribute '{name}'")
        # If several threads arrive at once, all keep the first one's.
        return self.__dict__.setdefault(name, packet)  # type: ignore[no-any-return]

    @staticmethod
    def _composite(name: str) -> Any:
        """The packet of an op that is written in Python."""
        if name.startswith("__"):
            return None
        from . import _composite_ops

        return _composite_ops.find(name) or _composite_ops.alias(name)

    def __reduce__(self) -> str:
        return _NAMESPACE


aten = _Namespace(f"torch.ops.{_NAMESPACE}")
