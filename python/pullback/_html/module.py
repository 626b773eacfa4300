"""A module for notebooks: a tree that folds, with parameters, shapes and memory.

A parameter that several modules share counts once in what is above them all, in each line by the
object it is. The tree is bounded: after many modules the rest is counted only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import _C
from .page import bytes_text, count_text, dtype_text, escape, frame, muted

if TYPE_CHECKING:
    from .._tensor import Tensor
    from ..nn import Module

__all__ = ["module_html"]

MOST_MODULES = 400
MOST_DEPTH = 60
# Levels that are open at first.
OPEN = 2

_LINE = "margin-left:1.2em"


def module_html(module: Module) -> str:
    """The piece of HTML for a module."""
    with _C.DisableTorchFunction():
        return frame(_Tree(module).drawn())


class _Tree:
    """Draws a module with those within; keeps how many lines are left."""

    def __init__(self, root: Module) -> None:
        self.root = root
        self.left = MOST_MODULES

    def drawn(self) -> str:
        """The whole tree."""
        return self._module("", self.root, 0, frozenset())

    def _module(self, name: str, module: Module, depth: int, above: frozenset[int]) -> str:
        label = f"({escape(name)}) " if name else ""
        if id(module) in above:
            return _line(f"{label}{escape(module._get_name())} {muted('(above)')}")
        self.left -= 1
        extra = escape(module.extra_repr().partition("\n")[0])
        if len(extra) > 160:
            extra = escape(module.extra_repr().partition("\n")[0][:120]) + "..."
        title = f"{label}<b>{escape(module._get_name())}</b>{f'({extra})' if extra else ''}"
        size = _size(module)
        title += f" {muted(size)}" if size else ""
        if depth == 0:
            title += muted(f" &middot; {'training' if module.training else 'eval'} mode")
        body = [
            _tensor(key, value, kind)
            for kind, held in (("parameter", module._parameters), ("buffer", module._buffers))
            for key, value in held.items()
            if value is not None
        ]
        body += self._children(module, depth, above | {id(module)})
        if not body:
            return _line(title)
        is_open = depth < OPEN and bool(module._modules)
        return (
            f'<details style="{_LINE if depth else ""}"{" open" if is_open else ""}>'
            f"<summary>{title}</summary>{''.join(body)}</details>"
        )

    def _children(self, module: Module, depth: int, above: frozenset[int]) -> Iterator[str]:
        children = list(module._modules.items())
        for at, (key, child) in enumerate(children):
            if self.left <= 0 or depth >= MOST_DEPTH:
                yield _line(muted(f"and {count_text(len(children) - at, 'more module')}"))
                return
            if child is None:
                yield _line(f"({escape(key)}) {muted('None')}")
            else:
                yield self._module(key, child, depth + 1, above)


def _line(text: str) -> str:
    return f'<div style="{_LINE}">{text}</div>'


def _is_lazy(tensor: Any) -> bool:
    """Whether its shape is not known yet."""
    from ..nn.parameter import is_lazy

    return is_lazy(tensor)


def _tensor(name: str, tensor: Tensor, kind: str) -> str:
    """A line for a parameter or a buffer."""
    if _is_lazy(tensor):
        return _line(f"{escape(name)} {muted(f'{kind}, not initialized')}")
    words = [f"{escape(tuple(tensor.shape))} {dtype_text(tensor.dtype)}"]
    words.append(bytes_text(tensor.numel() * tensor.element_size()))
    if tensor.device.type != "cpu":
        words.append(escape(tensor.device))
    if kind == "buffer":
        words.append("buffer")
    elif not tensor.requires_grad:
        words.append("frozen")
    return _line(f"{escape(name)} {muted(' &middot; '.join(words))}")


def _size(module: Module) -> str:
    """The number of parameters, and the memory of these and of the buffers; empty if none."""
    parameters = list(module.parameters())
    known = [parameter for parameter in parameters if not _is_lazy(parameter)]
    buffers = [buffer for buffer in module.buffers() if not _is_lazy(buffer)]
    count = sum(parameter.numel() for parameter in known)
    text = count_text(count, "parameter")
    trained = sum(parameter.numel() for parameter in known if parameter.requires_grad)
    if trained != count:
        text += f" ({trained:,} trained)"
    if len(known) < len(parameters):
        text += f", {len(parameters) - len(known)} not initialized"
    size = sum(tensor.numel() * tensor.element_size() for tensor in known + buffers)
    return f"{text}, {bytes_text(size)}" if parameters or buffers else ""
