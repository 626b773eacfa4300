"""Ops that programs define: schema, kernels by device, and gradient, batching and shape rules.

:func:`custom_op` makes one of a function; :class:`Library` and :func:`define` of a schema in text.
Such an op is called as ``torch.ops.<namespace>.<name>``, is one node of a graph, and is seen as one
op by modes, by classes with ``__torch_dispatch__`` and by vmap.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from .. import _absent, ops
from .._tag import Tag
from . import _schema
from ._custom import CustomOpDef
from ._overload import AUTOGRAD, COMPOSITES, DEVICES, CustomOverload, CustomPacket
from .opcheck import opcheck

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

_RESERVED = ("aten", "prim", "prims")
# The library that owns each namespace's definitions, and those that the functions here make.
_OWNERS: dict[str, weakref.ref[Library]] = {}
_KEPT: list[Library] = []
# The library of each op that :func:`custom_op` has made.
_DEFINED: dict[str, Library] = {}


def fallthrough_kernel() -> None:
    """Stands for a kernel that leaves a call to the next key."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def _tags_in(tags: Any) -> list[Tag]:
    """The tags that an op is defined with: one, or a sequence of them."""
    found = list(tags) if isinstance(tags, Sequence) and not isinstance(tags, str) else [tags]
    for tag in found:
        if not isinstance(tag, Tag):
            raise TypeError(f"tags must be torch.Tag or a sequence of them, not {tag!r}")
    return found


def _split(qualname: str) -> tuple[str, str]:
    namespace, colons, name = qualname.partition("::")
    if not colons or not namespace or not name:
        raise ValueError(
            f"Expected `{qualname}` to be of the form `namespace::name`, as `mylib::sin`"
        )
    return namespace, name


def _find_op(op: Any) -> CustomOverload:
    """The op that a name, an overload or the result of :func:`custom_op` stands for."""
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, CustomOverload):
        return op
    if isinstance(op, CustomPacket):
        return op.default
    if not isinstance(op, str):
        raise ValueError(f"an op is expected: its name, an overload or a custom op, not {op!r}")
    namespace, name = _split(op)
    name, _, overload = name.partition(".")
    packet = (
        ops.__dict__.get(namespace, object()).__dict__.get(name)
        if namespace in ops.__dict__
        else None
    )
    if namespace in _RESERVED:
        raise NotImplementedError(f"{op}: rules of the library's own ops cannot be replaced")
    found = packet._by_name.get(overload or "default") if packet is not None else None
    if found is None:
        raise RuntimeError(f"There is no operator {op}: torch.library.define() defines one")
    return found  # type: ignore[no-any-return]


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """The signature of a function from the annotations of its parameters.

    Args:
        prototype_function: the function.
        mutates_args: the names of parameters that it writes into; ``unknown`` is all tensors.
        op_name: the name that the signature begins with.
        tags: tags of the op, which are no part of a signature.

    Raises:
        ValueError: for parameters without annotation or of unsupported types.
    """
    del tags
    return _schema.infer(prototype_function, mutates_args, op_name)


class Library:
    """Definitions and kernels of the ops of one namespace; they go when the object does.

    Args:
        ns: the namespace.
        kind: ``DEF`` for the one library that defines a namespace, ``FRAGMENT`` for further
            definitions, ``IMPL`` for kernels of ops that others define.
        dispatch_key: what kernels are registered for where :meth:`impl` does not say.

    Raises:
        ValueError: for another kind and for reserved namespaces.
        RuntimeError: for a second ``DEF`` of a namespace.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with another name."
            )
        owner = _OWNERS.get(ns)
        if kind == "DEF" and owner is not None and owner() is not None:
            raise RuntimeError(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}: put all "
                "definitions into one library, or use the kind 'FRAGMENT'"
            )
        if kind == "DEF":
            _OWNERS[ns] = weakref.ref(self)
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._undo: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Defines an op by its schema.

        Args:
            schema: ``name(Tensor x, *, int n=1) -> Tensor``.
            alias_analysis: "" or ``CONSERVATIVE``.
            tags: tags of the op.

        Returns:
            Its name.

        Raises:
            RuntimeError: for what is no schema, and for an op that is defined already.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            raise RuntimeError("a library of the kind 'IMPL' defines nothing")
        parsed = _schema.parse(schema)
        name = parsed.name.rpartition("::")[2]
        parsed = _schema.Schema(name, parsed.overload, parsed.arguments, parsed.returns)
        namespace: Any = getattr(ops, self.ns)
        packet = namespace.__dict__.get(name)
        if packet is None:
            packet = CustomPacket(self.ns, name)
            setattr(namespace, name, packet)
        key = parsed.overload or "default"
        if key in packet._by_name:
            raise RuntimeError(
                f"Tried to register an operator ({self.ns}::{parsed}) with the same name and "
                "overload name multiple times."
            )
        overload = CustomOverload(self.ns, parsed)
        overload._tags = _tags_in(tags)
        packet._by_name[key] = overload

        def undo() -> None:
            packet._by_name.pop(key, None)
            if not packet._by_name:
                namespace.__dict__.pop(name, None)

        self._undo.append(undo)
        return name + (f".{parsed.overload}" if parsed.overload else "")

    def _find(self, op_name: Any) -> CustomOverload:
        if isinstance(op_name, str) and "::" not in op_name:
            op_name = f"{self.ns}::{op_name}"
        return _find_op(op_name)

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Registers a kernel.

        Args:
            op_name: the op.
            fn: the kernel, or :func:`fallthrough_kernel`.
            dispatch_key: what it is for: ``CPU``, ``CUDA``, ``Meta``, ``CompositeImplicitAutograd``
                (made of other ops, which are recorded), ``CompositeExplicitAutograd`` (any device),
                ``Autograd``, ``AutocastCPU`` (called where autocast is on); keys of devices that
                are not here are taken, and no call comes to them.
            with_keyset: must be false.
            allow_override: whether it may replace one.

        Raises:
            TypeError: for what is no function.
            RuntimeError: for another key, and for a second kernel.
            NotImplementedError: for ``with_keyset``, and for a kernel of the library's own ops,
                which cannot be replaced (those of devices that are never here are taken).
        """
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        if with_keyset:
            raise NotImplementedError("impl(with_keyset=True): kernels are given no dispatch keys")
        if self.dispatch_key and dispatch_key not in ("", self.dispatch_key):
            raise RuntimeError(
                f"Explicitly provided dispatch key ({dispatch_key}) is inconsistent with the "
                f"dispatch key of the enclosing library ({self.dispatch_key})"
            )
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if key not in (*DEVICES, *COMPOSITES, *AUTOGRAD) and not _is_idle(key):
            raise RuntimeError(
                f"could not parse dispatch key: {key}; kernels are for one of "
                f"{', '.join((*DEVICES, *COMPOSITES, *AUTOGRAD))}"
            )
        if self.ns in _RESERVED:
            self._check_own(op_name, key)
            return
        overload = self._find(op_name)
        if fn is fallthrough_kernel:
            overload.kernels.pop(key, None)
            return
        if key in overload.kernels and not allow_override:
            raise RuntimeError(
                "This is not allowed since there's already a kernel registered from python "
                f"overriding {overload._opname}'s behavior for {key} dispatch key and "
                f"{self.ns} namespace."
            )
        before = overload.kernels.get(key)
        overload.kernels[key] = fn

        def undo() -> None:
            if overload.kernels.get(key) is fn:
                overload.kernels.pop(key)
                if before is not None:
                    overload.kernels[key] = before

        self._undo.append(undo)

    def _check_own(self, op_name: Any, key: str) -> None:
        """Refuses a kernel of an op of this package, unless no call would ever come to it."""
        name = op_name.name() if hasattr(op_name, "_overloadname") else str(op_name)
        packet, _, overload = name.rpartition("::")[2].partition(".")
        found = getattr(getattr(ops, self.ns), packet, None)
        if found is None or (overload and not hasattr(found, overload)):
            raise RuntimeError(f"Could not find schema for {self.ns}::{packet}")
        if not _is_of_absent_device(key):
            raise NotImplementedError(
                f"Library({self.ns!r}, 'IMPL').impl({name!r}, ..., {key!r}): kernels of the "
                "library's own ops cannot be replaced; define an op with custom_op(), or override "
                "calls with a TorchDispatchMode"
            )

    def fallback(
        self, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False
    ) -> None:
        """Kernels for all ops of a key are not supported.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "Library.fallback(): kernels for all ops of a dispatch key are not supported"
        )

    def _destroy(self) -> None:
        """Takes back what was defined and registered."""
        while self._undo:
            self._undo.pop()()

    def __del__(self) -> None:
        if not hasattr(self, "_undo"):
            return
        with contextlib.suppress(Exception):
            self._destroy()


def _idle_devices() -> tuple[str, ...]:
    """The backends of devices that are never here."""
    return ("HIP", "XLA", "IPU", "HPU", "VE", "Lazy", "MTIA", "MAIA", "PrivateUse1", "XPU")


def _is_idle(key: str) -> bool:
    """Whether it is a key of autocast, or of tensors or devices that are never here."""
    from .._dispatch_key import DispatchKey

    is_named = key.startswith(("Autocast", "Quantized")) or key.endswith(_idle_devices())
    # (Nor are there tensors of zeros without memory, which that key is for.)
    return (is_named or key == "ZeroTensor") and key in DispatchKey.__members__


def _is_of_absent_device(key: str) -> bool:
    """Whether it is the key of a device that is never here, or of its autograd or autocast."""
    return _is_idle(key) and key != "AutocastCPU" and not key.endswith("CPU")


def _new(namespace: str, lib: Library | None) -> Library:
    """The library to register in; without one, one that lives as long as the program."""
    if lib is not None:
        return lib
    library = Library(namespace, "FRAGMENT")
    _KEPT.append(library)
    return library


@functools.singledispatch
def define(qualname: Any, schema: Any, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Defines the op ``namespace::name`` by the part of a schema that follows the name.

    Args:
        qualname: the op's name with namespace.
        schema: ``(Tensor x) -> Tensor``.
        lib: the library that holds it; without one it stays.
        tags: tags of the op.

    Raises:
        ValueError: for a name or schema of another type or form.
    """
    if not isinstance(qualname, str):
        raise ValueError(
            "define(qualname, schema): expected qualname to be instance of str, got "
            f"{type(qualname)}"
        )
    namespace, name = _split(qualname)
    if not isinstance(schema, str) or not schema.lstrip().startswith("("):
        raise ValueError(
            'define(qualname, schema, ...): expected schema to look like "(Tensor x) -> Tensor" '
            f"but got {schema!r}"
        )
    _new(namespace, lib).define(name + schema, tags=tags)


@define.register
def _(lib: Library, schema: str, alias_analysis: str = "") -> Callable[..., Any]:
    """The old form, a decorator: defines an op of ``lib`` and registers the function."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        lib.impl(lib.define(schema, alias_analysis), function)
        return function

    return decorate


def _keys_of(device_types: Any) -> list[str]:
    """The dispatch keys of types of devices."""
    if isinstance(device_types, str):
        device_types = [device_types]
    keys = []
    for kind in device_types:
        key = next((key for key, own in DEVICES.items() if own == kind), kind)
        key = "CompositeExplicitAutograd" if kind == "default" else key
        if key not in (*DEVICES, *COMPOSITES, *AUTOGRAD) and not _is_idle(key):
            # (Types of devices that are never here are known by their keys in small letters.)
            found = [own for own in _idle_devices() if own.lower() == kind]
            if not found:
                raise RuntimeError(
                    f"Expected one of cpu, cuda, meta, xpu, mps, default or a dispatch key as the "
                    f"type of device, got {kind!r}"
                )
            key = found[0]
        keys.append(key)
    return keys


def impl(
    qualname: Any, types: Any, func: Callable[..., Any] | None = None, *, lib: Library | None = None
) -> Any:
    """Registers a kernel of an op for types of devices; a decorator without ``func``.

    Args:
        qualname: the op's name with namespace (or, in the old form, a :class:`Library`).
        types: ``cpu``, ``cuda``, ``default`` (any), a list of them, or a dispatch key.
        func: the kernel.
        lib: the library that holds it; without one it stays.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""

        def old(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, function, key)  # type: ignore[arg-type]
            return function

        return old

    keys = _keys_of(types)

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        overload = _find_op(qualname)
        for key in keys:
            _new(overload.namespace, lib).impl(overload, function, key)
        return function

    return register if func is None else (register(func), None)[1]


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes an op of a function, which other parts of the library then see as one op.

    Args:
        name: the op's name with namespace, ``mylib::sin``.
        fn: its kernel; without it, this is a decorator.
        mutates_args: names of the arguments that it writes into, or ``unknown``.
        device_types: the devices that the kernel serves; all by default.
        schema: the signature, ``(Tensor x) -> Tensor``; inferred from annotations by default.
        tags: tags of the op.

    Returns:
        The op, which is called as the function is.
    """

    def make(function: Callable[..., Any]) -> CustomOpDef:
        namespace, op_name = _split(name)
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        # (A notebook runs the definition of an op again: the last one holds.)
        if name in _DEFINED:
            _DEFINED.pop(name)._destroy()
        library = _DEFINED[name] = Library(namespace, "FRAGMENT")
        # (That fakes and transforms see it as one op holds for every op defined this way.)
        given = [] if tags is None else _tags_in(tags)
        library.define(op_name + text, tags=[Tag.pt2_compliant_tag, *given])
        result = CustomOpDef(_find_op(name), function)
        result._opoverload.has_own_results = True
        for key in _keys_of("default" if device_types is None else device_types):
            library.impl(result._opoverload, function, key)
        return result

    return make if fn is None else make(fn)


def register_kernel(
    op: Any,
    device_types: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers a kernel for types of devices (all if None); a decorator without ``func``."""
    return impl(_find_op(op), "default" if device_types is None else device_types, func, lib=lib)


def _registered(op: Any, func: Any, register: Callable[[CustomOverload, Any], None]) -> Any:
    """Registers something of an op; a decorator without ``func``."""

    def decorate(function: Any) -> Any:
        register(_find_op(op), function)
        return function

    return decorate if func is None else decorate(func)


def register_fake(
    op: Any,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """Registers what computes results on the meta device: their shapes and dtypes.

    Args:
        op: the op.
        func: takes the op's arguments; without it, this is a decorator.
        lib: ignored: the rule goes with the op.
        allow_override: whether it may replace one.

    Raises:
        RuntimeError: if there is one already, and for an op that is made of others, which have
            rules of their own.
    """

    def register(overload: CustomOverload, function: Any) -> None:
        if "CompositeImplicitAutograd" in overload.kernels:
            raise RuntimeError(
                f"register_fake(...): the operator {overload.name()} has a kernel for "
                "CompositeImplicitAutograd, which is made of other ops: it needs no fake impl, "
                "those of the ops that it calls give shapes and dtypes"
            )
        if overload.fake is not None and not allow_override:
            raise RuntimeError(
                f"register_fake(...): the operator {overload.name()} already has an fake impl"
            )
        overload.fake = function

    return _registered(op, func, register)


def impl_abstract(
    qualname: Any,
    func: Callable[..., Any] | None = None,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
) -> Any:
    """The old name of :func:`register_fake`."""
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Registers the gradient rule of an op.

    Args:
        op: the op.
        backward: ``backward(ctx, *grads)`` gives a gradient for each argument by position.
        setup_context: ``setup_context(ctx, inputs, output)`` keeps what ``backward`` needs.
        lib: ignored: the rule goes with the op.

    Raises:
        RuntimeError: for ops that write into arguments.
    """
    _find_op(op).register_autograd(backward, setup_context)


def register_vmap(
    op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """Registers the batching rule ``func(info, in_dims, *args)``: results and their dimensions."""
    return _registered(op, func, CustomOverload.register_vmap)


def register_torch_dispatch(
    op: Any,
    torch_dispatch_class: type,
    func: Callable[..., Any] | None = None,
    /,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers what a mode or class with ``__torch_dispatch__`` does with an op.

    It is ``func(mode, op, types, args, kwargs)`` for a mode, and
    ``func(op, types, args, kwargs)`` for a tensor subclass.
    """

    def register(overload: CustomOverload, function: Any) -> None:
        overload.torch_dispatch[torch_dispatch_class] = function

    return _registered(op, func, register)


def register_autocast(
    op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None
) -> None:
    """Casts floating-point arguments (``float64`` aside) to a dtype where autocast is on.

    Raises:
        ValueError: for a device type without autocast.
    """
    if not isinstance(device_type, str) or device_type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type: {device_type!r}")
    _find_op(op).autocast[device_type] = cast_inputs


def get_ctx() -> Any:
    """The context of a fake kernel that makes sizes which depend on data.

    Raises:
        RuntimeError: always: sizes are numbers here, never symbols.
    """
    raise RuntimeError(
        "get_ctx() can only be called inside of a fake impl of PyTorch's tracing, which is not "
        "here: on the meta device an operator cannot have a result with data-dependent shape"
    )


def get_kernel(op: Any, dispatch_key: str) -> Callable[..., Any]:
    """The kernel that was registered for a dispatch key.

    Raises:
        RuntimeError: if there is none.
    """
    overload = _find_op(op)
    found = overload.kernels.get(str(dispatch_key))
    if found is None:
        raise RuntimeError(f"no kernel of {overload.name()} is registered for {dispatch_key}")
    return lambda _keyset, *args, **kwargs: found(*args, **kwargs)


def triton_op(name: str, fn: Any = None, /, *, mutates_args: Any, schema: Any = None) -> Any:
    """Ops of Triton kernels need a GPU, and Triton.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        f"triton_op({name!r}): Triton's kernels are not supported; use custom_op()"
    )


def wrap_triton(triton_kernel: Any, /) -> Any:
    """As :func:`triton_op`.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("wrap_triton(): Triton's kernels are not supported")


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A library for the time of a ``with`` block."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


_absent.announce(globals())
