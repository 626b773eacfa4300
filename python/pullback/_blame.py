"""Notes of exceptions besides their text, which Python prints below the traceback.

The extension calls these functions once an error is on its way (`crates/python/src/explain.rs`),
and never before: what does not fail pays nothing. Class and text of an exception stay PyTorch's,
but for two texts that say no more than what is wrong: a keyword that does not exist gets the one
that may have been meant, a name that is missing the reason.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from types import FrameType
from typing import Any, NamedTuple

from ._tensor import Tensor

_OWN = __name__.rpartition(".")[0]
_FOLDER = __file__.rpartition("_blame")[0]
_LONGEST = 200
# The exceptions that passed through calls of modules lately, by identity. (No attribute of theirs:
# who sends one to another process pickles all that it has.)
_PLACES: dict[int, _Place] = {}
_MOST_PLACES = 64


def add_note(error: BaseException, note: str) -> None:
    """Adds a note; before Python 3.11 exceptions keep it, but Python does not print it."""
    if hasattr(error, "add_note"):
        error.add_note(note)
        return
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        notes.append(note)
    else:
        error.__notes__ = [note]  # type: ignore[attr-defined]


def _replace(error: BaseException, former: str, note: str) -> None:
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list) and former in notes:
        notes[notes.index(former)] = note
    else:
        add_note(error, note)


# ---- modules ----


class _Place(NamedTuple):
    """Where an exception came from, as far as it has come.

    Args:
        module: the outermost module that it passed through so far.
        path: from that module to where it was raised.
        what: that module, and what it was called with.
        note: what the exception says now.
    """

    module: weakref.ref[Any]
    path: str
    what: str
    note: str


def note_module(error: BaseException, module: Any, args: Any, kwargs: Any) -> None:
    """Notes where in a model an exception was raised, and what the module there was called with.

    Called at each call of a module that ends with the exception, from the inside out; there is one
    note, whose path grows.
    """
    if not isinstance(error, Exception) or isinstance(error, (StopIteration, StopAsyncIteration)):
        return
    known = _PLACES.pop(id(error), None)
    if known is not None and known.note not in getattr(error, "__notes__", ()):
        known = None  # (Another exception was at this address.)
    inner = None if known is None else known.module()
    if known is None or inner is None:
        path = ""
        what = f"{_described(module)} got {_arguments(args, kwargs or {})}"
    else:
        path, what = _step(module, inner) + known.path, known.what
    name = _variable(module)
    if path or name:
        note = f"{name or type(module).__name__}{path}: {what}"
    else:
        note = what
    if known is None or inner is None:
        add_note(error, note)
    else:
        _replace(error, known.note, note)
    _PLACES[id(error)] = _Place(weakref.ref(module), path, what, note)
    if len(_PLACES) > _MOST_PLACES:
        _PLACES.pop(next(iter(_PLACES)), None)


def _step(outer: Any, inner: Any) -> str:
    """The path from a module to another one that it called."""
    if inner is outer:
        return ""
    for name, part in outer.named_modules():
        if part is inner:
            return f".{name}"
    # (The module is called, but is no part of the other: it may be in a Python list.)
    return f" > {type(inner).__name__}"


def _described(module: Any) -> str:
    """A module as it prints, if that is short; its class if it has parts."""
    name = type(module).__name__
    if vars(module).get("_modules"):
        return name
    text = repr(module)
    return text if "\n" not in text and len(text) <= _LONGEST else name


def _variable(module: Any) -> str | None:
    """The program's name of a module, where it called it; None if that is not known."""
    frame = _caller()
    if frame is None or frame.f_code.co_filename.startswith(_FOLDER):
        return None
    from ._holders import variables

    for name, value in (*variables(frame), *frame.f_globals.items()):
        if value is module and name != "self" and not name.startswith("_"):
            return name
    return None


def _caller() -> FrameType | None:
    """The frame of the call that the extension reported."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return frame


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    shown = [_value(value) for value in args]
    shown += [f"{name}={_value(value)}" for name, value in kwargs.items()]
    if not shown:
        return "no arguments"
    text = ", ".join(shown)
    return text if len(text) <= 2 * _LONGEST else text[: 2 * _LONGEST] + "..."


def _value(value: Any, depth: int = 0) -> str:
    """A tensor's shape, and its unusual properties; other values in short."""
    if isinstance(value, Tensor):
        return _tensor(value)
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, str):
        return repr(value) if len(value) <= 20 else "str"
    if isinstance(value, (tuple, list)) and depth < 2:
        items = [_value(item, depth + 1) for item in value[:6]]
        items += ["..."] if len(value) > 6 else []
        return f"[{', '.join(items)}]"
    if isinstance(value, dict) and depth < 2:
        items = [f"{key!r}: {_value(item, depth + 1)}" for key, item in [*value.items()][:6]]
        return f"{{{', '.join(items)}}}"
    return type(value).__name__


def _tensor(value: Tensor) -> str:
    from . import _C

    text = str(tuple(value.shape))
    if value.dtype is not _C.get_default_dtype():
        text += f" {str(value.dtype).removeprefix('torch.')}"
    if value.device.type != "cpu":
        text += f" on {value.device}"
    if value.layout is not _strided():
        text += f" {str(value.layout).removeprefix('torch.')}"
    return text


def _strided() -> Any:
    return sys.modules[_OWN].strided


# ---- names and keywords ----


def say_missing(error: AttributeError, module: Any, name: str) -> None:
    """Adds to the text of an error about a name of this package whether PyTorch has it."""
    from . import _absent

    text = str(error)
    is_own = (getattr(module, "__file__", None) or "").startswith(_FOLDER)
    if not is_own or name.startswith("__") or error.args[:1] != (text,):
        return
    reason = _absent.message(module.__name__, name)
    if reason is not None and reason not in text:
        error.args = (f"{text}: {reason}",)


def suggest_keyword(error: TypeError, function: Any) -> None:
    """Suggests, in an error about an unknown keyword, the one that may have been meant."""
    import inspect
    import re

    text = str(error)
    found = re.search(r"got an unexpected keyword argument '(\w+)'$", text)
    if found is None:
        return
    with contextlib.suppress(TypeError, ValueError):
        if isinstance(function, type):
            function = inspect.getattr_static(function, "__init__")
        kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = inspect.signature(function).parameters.values()
        names = [p.name for p in parameters if p.kind in kinds and p.name != "self"]
        meant = _closest(found[1], names)
        if meant is not None:
            error.args = (f"{text}; did you mean '{meant}'?",)


def _closest(name: str, names: list[str]) -> str | None:
    from . import _C

    found: str | None = _C._closest_name(name, names)
    return found


# ---- memory ----

# Where tensors hold less than this, the request itself was too large: no holder is named.
_MUCH = 16 << 20
_SHOWN = 8


def note_memory(error: BaseException) -> None:
    """Notes the holders of memory in an error that says that there is no more of it."""
    from . import memory

    live, cached, peak = memory.live_bytes(), memory.cached_bytes(), memory.peak_bytes()
    note = f"Tensors hold {_size(live)} (at most {_size(peak)} so far)"
    if cached:
        note += f"; {_size(cached)} of freed memory are kept for the next ones"
    if live < _MUCH:
        add_note(error, f"{note}: what was asked for is too large by itself.")
        return
    try:
        from ._holders import largest

        held = largest(_SHOWN)
    except MemoryError:
        add_note(error, f"{note}.")
        return
    lines = [f"  {_size(size):>9}  {what}" for size, what in held.shown]
    if held.rest:
        lines.append(f"  {_size(held.rest):>9}  in {held.others} smaller or unnamed places")
    add_note(error, "\n".join([f"{note}. The largest:", *lines]))


def _size(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    size = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        size /= 1000
        if size < 999.5 or unit == "TB":
            return f"{size:.3g} {unit}"
    raise AssertionError
