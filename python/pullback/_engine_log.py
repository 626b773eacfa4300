"""The engine's debug log: each node that a backward pass runs, with the gradients it is given.

On where the logger ``torch.autograd.graph`` shows DEBUG::

    logging.basicConfig()
    logging.getLogger("torch.autograd.graph").setLevel(logging.DEBUG)

A line is ``Executing: <MulBackward0 object at 0x...> with grad_outputs: [f32[3, 2]]``.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from . import _C

_NAME = "torch.autograd.graph"
_DEBUG = 10
_SHORT = {
    "float": "f",
    "complex": "c",
    "bfloat": "bf",
    "uint": "u",
    "int": "i",
}
_log: Any = None


def is_wanted() -> bool:
    """Whether there is a listener; a program without ``import logging`` has none."""
    global _log
    if _log is None:
        logging = sys.modules.get("logging")
        if logging is None:
            return False
        _log = logging.getLogger(_NAME)
    wanted: bool = _log.isEnabledFor(_DEBUG)
    return wanted


def _shown(value: Any) -> str:
    if value is None:
        return "None"
    name = str(value.dtype).rpartition(".")[2]
    kind = name.rstrip("0123456789")
    short = "b8" if name == "bool" else _SHORT.get(kind, kind) + name[len(kind) :]
    return f"{short}[{', '.join(str(int(size)) for size in value.shape)}]"


def _is_one(roots: Any) -> bool:
    """Whether the argument is a single tensor or gradient edge."""
    from .autograd.graph import GradientEdge

    return isinstance(roots, (_C.TensorBase, GradientEdge))


@contextlib.contextmanager
def logged(roots: Any) -> Iterator[None]:
    """Lets the nodes behind tensors (or gradient edges) say when they run.

    Args:
        roots: one, or several.
    """
    given = [roots] if _is_one(roots) else roots
    waiting = [r.grad_fn if isinstance(r, _C.TensorBase) else r.node for r in given]
    handles: dict[Any, Any] = {}
    while waiting:
        node = waiting.pop()
        if node is not None and node not in handles:
            handles[node] = node.register_prehook(_told(node))
            waiting += [producer for producer, _ in node.next_functions]
    try:
        yield
    finally:
        for handle in handles.values():
            handle.remove()


def run(roots: Any, *rest: Any) -> Any:
    """Runs a backward pass of which every node says when it runs."""
    # (Iterators are stored, because they can be consumed only once.)
    roots = roots if _is_one(roots) else list(roots)
    with logged(roots):
        return _C._engine_run_backward(roots, *rest)


def _told(node: Any) -> Any:
    # (Nodes are known by what they print: a hook that held its node would be a cycle.)
    text = repr(node)

    def hook(grads: Any) -> None:
        shown = ",".join(map(_shown, grads))
        _log.debug("Executing: %s with grad_outputs: [%s]", text, shown)

    return hook
