"""Dispatch keys as objects, sets of them, and the contexts that leave some out.

``torch._C.DispatchKey.AutocastCPU`` has PyTorch's name and number. The layers themselves are native
and have no set of keys that a program could change, so that a guard leaves out what has a context
of its own here: autocast, recording, modes with ``__torch_dispatch__``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from threading import get_ident
from typing import Any, ClassVar

from . import _C

__all__ = [
    "DispatchKey",
    "DispatchKeySet",
    "_AutoDispatchBelowAutograd",
    "_DisableAutocast",
    "_ExcludeDispatchKeyGuard",
    "_dispatch_tls_local_exclude_set",
    "_dispatch_keys",
]

_SINGLE = {
    "Undefined": 0,
    "Dense": 1,
    "Quantized": 5,
    "Sparse": 8,
    "SparseCsr": 9,
    "NestedTensor": 10,
    "BackendSelect": 11,
    "Python": 13,
    "FuncTorchDynamicLayerBackMode": 14,
    "Functionalize": 15,
    "Conjugate": 16,
    "Negative": 17,
    "ZeroTensor": 18,
    "ADInplaceOrView": 19,
    "AutogradOther": 20,
    "AutogradFunctionality": 21,
    "AutogradNestedTensor": 22,
    "AutocastCPU": 24,
    "AutocastXPU": 27,
    "AutocastIPU": 28,
    "AutocastHPU": 29,
    "AutocastMPS": 31,
    "AutocastCUDA": 32,
    "AutocastPrivateUse1": 33,
    "FuncTorchBatched": 34,
    "FuncTorchVmapMode": 36,
    "FuncTorchGradWrapper": 39,
    "PythonTLSSnapshot": 41,
    "FuncTorchDynamicLayerFrontMode": 42,
    "PreDispatch": 45,
    "PythonDispatcher": 46,
    "Autograd": 150,
    "CompositeImplicitAutograd": 151,
    "FuncTorchBatchedDecomposition": 152,
    "CompositeImplicitAutogradNestedTensor": 153,
    "CompositeExplicitAutograd": 154,
    "CompositeExplicitAutogradNonFunctional": 155,
}
_BACKENDS = (
    *("CPU", "CUDA", "HIP", "XLA", "MPS", "IPU", "XPU", "HPU", "VE", "Lazy", "MTIA", "MAIA"),
    *("PrivateUse1", "PrivateUse2", "PrivateUse3", "Meta"),
)
# The prefix of a backend's key, the name of its group, and the number before its first.
_GROUPS = (
    ("", "Dense", 48),
    ("Quantized", "Quantized", 65),
    ("Sparse", "Sparse", 82),
    ("SparseCsr", "SparseCsr", 99),
    ("NestedTensor", "NestedTensor", 116),
    ("Autograd", "AutogradFunctionality", 133),
)


class DispatchKey:
    """What computes a call of an op: a backend, or a layer above all of them."""

    __members__: ClassVar[dict[str, DispatchKey]] = {}

    def __init__(self, name: str, value: int, layer: int) -> None:
        """Made once for each name; ``__members__`` has them all."""
        self.name = name
        self.value = value
        # The position of the layer; the backends of one layer have the same position.
        self._layer = layer

    def __repr__(self) -> str:
        return f"<DispatchKey.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"DispatchKey.{self.name}"

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        return self.value == other.value if isinstance(other, DispatchKey) else NotImplemented

    def __hash__(self) -> int:
        return self.value

    def __reduce__(self) -> Any:
        return (getattr, (DispatchKey, self.name))


def _enter(name: str, value: int, layer: int) -> None:
    key = DispatchKey(name, value, layer)
    DispatchKey.__members__[name] = key
    setattr(DispatchKey, name, key)


for _name, _value in _SINGLE.items():
    _enter(_name, _value, _value)
for _prefix, _group, _first in _GROUPS:
    _layer = DispatchKey.__members__[_group].value
    _enter(f"StartOf{_group}Backends", _first, _layer)
    for _place, _backend in enumerate(_BACKENDS, _first + 1):
        _enter(_prefix + _backend, _place, _layer)
    _enter(f"EndOf{_group}Backends", _first + len(_BACKENDS), _layer)
DispatchKey.__module__ = "torch"


def _named(key: Any) -> DispatchKey:
    if isinstance(key, DispatchKey):
        return key
    found = DispatchKey.__members__.get(key) if isinstance(key, str) else None
    if found is None:
        raise TypeError(f"a dispatch key is expected, got {key!r}")
    return found


class DispatchKeySet:
    """Some dispatch keys, lowest priority first.

    Args:
        key: the only one; no key at all if left out.
    """

    __module__ = "torch"

    def __init__(self, key: Any = None) -> None:
        self._keys = frozenset() if key is None else frozenset([_named(key)])

    @staticmethod
    def _of(keys: Iterable[DispatchKey]) -> DispatchKeySet:
        made = DispatchKeySet()
        made._keys = frozenset(keys)
        return made

    def _others(self, other: Any) -> frozenset[DispatchKey]:
        if not isinstance(other, DispatchKeySet):
            raise TypeError(f"a DispatchKeySet is expected, got {type(other).__name__}")
        return other._keys

    def _sorted(self) -> list[DispatchKey]:
        return sorted(self._keys, key=lambda key: (key._layer, key.value))

    def has(self, key: Any) -> bool:
        """Whether the set has a key, which may be given by its name."""
        return _named(key) in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        """The set with one more key."""
        return self._of(self._keys | {_named(key)})

    def remove(self, key: Any) -> DispatchKeySet:
        """The set without a key."""
        return self._of(self._keys - {_named(key)})

    def highestPriorityTypeId(self) -> DispatchKey:
        """The key that is asked first; ``Undefined`` of an empty set."""
        return self._sorted()[-1] if self._keys else DispatchKey.__members__["Undefined"]

    def __or__(self, other: Any) -> DispatchKeySet:
        return self._of(self._keys | self._others(other))

    def __and__(self, other: Any) -> DispatchKeySet:
        return self._of(self._keys & self._others(other))

    def __sub__(self, other: Any) -> DispatchKeySet:
        return self._of(self._keys - self._others(other))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in self._sorted())})"


_native_keys = _C._dispatch_keys


def _dispatch_keys(tensor: Any) -> DispatchKeySet:
    """The dispatch keys of a tensor: which backend its ops are for, and the layers they pass."""
    names = repr(_native_keys(tensor)).removeprefix("DispatchKeySet(").removesuffix(")")
    return DispatchKeySet._of(map(_named, names.split(", ")))


_DEVICES = {"AutocastCPU": "cpu", "AutocastCUDA": "cuda", "AutocastXPU": "xpu"}


# What the open guards of each thread leave out, the outermost first.
_EXCLUDED: dict[int, list[list[str]]] = {}


def _dispatch_tls_local_exclude_set() -> DispatchKeySet:
    """The keys that :class:`_ExcludeDispatchKeyGuard` leaves out on this thread."""
    names = [name for names in _EXCLUDED.get(get_ident(), ()) for name in names]
    return DispatchKeySet._of(map(_named, names))


def _is_batching() -> bool:
    from . import _transform

    return any(transform.kind == "vmap" for transform in _transform.of_thread())


class _ExcludeDispatchKeyGuard(contextlib.ExitStack):
    """A context without some layers.

    Args:
        keys: autocast's, those of autograd, ``Python``, or outside of ``vmap`` its own.

    Raises:
        NotImplementedError: for another key, whose layer cannot be left out here.
    """

    def __init__(self, keys: DispatchKeySet) -> None:
        super().__init__()
        self._names = [key.name for key in keys._sorted()]
        for name in self._names:
            if name == "FuncTorchBatched" and not _is_batching():
                # (Nothing is excluded; code that opens a level inside includes it again.)
                continue
            if not name.startswith(("Autocast", "Autograd", "ADInplaceOrView", "Python")):
                raise NotImplementedError(f"the layer {name} cannot be left out")

    def __enter__(self) -> Any:
        from . import autocast, no_grad

        for name in self._names:
            if name.startswith("Autocast"):
                if name in _DEVICES:
                    self.enter_context(autocast(_DEVICES[name], enabled=False))
            elif name == "Python":
                self.enter_context(_C._DisableTorchDispatch())
        if any(name.startswith("Autograd") for name in self._names):
            self.enter_context(no_grad())
        mine = _EXCLUDED.setdefault(get_ident(), [])
        mine.append(self._names)
        self.callback(mine.pop)
        return super().__enter__()


class _DisableAutocast(_ExcludeDispatchKeyGuard):
    """A context in which autocast is off for every device."""

    def __init__(self) -> None:
        super().__init__(DispatchKeySet._of(map(_named, _DEVICES)))


class _AutoDispatchBelowAutograd(_ExcludeDispatchKeyGuard):
    """A context in which nothing is recorded."""

    def __init__(self) -> None:
        super().__init__(DispatchKeySet("AutogradCPU"))
