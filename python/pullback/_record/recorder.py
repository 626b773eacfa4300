"""Records what every op of a run computes: this file alone, beside PyTorch, is all that is needed.

In pullback it is ``pullback.record``. To record a program that runs on PyTorch itself, copy this
file beside it (``python -m pullback recorder > recorder.py`` writes it out) and say::

    import recorder

    with recorder.record("reference.pbt"):
        ...

``python -m pullback diff`` compares two records. A record is text: a line of JSON that says where
it is from, then one for each op in the order in which they ran, with a digest and the range of each
tensor that the op gave or wrote to, the line of the program, and in a backward the node that ran.
Lines of the program are listed where they are first needed. Invariant: the digest is that of the
kernel in `crates/kernels/src/digest.rs`, bit by bit.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

FORMAT = "pullback record"
VERSION = 1

_WORD = (1 << 64) - 1
_PLACE = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
# Words per step, so that a large tensor's digest takes little memory.
_STEP = 1 << 20
# Ops of whose results only shapes are written down: memory that was not written yet, which holds
# whatever it held, and memory that is shown once more.
_EMPTY = ["empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"]
_VIEWS = ["alias", "as_strided", "detach", "diagonal", "expand", "narrow", "permute", "select"]
_VIEWS += ["slice", "split", "squeeze", "t", "transpose", "unbind", "unsqueeze", "view", "unfold"]
_SHAPES_ONLY = frozenset((*_EMPTY, *_VIEWS))


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _mixed(word: int) -> int:
    """The mixed word of one word at index 0."""
    x = (word * _FIRST) & _WORD
    x ^= x >> 32
    x = (x * _SECOND) & _WORD
    return x ^ (x >> 29)


def digest(torch: Any, tensor: Any) -> int:
    """The digest of a tensor's elements in row-major order, by integer arithmetic of tensors."""
    raw = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    count = raw.numel() * raw.element_size()
    data = raw.view(torch.uint8) if count else raw.new_empty(0, dtype=torch.uint8)
    if count % 8:
        data = torch.cat([data, data.new_zeros(8 - count % 8)])
    words = data.view(torch.int64) if count else data.new_empty(0, dtype=torch.int64)
    total = 0
    for start in range(0, words.numel(), _STEP):
        part = words[start : start + _STEP]
        places = torch.arange(start, start + part.numel(), dtype=torch.int64)
        x = (part ^ (places * _signed(_PLACE))) * _signed(_FIRST)
        x = x ^ ((x >> 32) & 0xFFFFFFFF)
        x = x * _signed(_SECOND)
        x = x ^ ((x >> 29) & 0x7FFFFFFFF)
        total += int(x.sum())
    return _mixed((total & _WORD) ^ ((count * _PLACE) & _WORD))


def summary(torch: Any, tensor: Any) -> tuple[int, int, float, float, float]:
    """Digest, how many numbers are not finite, and least, largest and mean of the others."""
    value = tensor.detach()
    found = digest(torch, value)
    if value.is_complex():
        value = torch.view_as_real(value.resolve_conj())
    value = value.to(torch.float64).reshape(-1)
    finite = torch.isfinite(value)
    kept = value if bool(finite.all()) else value[finite]
    count = value.numel() - kept.numel()
    if not kept.numel():
        return found, count, math.nan, math.nan, math.nan
    return found, count, float(kept.min()), float(kept.max()), float(kept.mean())


class Writer:
    """Writes a record, an op per call of :meth:`put`.

    Args:
        torch: the library whose program runs.
        path: the file.
    """

    def __init__(self, torch: Any, path: str | os.PathLike[str]) -> None:
        self._torch = torch
        extension = getattr(torch, "_C", None)
        self._summary = getattr(extension, "_summary", None)
        self._program_line = getattr(extension, "_program_line", None)
        self._call_site = getattr(extension, "_call_site", None)
        self._peek = getattr(torch.autograd, "_get_sequence_nr", None)
        self._node = extension._current_autograd_node if extension is not None else None
        self._own = tuple(
            os.path.dirname(os.path.abspath(file)) for file in (torch.__file__, __file__)
        )
        self._sites: dict[Any, int] = {}
        self._made: dict[int, Any] = {}
        self._last = -1 if self._peek is None else self._peek() - 1
        # (Lines are short, and a program that crashes is one that people record.)
        self._file = open(path, "w", encoding="utf-8", buffering=1 << 16)  # noqa: SIM115
        self._line(
            {
                "format": FORMAT,
                "version": VERSION,
                "library": _library(torch),
                "threads": torch.get_num_threads(),
                "argv": sys.argv,
            }
        )

    def close(self) -> None:
        """Ends the file."""
        self._file.close()

    def put(self, op: str, results: Any) -> None:
        """Writes the results of an op."""
        node = self._node() if self._node is not None else None
        site = self._site_of(node) if node is not None else self._here()
        is_plain = op.partition(".")[2].partition(".")[0] in _SHAPES_ONLY
        row: dict[str, Any] = {"op": op, "out": [self._described(t, is_plain) for t in results]}
        if node is not None:
            row["node"] = _short(node.name())
        number = self._number(site)
        if number is not None:
            row["site"] = number
        self._line(row)

    def _line(self, row: dict[str, Any]) -> None:
        self._file.write(json.dumps(row, separators=(",", ":")) + "\n")

    def _described(self, tensor: Any, is_plain: bool) -> dict[str, Any]:
        dtype = str(tensor.dtype).removeprefix("torch.")
        row: dict[str, Any] = {"shape": list(tensor.shape), "dtype": dtype}
        if is_plain:
            return row
        if tensor.device.type == "meta" or tensor.layout is not self._torch.strided:
            row["layout"] = f"{tensor.device.type} {tensor.layout}"
            return row
        try:
            found = self._numbers(tensor)
        except (RuntimeError, TypeError):
            # (Batched tensors, and those of classes that answer ops themselves, show no elements.)
            row["layout"] = type(tensor).__name__
            return row
        row["digest"] = f"{found[0]:016x}"
        if found[1]:
            row["nonfinite"] = found[1]
        if not math.isnan(found[2]):
            row["min"], row["max"], row["mean"] = found[2:]
        return row

    def _numbers(self, tensor: Any) -> tuple[int, int, float, float, float]:
        if self._summary is not None:
            found: tuple[int, int, float, float, float] = self._summary(tensor)
            return found
        return summary(self._torch, tensor)

    def _number(self, site: Any) -> int | None:
        """The number of a line, which is listed the first time that it is needed."""
        if site is None:
            return None
        known = self._sites.get(site)
        if known is None:
            known = self._sites[site] = len(self._sites)
            self._line({"line": list(site)})
        return known

    def _here(self) -> Any:
        """Where the program is; which line the node that was just made is from is kept."""
        if self._program_line is not None:
            return self._program_line()
        site = self._walk()
        if self._peek is not None:
            last = self._peek() - 1
            for number in range(self._last + 1, last + 1):
                self._made[number] = site
            self._last = last
        return site

    def _site_of(self, node: Any) -> Any:
        if self._call_site is not None:
            return self._call_site(node)
        return self._made.get(node._sequence_nr())

    def _walk(self) -> Any:
        """The innermost line that is neither the library's nor of this file."""
        frame: Any = sys._getframe()
        while frame is not None:
            code = frame.f_code
            name = code.co_filename
            if name != __file__ and not name.startswith(self._own[0]) and name[:1] != "<":
                import linecache

                function = getattr(code, "co_qualname", code.co_name)
                text = linecache.getline(name, frame.f_lineno).strip()
                return (name, frame.f_lineno, function, text or None)
            frame = frame.f_back
        return None


def _short(name: str) -> str:
    return name.rpartition("::")[2]


def _library(torch: Any) -> str:
    own = getattr(getattr(torch, "version", None), "pullback", None)
    return f"torch {torch.__version__}" if own is None else f"pullback {own}"


def _written(torch: Any, func: Any, args: Any, kwargs: dict[str, Any], result: Any) -> list[Any]:
    """The tensors that an op returned; if it returned none, those that it wrote to."""
    found: list[Any] = []
    _collect(torch, result, found)
    if not found:
        for at, (name, is_written) in enumerate(_arguments(func)):
            if is_written:
                _collect(torch, args[at] if at < len(args) else kwargs.get(name), found)
    return found


def _arguments(func: Any, *, only_positional: bool = False) -> list[tuple[str, bool]]:
    """The names of an op's arguments, and whether it writes to them."""
    chosen = [a for a in func._schema.arguments if not (only_positional and a.kwarg_only)]
    return [(a.name, a.alias_info is not None and a.alias_info.is_write) for a in chosen]


def _collect(torch: Any, value: Any, found: list[Any]) -> None:
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            _collect(torch, item, found)


def _mode(torch: Any, writer: Writer) -> Any:
    """The mode that hands every op's result to the writer."""
    base = importlib.import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode

    class Recording(base):  # type: ignore[misc, valid-type]
        """Sees the ops of the thread, below autograd, those of backward too."""

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            result = func(*args, **kwargs)
            writer.put(str(func), _written(torch, func, args, kwargs, result))
            return result

    return Recording()


@contextmanager
def record(path: str | os.PathLike[str], torch: Any = None) -> Iterator[Writer]:
    """Records the ops that run on this thread until the context ends.

    Args:
        path: the file, which is written anew.
        torch: the library; PyTorch if none is given.
    """
    torch = importlib.import_module("torch") if torch is None else torch
    writer = Writer(torch, path)
    try:
        with _mode(torch, writer):
            yield writer
    finally:
        writer.close()
