"""Names of PyTorch that answer here without doing PyTorch's work.

Programs import such names, ask them questions and pass on. So each of them can be imported and
reached; a question gets a true answer, and whatever would need what is not here raises one error
that says why, and what to use instead. Which names answer, and how, is data: `table.py` by
namespace, `top.py` for the main one. Namespaces without a file of their own are made from the table
of PyTorch's names (`spec_of`); other modules ask for what they lack (`_absent.announce`).
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
# Under this name an answer keeps its reason.
MARK = "_pullback_answer"


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
    """The class of classes that cannot be instantiated: attributes are told of too."""

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


def _saying(full: str, value: Any) -> Callable[..., Any]:
    def say(*args: Any, **kwargs: Any) -> Any:
        return copy.copy(value)

    text = "Does nothing" if value is None else f"Always says {value!r}"
    return _named(say, full, f"{text}: {_refusal_of(full).reason}")


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
    """What stands for a name: a class, a function or a value."""
    from .table import SAYS, VALUES

    if full in VALUES:
        return VALUES[full]
    if full in SAYS:
        return _saying(full, SAYS[full])
    return made_of(full, kind, _refusal_of(full))


def made_of(full: str, kind: str, refusal: Refusal) -> Any:
    """A class, a function or a value whose use is an error."""
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
    """The namespaces that only answer, as ``torch.ao.quantization``."""
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
    """Makes a module of names that only answer."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """None: the usual one."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Lets it answer."""
        from .._absent import announce

        full = _theirs(module.__name__)
        module.__doc__ = f"{_refusal_of(full).text(full)}."
        setattr(module, MARK, module.__doc__)
        announce(vars(module))


def spec_of(name: str) -> ModuleSpec | None:
    """The spec of a module of this package that has no file, because it only answers."""
    full = _theirs(name)
    if refusal_of(full) is None or full not in namespaces():
        return None
    return ModuleSpec(name, _Loader(), is_package=True)  # type: ignore[arg-type]


def find(space: str, name: str) -> Any:
    """What a module that lacks a name shows for it; None if nothing answers.

    A namespace of which no names are recorded has those of the one above it.

    Args:
        space: the module's name in this package.
        name: what was asked for.
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
    """Why a module of this package only answers; None if it does more."""
    refusal = refusal_of(_theirs(space))
    return None if refusal is None else f"{refusal.reason}; {refusal.instead}"


def is_answer(thing: object) -> bool:
    """Whether a class, function, module or value was made here."""
    return MARK in getattr(thing, "__dict__", {})
