"""Modules that hold modules or parameters: in a row, in a list, under names.

Invariant: members of lists are registered under "0", "1", ... in order; after a deletion they are
numbered anew.
"""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    ValuesView,
)
from itertools import chain
from typing import TYPE_CHECKING, Any, overload

from ..._tensor import Tensor
from ..parameter import Parameter
from ._base import typename
from .module import Module

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "Container",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
]


def _position(index: Any, size: int) -> int:
    """A checked, non-negative index.

    Raises:
        IndexError: out of range.
    """
    number = operator.index(index)
    if not -size <= number < size:
        raise IndexError(f"index {number} is out of range")
    return number % size


class Container(Module):
    """A module with the submodules given by keyword: a ``Module`` does all of that by itself."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        warnings.warn(
            "nn.Container is deprecated: nn.Module does all that it does, subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Row(Module):
    """What :class:`Sequential` and :class:`ModuleList` share: members in order."""

    _modules: dict[str, Module]  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx: int | slice) -> None:
        keys = list(self._modules)
        for key in keys[idx] if isinstance(idx, slice) else [self._key(idx)]:
            delattr(self, key)
        self._modules = {str(i): m for i, m in enumerate(self._modules.values())}

    def _key(self, idx: int) -> str:
        keys = list(self._modules)
        return keys[_position(idx, len(keys))]

    def append(self, module: Module) -> Self:
        """Adds a module at the end; returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Removes and returns one member, or a container of several."""
        member = self[key]  # type: ignore[index]
        del self[key]
        return member

    def _make_room(self, index: int, module: Module) -> None:
        for i in range(len(self._modules), index, -1):
            self._modules[str(i)] = self._modules[str(i - 1)]
        self._modules[str(index)] = module


class Sequential(_Row):
    """Calls its members one after another, each on what the one before returned.

    Takes the modules, or one ``OrderedDict`` of names to modules::

        nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    """

    @overload
    def __init__(self, *args: Module) -> None: ...

    @overload
    def __init__(self, arg: OrderedDict[str, Module], /) -> None: ...

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            members: Iterable[tuple[str, Module]] = args[0].items()
        else:
            members = ((str(i), module) for i, module in enumerate(args))
        for name, module in members:
            self.add_module(name, module)

    @overload
    def __getitem__(self, idx: slice) -> Sequential: ...

    @overload
    def __getitem__(self, idx: int) -> Module: ...

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._key(idx)]

    def __add__(self, other: Sequential) -> Sequential:
        _check_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Self:
        _check_sequential(other)
        return self.extend(list(other))

    def __mul__(self, other: int) -> Sequential:
        _check_factor(self, other)
        return Sequential(*list(self) * other)

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self, other: int) -> Self:
        _check_factor(self, other)
        return self.extend(list(self) * (other - 1))

    def forward(self, input: Any) -> Any:
        """The last member's output."""
        for module in self._modules.values():
            input = module(input)
        return input

    def insert(self, index: int, module: Module) -> Self:
        """Puts a module before position ``index``; returns the container.

        Raises:
            AssertionError: not a module.
            IndexError: out of range.
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        self._make_room(index + size if index < 0 else index, module)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Adds modules at the end; returns the container."""
        for module in sequential:
            self.append(module)
        return self


def _check_sequential(other: object) -> None:
    if not isinstance(other, Sequential):
        raise ValueError(
            f"add operator supports only objects of Sequential class, but {type(other)} is given."
        )


def _check_factor(row: Sequential, other: object) -> None:
    if not isinstance(other, int):
        raise TypeError(f"unsupported operand type(s) for *: {type(row)} and {type(other)}")
    if other <= 0:
        raise ValueError(f"Non-positive multiplication factor {other} for {type(row)}")


class ModuleList(_Row):
    """A list of modules that are registered; it has no ``forward``.

    Args:
        modules: what it holds at first.
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    @overload
    def __getitem__(self, idx: slice) -> ModuleList: ...

    @overload
    def __getitem__(self, idx: int) -> Module: ...

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[str(_position(idx, len(self)))]

    # (mypy outside of its strict mode, as stubtest runs it, asks for one name in both.)
    def __iadd__(self, other: Iterable[Module]) -> Self:
        return self.extend(other)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def insert(self, index: int, module: Module) -> None:
        """Puts a module before position ``index``."""
        self._make_room(index, module)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds modules at the end; returns the list.

        Raises:
            TypeError: not an iterable.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, "
                f"but got {type(modules).__name__}"
            )
        offset = len(self)
        for i, module in enumerate(modules):
            self.add_module(str(offset + i), module)
        return self

    def __repr__(self) -> str:
        """Runs of members that print alike are shown once, with their number."""
        if not self._modules:
            return f"{self._get_name()}()"
        runs: list[tuple[int, int, str]] = []
        for i, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], i, text)
            else:
                runs.append((i, i, text))
        lines = [
            f"({first}): {text}"
            if first == last
            else f"({first}-{last}): {last - first + 1} x {text}"
            for first, last, text in runs
        ]
        body = "\n".join(lines).replace("\n", "\n  ")
        return f"{self._get_name()}(\n  {body}\n)"


def _pairs(source: Any, owner: str) -> Iterable[tuple[Any, Any]]:
    """The entries of a mapping, or the checked pairs of an iterable."""
    if not isinstance(source, Iterable):
        raise TypeError(
            f"{owner}.update should be called with an iterable of key/value pairs, "
            f"but got {type(source).__name__}"
        )
    if isinstance(source, (Mapping, ModuleDict, ParameterDict)):
        return source.items()
    return _checked_pairs(source, owner)


def _checked_pairs(source: Iterable[Any], owner: str) -> Iterator[tuple[Any, Any]]:
    for i, pair in enumerate(source):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{owner} update sequence element #{i} should be Iterable; is{type(pair).__name__}"
            )
        entry = tuple(pair)
        if len(entry) != 2:
            raise ValueError(
                f"{owner} update sequence element #{i} has length {len(entry)}; 2 is required"
            )
        yield entry[0], entry[1]


class ModuleDict(Module):
    """A dictionary of modules that are registered; ordered, without a ``forward``.

    Args:
        modules: a mapping, or pairs of name and module.
    """

    _modules: dict[str, Module]  # type: ignore[assignment]

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Removes all members."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Removes and returns the module of that name."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        """The names with their modules."""
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds the entries of a mapping, or pairs of name and module.

        Raises:
            TypeError, ValueError: neither.
        """
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


def _summary(value: Any, name: Callable[[Any], object]) -> str:
    """The text of a member in lists and dictionaries of parameters."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(extent) for extent in value.shape)
    suffix = f" ({value.device})" if value.device.type == "cuda" else ""
    return f"{kind} containing: [{name(value)} of size {size}{suffix}]"


def _as_parameter(value: Any) -> Any:
    """Tensors become parameters; all else stays."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


class ParameterList(Module):
    """A list of parameters that are registered; tensors become parameters, other values stay.

    Args:
        values: what it holds at first.
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    @overload
    def __getitem__(self, idx: int) -> Any: ...

    @overload
    def __getitem__(self, idx: slice) -> Self: ...

    def __getitem__(self, idx: Any) -> Any:
        if not isinstance(idx, slice):
            return getattr(self, str(_position(idx, len(self))))
        part = type(self)()
        for i in range(*idx.indices(len(self))):
            part.append(self[i])
        return part

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, str(_position(idx, len(self))), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def append(self, value: Any) -> Self:
        """Adds a value at the end; returns the list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Any) -> Self:
        """Adds values at the end; returns the list.

        Raises:
            TypeError: not an iterable, or a tensor.
        """
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, "
                f"but got {type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """One line for each value."""
        return "\n".join(
            f"  ({i}): {_summary(value, lambda tensor: tensor.dtype)}"
            for i, value in enumerate(self)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Is an error: there is nothing to compute.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters that are registered; tensors become parameters.

    Args:
        parameters: a mapping (sorted by name unless ordered), or pairs of name and value.
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _attribute(self, key: str) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        # An attribute is set first: where that is refused, the key must not stay behind.
        setattr(self, self._attribute(key), _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary with the same parameters."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of ``key``, which becomes ``default`` if it did not exist."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Removes all values."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Removes and returns the value of ``key``."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Removes and returns the last name and value."""
        if not self._keys:
            raise KeyError("dictionary is empty")
        key = next(reversed(list(self._keys)))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of ``key``, or ``default``."""
        return getattr(self, key) if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dictionary with ``default`` for every key."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names with their values."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Adds the entries of a mapping, or pairs of name and value.

        Raises:
            TypeError, ValueError: neither.
        """
        entries = _pairs(parameters, "ParameterDict")
        # A plain mapping promises no order, so its names are sorted.
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            entries = sorted(entries)
        for key, value in entries:
            self[key] = value

    def extra_repr(self) -> str:
        """One line for each value."""
        return "\n".join(f"  ({key}): {_summary(value, typename)}" for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Is an error: there is nothing to compute.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        joined = other.copy()
        joined.update(self)
        return joined

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self
