"""Placeholders: names of PyTorch that can be imported here and do not do PyTorch's work.

Programs import such names, call predicates like ``is_available`` and go on. So each placeholder can
be imported and reached; a predicate returns what is true here, and whatever would need what is not
here raises one error that says why, and what to use instead. Which names are placeholders, and with
which reasons, is data: `table.py` by namespace, `top.py` for the main one. Namespaces without a
file of their own are made from the table of PyTorch's names (`spec_of`); other modules look up
names that they lack here (`_absent.announce`).
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

_OWN = __name__.split(".", maxsplit=1)[0]
# The attribute in which a placeholder keeps its reason.
MARK = "_pullback_placeholder"


class Refusal(NamedTuple):
    """Why a name does nothing here.

    Args:
        reason: what is not here, a clause.
        instead: what to do instead, an imperative.
        error: the class of the error.
    """

    reason: str
    instead: str
    error: type[Exception] = NotImplementedError

    def text(self, name: str) -> str:
        """The message of the error."""
        return f"{name} is not available: {self.reason}; {self.instead}"


class _Refused(type):
    """The metaclass of placeholder classes: errors about missing attributes give the reason too."""

    def __getattr__(cls, name: str) -> Any:
        text = f"type object {cls.__name__!r} has no attribute {name!r}"
        if not name.startswith("__"):
            text += f": {next(vars(base)[MARK] for base in cls.__mro__ if MARK in vars(base))}"
        raise AttributeError(text, name=name, obj=cls)


def _refused_class(full: str, refusal: Refusal) -> type:
    space, _, name = full.rpartition(".")
    text = refusal.text(full)
    values: dict[str, Any] = {"__module__": space, "__qualname__": name, "__doc__": f"{text}."}
    values[MARK] = text
    if name.endswith(("Error", "Exception")):
        return type(name, (Exception,), values)

    def refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise refusal.error(text)

    values["__new__"] = refuse
    values["__class_getitem__"] = classmethod(lambda cls, _: cls)
    return _Refused(name, (), values)


def _named(function: Any, full: str, text: str) -> Callable[..., Any]:
    function.__module__, _, function.__name__ = full.rpartition(".")
    function.__qualname__ = function.__name__
    function.__doc__ = f"{text}."
    setattr(function, MARK, text)
    return function  # type: ignore[no-any-return]


def _refused_function(full: str, refusal: Refusal) -> Callable[..., Any]:
    text = refusal.text(full)

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise refusal.error(text)

    return _named(refuse, full, text)


def _constant_function(full: str, value: Any) -> Callable[..., Any]:
    def constant(*args: Any, **kwargs: Any) -> Any:
        return copy.copy(value)

    text = "Does nothing" if value is None else f"Always returns {value!r}"
    return _named(constant, full, f"{text}: {_refusal_of(full).reason}")


class _RefusedValue:
    """Stands for a value that is not here: to use it is an error."""

    def __init__(self, full: str, refusal: Refusal) -> None:
        vars(self).update({"_name": full, "_refusal": refusal, MARK: refusal.text(full)})

    def __repr__(self) -> str:
        return str(self._name)

    def __reduce__(self) -> Any:
        return (_value, (self._name,))

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise self._refusal.error(vars(self)[MARK])

    def __getattr__(self, name: str) -> Any:
        text = f"{vars(self)['_name']} has no attribute {name!r}"
        raise AttributeError(f"{text}: {vars(self)[MARK]}", name=name, obj=self)


def _value(full: str) -> _RefusedValue:
    return _RefusedValue(full, _refusal_of(full))


def refusal_of(full: str) -> Refusal | None:
    """Why a name under ``torch`` does nothing, by itself or with its namespace; None if it does."""
    from .table import NAMES, SPACES

    if full in NAMES:
        return NAMES[full]
    while full and full not in SPACES:
        full = full.rpartition(".")[0]
    return SPACES[full] if full else None


def _refusal_of(full: str) -> Refusal:
    refusal = refusal_of(full)
    if refusal is None:
        raise LookupError(f"no reason is given for {full}")
    return refusal


def made(full: str, kind: str) -> Any:
    """Makes the placeholder for a name: a class, a function or a value."""
    from .table import RESULTS, VALUES

    if full in VALUES:
        return VALUES[full]
    if full in RESULTS:
        return _constant_function(full, RESULTS[full])
    return made_of(full, kind, _refusal_of(full))


def made_of(full: str, kind: str, refusal: Refusal) -> Any:
    """Makes a class, a function or a value whose use raises the error of ``refusal``."""
    if kind == "class":
        return _refused_class(full, refusal)
    return _refused_function(full, refusal) if kind == "function" else _RefusedValue(full, refusal)


def _theirs(own: str) -> str:
    return "torch" + own[len(_OWN) :]


def own(full: str) -> str:
    """The name in this package of a name under ``torch``."""
    return _OWN + full[len("torch") :]


@lru_cache(maxsize=1)
def namespaces() -> frozenset[str]:
    """The namespaces that hold nothing but placeholders, as ``torch.ao.quantization``."""
    from .._known import table
    from .table import PRIVATE

    known = [name for space in table().values() for name in space.values()]
    modules = {f"{name.space}.{name.name}" for name in known if name.kind == "module"}
    private = {above for full in PRIVATE for above in _with_those_above(full)}
    named = {*modules, *table(), *private}
    return frozenset(full for full in named if refusal_of(full) is not None)


def _with_those_above(full: str) -> Iterator[str]:
    while "." in full:
        yield full
        full = full.rpartition(".")[0]


class _Loader:
    """The loader of placeholder modules."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """None: Python's usual way of creating a module."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module its documentation and the look-up of placeholders."""
        from .._absent import announce

        full = _theirs(module.__name__)
        module.__doc__ = f"{_refusal_of(full).text(full)}."
        setattr(module, MARK, module.__doc__)
        announce(vars(module))


def spec_of(name: str) -> ModuleSpec | None:
    """The spec of a module of this package that has no file, because it is a placeholder."""
    full = _theirs(name)
    if refusal_of(full) is None or full not in namespaces():
        return None
    return ModuleSpec(name, _Loader(), is_package=True)  # type: ignore[arg-type]


def find(space: str, name: str) -> Any:
    """The placeholder for a name that a module lacks; None if there is none.

    A namespace of which no names are recorded has those of the one above it.

    Args:
        space: the module's name in this package.
        name: the name that the module lacks.
    """
    from .._known import table

    theirs = _theirs(space)
    full = f"{theirs}.{name}"
    refusal = refusal_of(full)
    if refusal is None:
        return None
    from .table import PRIVATE

    if name in PRIVATE.get(theirs, ()):
        return made(full, PRIVATE[theirs][name])
    if full in namespaces():
        return importlib.import_module(own(full))
    if theirs not in table() and "." in theirs:
        above = getattr(importlib.import_module(space.rpartition(".")[0]), name, None)
        return None if isinstance(above, ModuleType) else above
    known = table().get(theirs, {}).get(name)
    return None if known is None else made(full, known.kind)


def why(space: str) -> str | None:
    """Why a module of this package is a placeholder; None if it is not."""
    refusal = refusal_of(_theirs(space))
    return None if refusal is None else f"{refusal.reason}; {refusal.instead}"


def is_placeholder(thing: object) -> bool:
    """Whether a class, function, module or value is a placeholder."""
    return MARK in getattr(thing, "__dict__", {})
