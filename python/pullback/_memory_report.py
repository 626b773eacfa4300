"""What a graph keeps for its backward pass, by op, by line of the program and by module.

`report` walks the nodes behind tensors in the order in which they ran and asks each for what it
saved; a storage counts once, for the first node that saved it. It is known by its record, not by
its address, so that tensors of the meta device, which have none, are told apart. Modules are known
exactly when `report` runs the program itself, with hooks on all modules that note between which
numbers of nodes a call lay; of a graph that is there already only what uses a parameter can be
placed. What hooks on saved tensors packed is not unpacked, so that nothing is recomputed or
loaded. Start with `report`.
"""

from __future__ import annotations

import bisect
import html
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from . import _C
from ._blame import _size
from ._holders import held_tensors, parameter_names
from ._tensor import Tensor
from .autograd.grad_mode import enable_grad

_KINDS = ("activation", "parameter", "input")
_UNPLACED = "(no module)"
_SHOWN = 12


class Kept(NamedTuple):
    """A storage that the graph keeps for backward.

    Args:
        bytes: its size.
        kind: ``"activation"``, ``"parameter"`` (memory of a leaf that requires grad) or ``"input"``
            (a tensor without history that the program holds, too); the last two are there anyway.
        op: the op whose node saved it first, without overload.
        name: under which name that node saved it.
        shape: of the tensor that was saved.
        dtype: of the tensor that was saved, without module.
        file: of the line that called the op; None if that is not known.
        line: number of the line.
        source: the line's text.
        module: path of the module in whose call that was.
        nodes: how many nodes saved it.
    """

    bytes: int
    kind: str
    op: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    file: str | None
    line: int | None
    source: str | None
    module: str
    nodes: int

    @property
    def place(self) -> str:
        """File and line, as ``file:line``."""
        return "(line not known)" if self.file is None else f"{self.file}:{self.line}"


class MemoryReport:
    """The storages that a graph keeps for its backward pass; printed, a table.

    Args:
        kept: the storages, largest first.
        packed: how many nodes hold something that hooks on saved tensors packed (a checkpoint, a
            copy elsewhere) or that a backward has freed: not known and not counted. Where there are
            such nodes, those of custom functions are among them.
    """

    def __init__(self, kept: Sequence[Kept], packed: int) -> None:
        self.kept = sorted(kept, key=lambda item: -item.bytes)
        self.packed = packed

    def total(self, kind: str | None = "activation") -> int:
        """The bytes of one kind; of all kinds for None."""
        return sum(item.bytes for item in self.kept if kind in (None, item.kind))

    def by_op(self) -> dict[str, int]:
        """Bytes of activations by op, largest first."""
        return self._by(lambda item: item.op)

    def by_line(self) -> dict[str, int]:
        """Bytes of activations by ``file:line``, largest first."""
        return self._by(lambda item: item.place)

    def by_module(self) -> dict[str, int]:
        """Bytes of activations by the path of the innermost module, largest first."""
        return self._by(lambda item: item.module)

    def _by(self, key: Callable[[Kept], str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for item in self.kept:
            if item.kind == "activation":
                found[key(item)] = found.get(key(item), 0) + item.bytes
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def to_dict(self) -> dict[str, Any]:
        """The whole report as numbers, texts, lists and dictionaries (for JSON)."""
        return {
            "bytes": {kind: self.total(kind) for kind in _KINDS},
            "by_op": self.by_op(),
            "by_line": self.by_line(),
            "by_module": self.by_module(),
            "packed": self.packed,
            "kept": [item._asdict() for item in self.kept],
        }

    def to_html(self) -> str:
        """A page with a flame graph of the activations, by module, line and op; loads nothing."""
        return _page(self)

    def __str__(self) -> str:
        head = f"Kept for backward: {_size(self.total())} of activations"
        others = [(self.total(kind), f"{kind}s") for kind in _KINDS[1:]]
        beside = [f"{_size(size)} of {name}" for size, name in others if size]
        if beside:
            head += f" (and {', '.join(beside)}, which are there anyway)"
        lines = [head]
        if self.packed:
            lines.append(
                f"Not counted: {self.packed} nodes whose values hooks packed, or a backward freed"
            )
        sources = {item.place: (item.source or "").strip() for item in self.kept}
        for title, table in (
            ("by op", self.by_op()),
            ("by line", self.by_line()),
            ("by module", self.by_module()),
        ):
            lines += ["", title] if table else []
            for key, size in [*table.items()][:_SHOWN]:
                lines.append(f"  {_size(size):>9}  {key}  {sources.get(key, '')}".rstrip())
            rest = [*table.values()][_SHOWN:]
            if rest:
                lines.append(f"  {_size(sum(rest)):>9}  in {len(rest)} more")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _flames(self)


def report(of: Any) -> MemoryReport:
    """See :func:`pullback.memory_report`."""
    if isinstance(of, (Tensor, tuple, list)):
        return _report(_tensors(of), None)
    if not callable(of):
        raise TypeError(
            "memory_report(): a tensor, several, or a function that computes them is needed, not "
            f"{type(of).__name__}"
        )
    calls = _Calls()
    try:
        result = of()
    finally:
        calls.close()
    return _report(_tensors(result), calls)


def _tensors(value: Any) -> list[Tensor]:
    found = [value] if isinstance(value, Tensor) else value
    if not isinstance(found, (tuple, list)) or not all(isinstance(v, Tensor) for v in found):
        raise TypeError(
            f"memory_report(): a tensor or several are needed, not {type(value).__name__}"
        )
    return list(found)


# ---- the graph ----


class _Entry:
    """A storage while nodes are searched: the first tensor that showed it, and its owner."""

    def __init__(self, node: Any, name: str, tensor: Tensor, size: int) -> None:
        self.node, self.name, self.tensor, self.size = node, name, tensor, size
        self.nodes = {node}


def _report(tensors: list[Tensor], calls: _Calls | None) -> MemoryReport:
    held = {key for tensor in held_tensors() for key, _ in _storages(tensor)}
    nodes = _in_order(tensors)
    leaves = [node.variable for node in nodes if hasattr(node, "variable")]
    names = parameter_names()
    parameters = {key for leaf in leaves for key, _ in _storages(leaf)}
    entries: dict[int, _Entry] = {}
    natives = [node for node in nodes if not _is_custom(node)]
    packed = sum(_is_packed(node) for node in natives)
    for node in nodes:
        if _is_custom(node) and packed:
            # (Reading what it saved might call hooks.)
            packed += 1
            continue
        for name, tensor in _saved(node):
            for key, size in _storages(tensor):
                entry = entries.setdefault(key, _Entry(node, name, tensor, size))
                entry.nodes.add(node)
    kept = []
    for key, entry in entries.items():
        kind = "activation"
        if key in parameters:
            kind = "parameter"
        elif entry.tensor.is_leaf and key in held:
            kind = "input"
        module = _module_of(entry.node, names) if calls is None else calls.module(entry.node)
        kept.append(_kept(entry, kind, module))
    return MemoryReport([item for item in kept if item.bytes], packed)


def _kept(entry: _Entry, kind: str, module: str) -> Kept:
    node, tensor = entry.node, entry.tensor
    op = _C._node_op(node)
    file, line, _, source = _C._call_site(node) or (None, None, None, None)
    name = node.name().rpartition("::")[2] if op is None else op[0].partition(".")[0]
    dtype = str(tensor.dtype).rpartition(".")[2]
    shape = tuple(int(size) for size in tensor.shape)
    count = len(entry.nodes)
    return Kept(entry.size, kind, name, entry.name, shape, dtype, file, line, source, module, count)


def _in_order(tensors: list[Tensor]) -> list[Any]:
    """All nodes behind the tensors, in the order in which they ran; leaves first."""
    waiting = [t.grad_fn for t in tensors if t.grad_fn is not None]
    seen: dict[Any, None] = {}
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen[node] = None
            waiting += [n for n, _ in node.next_functions if n is not None]
    return sorted(seen, key=lambda n: -1 if hasattr(n, "variable") else n._sequence_nr())


def _is_packed(node: Any) -> bool:
    """Whether a node of an op saved tensors that hooks packed, or that a backward has freed."""
    return not _C._saved_memory(node) and any(n.startswith("_raw_saved_") for n in dir(node))


def _saved(node: Any) -> Iterator[tuple[str, Tensor]]:
    """The tensors that a node saved, with their names; none where hooks packed them."""
    if _is_custom(node):
        for at, tensor in enumerate(node.saved_tensors):
            if isinstance(tensor, Tensor):
                yield f"saved_tensors[{at}]", tensor
        return
    if hasattr(node, "variable") or not _C._saved_memory(node):
        return
    for name in dir(node):
        if not name.startswith("_saved_"):
            continue
        value = getattr(node, name)
        short = name.removeprefix("_saved_")
        if isinstance(value, Tensor):
            yield short, value
        elif isinstance(value, (tuple, list)):
            parts = ((f"{short}[{at}]", item) for at, item in enumerate(value))
            yield from (part for part in parts if isinstance(part[1], Tensor))


def _is_custom(node: Any) -> bool:
    """Whether it is the node of a function that is written in Python."""
    return not isinstance(node, _C._NodeBase)


def _storages(tensor: Tensor) -> list[tuple[int, int]]:
    """The record and the bytes of each storage of a tensor; several for sparse ones."""
    try:
        storage = tensor.untyped_storage()
        return [(storage._cdata, storage.nbytes())]
    except (RuntimeError, NotImplementedError):
        pass
    parts = ("_indices", "_values", "crow_indices", "col_indices", "ccol_indices", "row_indices")
    found = []
    for part in parts:
        try:
            inner = getattr(tensor.detach(), part)()
        except (RuntimeError, NotImplementedError):
            continue
        found += _storages(inner)
    return found


# ---- modules ----


class _Calls:
    """Notes which module ran between which numbers of nodes, on the thread that made this."""

    def __init__(self) -> None:
        from .nn.modules.module import (
            register_module_forward_hook,
            register_module_forward_pre_hook,
        )

        self._thread = threading.get_ident()
        self._starts: list[int] = []
        self._labels: list[str] = []
        self._open: list[str] = []
        self._names: dict[int, str] = {}
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._exit, always_call=True),
        ]

    def _note(self) -> None:
        # (A node of our own says which number is next.)
        with _C.DisableTorchFunction(), enable_grad():
            leaf = _C._VariableFunctions.empty(0, device="cpu", requires_grad=True)
            self._starts.append(leaf.view_as(leaf).grad_fn._sequence_nr())
        self._labels.append(self._open[-1] if self._open else _UNPLACED)

    def _enter(self, module: Any, args: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        if not self._open:
            root = type(module).__name__
            parts = module.named_modules()
            self._names = {id(m): f"{root}.{name}" if name else root for name, m in parts}
        unknown = f"{self._open[-1] if self._open else ''} > {type(module).__name__}"
        self._open.append(self._names.get(id(module), unknown))
        self._note()

    def _exit(self, module: Any, args: Any, output: Any) -> None:
        if threading.get_ident() == self._thread and self._open:
            self._open.pop()
            self._note()

    def module(self, node: Any) -> str:
        """The innermost module in whose call a node was made."""
        at = bisect.bisect_left(self._starts, node._sequence_nr()) - 1
        return self._labels[at] if at >= 0 else _UNPLACED

    def close(self) -> None:
        """Removes the hooks."""
        for handle in self._handles:
            handle.remove()


def _module_of(node: Any, names: dict[int, str]) -> str:
    """The module whose parameter a node uses, itself or through one view."""
    for producer, _ in node.next_functions:
        if producer is None:
            continue
        edges = producer.next_functions
        leaf = edges[0][0] if len(edges) == 1 and edges[0][0] is not None else producer
        variable = getattr(producer, "variable", getattr(leaf, "variable", None))
        name = names.get(id(variable), "")
        if name:
            return name.rpartition(".")[0] or name
    return _UNPLACED


# ---- the flame graph ----

_COLORS = ("#f59e0b", "#f97316", "#fb7185", "#fbbf24", "#fdba74")


class _Frame:
    """A bar: the bytes of everything below it, and the bars above by name."""

    def __init__(self) -> None:
        self.bytes = 0
        self.parts: dict[str, _Frame] = {}


def _tree(found: MemoryReport) -> _Frame:
    root = _Frame()
    for item in found.kept:
        if item.kind != "activation":
            continue
        source = (item.source or "").strip()
        steps = item.module.split(".") if item.module != _UNPLACED else [_UNPLACED]
        shape = f"{item.name} {item.shape} {item.dtype}"
        frame = root
        frame.bytes += item.bytes
        for step in (*steps, f"{item.place}  {source}".rstrip(), item.op, shape):
            frame = frame.parts.setdefault(step, _Frame())
            frame.bytes += item.bytes
    return root


def _bar(name: str, frame: _Frame, share: float, total: int) -> str:
    text = f"{name}: {_size(frame.bytes)}, {100 * frame.bytes / total:.1f} %"
    color = _COLORS[sum(name.encode()) % len(_COLORS)]
    style = (
        f"background:{color};color:#111;border-radius:2px;margin:1px;padding:1px 4px;"
        "overflow:hidden;white-space:nowrap;text-overflow:ellipsis"
    )
    shown = html.escape(text, quote=True)
    return (
        f'<div style="width:{100 * share:.3f}%;min-width:0">'
        f'<div style="{style}" title="{shown}">{shown}</div>{_row(frame, total)}</div>'
    )


def _row(frame: _Frame, total: int) -> str:
    if not frame.parts:
        return ""
    order = sorted(frame.parts.items(), key=lambda pair: -pair[1].bytes)
    # (Bars too thin to be seen are left out: the page stays small, however large the graph.)
    wide = [(name, part) for name, part in order if part.bytes * 1000 >= total]
    bars = (_bar(name, part, part.bytes / frame.bytes, total) for name, part in wide)
    return f'<div style="display:flex">{"".join(bars)}</div>'


def _flames(found: MemoryReport) -> str:
    root = _tree(found)
    style = "font:12px system-ui,sans-serif"
    if not root.bytes:
        return f'<div style="{style}">Nothing is kept for backward.</div>'
    return f'<div style="{style}">{_bar("kept for backward", root, 1, root.bytes)}</div>'


def _page(found: MemoryReport) -> str:
    table = html.escape(str(found))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<title>Kept for backward</title></head><body>"
        f"{_flames(found)}<pre>{table}</pre></body></html>\n"
    )
