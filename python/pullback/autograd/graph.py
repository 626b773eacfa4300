"""The graph as objects: nodes, gradient edges, hooks over several tensors."""

from __future__ import annotations

import abc
import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C

if TYPE_CHECKING:
    from .._tensor import Tensor
    from ..nn.modules.hook import RemovableHandle

__all__ = [
    "GradientEdge",
    "Node",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
]


class Node(abc.ABC):  # noqa: B024 (its methods are those of the native nodes)
    """A node of the backward graph; ``isinstance`` holds for every ``grad_fn``."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> Any:
        if cls is not Node:
            return NotImplemented
        return issubclass(subclass, (_C._NodeBase, _C._FunctionBase))


class GradientEdge(NamedTuple):
    """Where a gradient enters the graph: an input of a node."""

    node: Any
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge at which a gradient of ``tensor`` enters the graph.

    Raises:
        RuntimeError: if the tensor does not require grad.
    """
    return GradientEdge(*_C._gradient_edge(tensor))


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Tells autograd that the memory of ``tensor`` (one or several) was written to elsewhere."""
    from .._tensor import Tensor

    _C._increment_version([tensor] if isinstance(tensor, Tensor) else list(tensor))


def _add_hook(hooks: Any, hook: Callable[..., Any]) -> RemovableHandle:
    from ..nn.modules.hook import RemovableHandle

    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _register_hook(self: Any, hook: Callable[..., Any]) -> RemovableHandle:
    """Lets ``hook(grad_inputs, grad_outputs)`` see, and replace, what the node gives."""
    return _add_hook(self._post_hooks(), hook)


def _register_prehook(self: Any, hook: Callable[..., Any]) -> RemovableHandle:
    """Lets ``hook(grad_outputs)`` see, and replace, what the node is given."""
    return _add_hook(self._pre_hooks(), hook)


_C._NodeBase.register_hook = _register_hook
_C._NodeBase.register_prehook = _register_prehook


class _Handles:
    """One handle for the hooks on several tensors."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Takes all the hooks away."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[..., None],
    *,
    mode: str = "all",
) -> _Handles:
    """Calls ``fn`` when the gradients of several tensors have been computed.

    Args:
        tensors: the tensors; those that do not require grad count as having none.
        fn: takes the list of gradients (``all``), or the first gradient (``any``).
        mode: ``all`` or ``any``.

    Raises:
        ValueError: for any other mode.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    if mode == "any":
        seen: dict[int, bool] = {}

        @functools.wraps(fn)
        def first(grad: Tensor) -> None:
            task = _C._current_graph_task_id()
            with lock:
                done, seen[task] = seen.get(task, False), True
            if not done:
                fn(grad)

        return _Handles([t.register_hook(first) for t in tensors if t.requires_grad])
    buffers: dict[int, list[Tensor | None]] = {}
    counts: dict[int, int] = {}
    wanted = [i for i, t in enumerate(tensors) if t.requires_grad]

    def arrived(index: int, grad: Tensor) -> None:
        task = _C._current_graph_task_id()
        with lock:
            buffer = buffers.setdefault(task, [None] * len(tensors))
            if task not in counts:
                counts[task] = 0
                _C._queue_callback(functools.partial(flush, task))
            counts[task] += 1
            buffer[index] = grad
            complete = counts[task] == len(wanted)
        if complete:
            flush(task)

    def flush(task: int) -> None:
        with lock:
            buffer = buffers.pop(task, None)
            counts.pop(task, None) if buffer is None else counts.__setitem__(task, -len(tensors))
        if buffer is not None:
            fn(buffer)
        else:
            with lock:
                counts.pop(task, None)

    return _Handles([tensors[i].register_hook(functools.partial(arrived, i)) for i in wanted])
