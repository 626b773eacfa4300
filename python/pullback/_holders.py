"""What holds the memory of tensors, for the error that says that there is no more.

Nobody keeps a list of tensors: that would cost each of them something. So what can be reached from
Python is looked through when it is asked for: parameters, buffers and gradients of modules, what
nodes of graphs keep for backward (by op and line), the variables of running functions, and tensors
in containers. What only the library holds, or an object that the collector does not track, is not
seen, and neither is what hooks on saved tensors have packed. Memory counts once, for the first of
these that shows it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from . import _C
from ._tensor import Tensor


def variables(frame: FrameType) -> list[tuple[str, Any]]:
    """The variables of a function that runs, and what they hold.

    Before Python 3.13 a frame that is asked keeps what it answered, and with it all those objects,
    until the function ends. So that is emptied again, unless the program has it too (``locals()``).
    """
    names = frame.f_locals
    found = [*names.items()]
    is_function = bool(frame.f_code.co_flags & _OPTIMIZED)
    if sys.version_info < (3, 13) and is_function and sys.getrefcount(names) <= _REFERENCES:
        names.clear()
    return found


# `inspect.CO_OPTIMIZED`: the code is of a function, whose variables are in no dictionary.
_OPTIMIZED = 1
# To a dictionary that nobody has but its frame: from that, from a variable, and from the question.
_REFERENCES = 3


class Held(NamedTuple):
    """The holders of memory.

    Args:
        shown: bytes and what they are, the largest first.
        rest: bytes that tensors hold elsewhere.
        others: how many places of the rest were seen.
    """

    shown: list[tuple[int, str]]
    rest: int
    others: int


class _Ledger:
    """Bytes by what holds them; a storage counts for the first that shows it."""

    def __init__(self) -> None:
        self.bytes: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self._seen: set[int] = set()

    def put(self, what: str, tensor: Tensor) -> None:
        """Counts the memory of a tensor."""
        try:
            storage = tensor.untyped_storage()
            self.put_memory(what, storage._const_data_ptr(), storage.nbytes())
        except (RuntimeError, NotImplementedError):
            return  # (It has none of its own: sparse and batched tensors.)

    def put_memory(self, what: str, address: int, size: int) -> None:
        """Counts a block of memory."""
        if size and address and address not in self._seen:
            self._seen.add(address)
            self.bytes[what] = self.bytes.get(what, 0) + size
            self.counts[what] = self.counts.get(what, 0) + 1


def largest(count: int) -> Held:
    """The places that hold most.

    Args:
        count: how many of them.
    """
    from . import memory

    ledger = _Ledger()
    objects = gc.get_objects()
    for name, tensor in _of_modules(objects):
        ledger.put(name, tensor)
        if tensor.is_leaf and tensor.grad is not None:
            ledger.put(f"gradient of {name}", tensor.grad)
    tensors = list(_tensors(objects))
    for node in _nodes(tensor for _, tensor in tensors):
        what = None
        for address, size in _C._saved_memory(node):
            what = what or _kept(node)
            ledger.put_memory(what, address, size)
    for what, tensor in tensors:
        ledger.put(what, tensor)
    order = sorted(ledger.bytes.items(), key=lambda item: -item[1])
    shown = []
    for what, size in order[:count]:
        times = ledger.counts[what]
        shown.append((size, f"{what} ({times} tensors)" if times > 1 else what))
    rest = max(0, memory.live_bytes() - sum(size for size, _ in shown))
    return Held(shown, rest, max(0, len(order) - count))


def parameter_names() -> dict[int, str]:
    """The names of the parameters and buffers of all living modules, by identity."""
    names: dict[int, str] = {}
    for name, tensor in _of_modules(gc.get_objects()):
        names.setdefault(id(tensor), name)
    return names


def held_tensors() -> Iterator[Tensor]:
    """The tensors that Python's objects and the variables of running functions hold."""
    return (tensor for _, tensor in _tensors(gc.get_objects()))


def _of_modules(objects: list[Any]) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers, by their path from the outermost module that has them."""
    modules = [m for m in objects if isinstance(m, _C._ModuleBase) and "_modules" in vars(m)]
    parts = {id(part) for module in modules for part in vars(module)["_modules"].values()}
    # (Outermost ones first: the longest path says most.)
    for module in sorted(modules, key=lambda module: id(module) in parts):
        root = type(module).__name__
        for prefix, part in module.named_modules():
            for store in ("_parameters", "_buffers"):
                for name, tensor in vars(part).get(store, {}).items():
                    if isinstance(tensor, Tensor):
                        yield ".".join(x for x in (root, prefix, name) if x), tensor


def _tensors(objects: list[Any]) -> Iterator[tuple[str, Tensor]]:
    """The tensors that variables of running functions and containers hold, with a name for each."""
    for frame in sys._current_frames().values():
        current: FrameType | None = frame
        while current is not None:
            code = current.f_code
            if not code.co_filename.startswith(__file__.rpartition("_holders")[0]):
                where = f"in {code.co_name} ({code.co_filename}:{current.f_lineno})"
                if not code.co_flags & _OPTIMIZED:
                    where = f"of {code.co_filename}"
                for name, value in variables(current):
                    yield from _inside(f"variable {name} {where}", value)
            current = current.f_back
    for holder in objects:
        if isinstance(holder, Tensor):
            yield _shape(holder), holder
            continue
        if isinstance(holder, (dict, list, tuple, set)):
            for value in gc.get_referents(holder):
                if isinstance(value, Tensor):
                    yield _shape(value), value


def _inside(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name, value
        if value.is_leaf and value.grad is not None:
            yield f"gradient of {name}", value.grad
    elif type(value) in (list, tuple):
        yield from ((f"items of {name}", item) for item in value if isinstance(item, Tensor))
    elif type(value) is dict:
        yield from ((f"items of {name}", v) for v in value.values() if isinstance(v, Tensor))


def _shape(tensor: Tensor) -> str:
    return f"tensors of shape {tuple(tensor.shape)} in containers and attributes"


def _nodes(tensors: Iterator[Tensor]) -> Iterator[Any]:
    """All nodes that lead to the tensors."""
    waiting = [t.grad_fn for t in tensors if not t.is_leaf and t.grad_fn is not None]
    seen = set()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        waiting += [next_ for next_, _ in node.next_functions if next_ is not None]


def _kept(node: Any) -> str:
    name = node.name().rpartition("::")[2]
    site = _C._call_site(node)
    if site is None:
        return f"kept for backward by {name}"
    file, line, _, text = site
    return f"kept for backward by {name}, {file}:{line}" + (f"  {text.strip()}" if text else "")
