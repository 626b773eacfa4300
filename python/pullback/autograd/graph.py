"""The graph as objects: nodes, gradient edges, hooks over several tensors."""

from __future__ import annotations

import abc
import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C, _hooks
from .grad_mode import no_grad

if TYPE_CHECKING:
    from .._hooks import RemovableHandle
    from .._tensor import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "node_creation_hook",
    "queue_callback",
    "region_activation_memory_budget",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_override_stale_capture_stream",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


class Node(abc.ABC):  # noqa: B024 (its methods are those of the native nodes)
    """A node of the backward graph; ``isinstance`` holds for every ``grad_fn``."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> Any:
        if cls is not Node:
            return NotImplemented
        from .function import BackwardCFunction

        # (Others may be registered.)
        return issubclass(subclass, (_C._NodeBase, BackwardCFunction)) or NotImplemented


class GradientEdge(NamedTuple):
    """Where a gradient enters the graph: an input of a node."""

    node: Any
    output_nr: int
    #: The object that keeps the graph alive in PyTorch; here the node does that itself.
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge at which a gradient of ``tensor`` enters the graph.

    Raises:
        RuntimeError: if the tensor does not require grad.
    """
    return GradientEdge(*_C._gradient_edge(tensor))


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Tells autograd that the memory of ``tensor`` (one or several) was written to elsewhere.

    Raises:
        RuntimeError: for what is neither a tensor nor an iterable of tensors.
    """
    from .._tensor import Tensor

    if not isinstance(tensor, Iterable):
        raise RuntimeError(
            "increment_version expect a Iterable[Tensor] as input, "
            f"or a Tensor, not {type(tensor).__name__}"
        )
    _C._increment_version([tensor] if isinstance(tensor, Tensor) else list(tensor))


class saved_tensors_hooks:
    """Lets functions say what the graph keeps of the tensors that backward needs.

    While the context is entered, ``pack_hook`` is called once with each tensor that an op of this
    thread saves, and whatever it returns is kept instead. When backward (or ``grad_fn._saved_*``)
    wants the tensor, ``unpack_hook`` is called with that and must give a tensor of the same shape,
    dtype and values. Of nested contexts only the innermost applies.

    Args:
        pack_hook: takes a tensor, which it must not write to; gives anything.
        unpack_hook: takes what ``pack_hook`` gave; gives a tensor.

    Raises:
        TypeError: if one of them is no function.
        RuntimeError: on entering where such hooks are disabled.
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensors_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exception: object) -> None:
        _C._pop_saved_tensors_default_hooks()


class node_creation_hook:
    """Calls a function with each node that is made while the context is entered.

    The function sees a node once, when it is complete: with its ``next_functions``, what it saved,
    and the outputs of its op. It may add hooks to the node and put things into its ``metadata``,
    but must make no node of its own. The node of a leaf (``AccumulateGrad``) is seen when a graph
    first needs it, and again once all graphs with it are gone. Nodes that backward makes
    (``create_graph=True``, checkpoints) are seen, too. Other threads have hooks of their own.

    Of nested contexts all functions are called, the outermost first. An error of one of them is the
    error of the op that made the node.

    Args:
        hook: takes a node; gives ``None``.

    Raises:
        TypeError: on entering, if it is no function.

    Example::

        >>> from pullback.autograd.graph import node_creation_hook
        >>> x = pullback.ones(2, requires_grad=True)
        >>> with node_creation_hook(lambda node: print(node.name())):
        ...     y = x * 2
        torch::autograd::AccumulateGrad
        MulBackward0
    """

    def __init__(self, hook: Callable[[Any], None]) -> None:
        self.hook = hook

    def __enter__(self) -> None:
        _C._push_node_creation_hook(self.hook)

    def __exit__(self, *exception: object) -> None:
        _C._pop_node_creation_hook()


class save_on_cpu(saved_tensors_hooks):
    """Keeps what backward needs in main memory until it is wanted.

    Args:
        pin_memory: keep them where an accelerator can copy from and to while it computes.
        device_type: the accelerator whose memory is spared.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            if tensor.device.type == "cpu" or not pin_memory:
                return tensor.device, tensor.cpu()
            kept = _C._VariableFunctions.empty(
                tensor.size(), dtype=tensor.dtype, layout=tensor.layout, pin_memory=True
            )
            kept.copy_(tensor)
            return tensor.device, kept

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


class _Handle:
    """Stands in the graph for a tensor as it was at one version of its memory."""


class _KeptTensors:
    """Saved tensors, and clones of the tensors that were written to.

    A tensor is identified by its memory, itself, its offset and its version (``tid``); a write to
    memory changes the tensors that were saved of it at that version (``sid``).
    """

    def __init__(self) -> None:
        self.original: weakref.WeakKeyDictionary[_Handle, Tensor] = weakref.WeakKeyDictionary()
        self.cloned: weakref.WeakKeyDictionary[_Handle, Tensor] = weakref.WeakKeyDictionary()
        self.tid_to_weakhandle: weakref.WeakValueDictionary[tuple[int, ...], _Handle]
        self.tid_to_weakhandle = weakref.WeakValueDictionary()
        self.sid_to_tid: dict[tuple[int, int], set[tuple[int, ...]]] = {}

    @staticmethod
    def _sid(tensor: Tensor) -> tuple[int, int]:
        # Views of the same memory share it and its version.
        return tensor.untyped_storage().data_ptr(), tensor._version

    def keep(self, tensor: Tensor) -> _Handle:
        """The handle of a tensor: the same one as long as nothing was written to it."""
        sid = self._sid(tensor)
        tid = (sid[0], id(tensor), tensor.data_ptr(), sid[1])
        handle = self.tid_to_weakhandle.get(tid)
        if handle is None or self.original.get(handle) is not tensor:
            handle = _Handle()
            self.tid_to_weakhandle[tid] = handle
            self.original[handle] = tensor
            self.sid_to_tid.setdefault(sid, set()).add(tid)
        return handle

    def before_write(self, tensor: Tensor) -> None:
        """Clones the saved tensors of the memory that is about to change."""
        for tid in self.sid_to_tid.pop(self._sid(tensor), ()):
            handle = self.tid_to_weakhandle.get(tid)
            if handle is not None and handle not in self.cloned:
                original = self.original.pop(handle)
                with no_grad():
                    self.cloned[handle] = original.detach().clone()

    def clear(self) -> None:
        """Forgets all saved tensors."""
        self.original.clear()
        self.cloned.clear()
        self.tid_to_weakhandle.clear()
        self.sid_to_tid.clear()


_kept: list[_KeptTensors] = []


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_KeptTensors]:
    """Lets tensors that backward needs be written to: they are cloned just before.

    Backward then sees the values that were saved. It must run inside of the context.

    Raises:
        RuntimeError: if such a context is entered inside of another one.
        AssertionError: by a backward after the context, or in another one.
    """
    if _kept:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    state = _KeptTensors()

    def unpack(handle: _Handle) -> Tensor:
        known = handle in state.original or handle in state.cloned
        if not (_kept and _kept[-1] is state and known):
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
                "in which the graph was originally recorded."
            )
        kept = state.cloned.get(handle)
        return state.original[handle] if kept is None else kept

    with saved_tensors_hooks(state.keep, unpack):
        _kept.append(state)
        _C._push_write_observer(state.before_write)
        try:
            yield state
        finally:
            _C._pop_write_observer()
            _kept.pop()
            state.clear()


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Refuses hooks on saved tensors in this thread, with a message.

    Args:
        error_message: says why, to whoever enters :class:`saved_tensors_hooks` meanwhile.

    Raises:
        RuntimeError: with that message, if such hooks are in use already.
    """
    previous = _C._saved_tensors_hooks_get_disabled_error_message()
    _C._saved_tensors_hooks_disable(error_message)
    try:
        yield
    finally:
        if previous is None:
            _C._saved_tensors_hooks_enable()
        else:
            _C._saved_tensors_hooks_disable(previous)


def _register_hook(self: Any, hook: Callable[..., Any]) -> RemovableHandle:
    """Lets ``hook(grad_inputs, grad_outputs)`` see, and replace, the node's results."""
    return _hooks.add(self._post_hooks(), hook)


def _register_prehook(self: Any, hook: Callable[..., Any]) -> RemovableHandle:
    """Lets ``hook(grad_outputs)`` see, and replace, the gradients that the node is given."""
    return _hooks.add(self._pre_hooks(), hook)


def _repr_html(self: Any) -> str:
    """The HTML of a node for notebooks: the graph behind it."""
    from .._html import node_html

    return node_html(self)


_C._NodeBase.register_hook = _register_hook
_C._NodeBase._repr_html_ = _repr_html
_C._NodeBase.register_prehook = _register_prehook


class _Handles:
    """One handle for the hooks on several tensors."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Removes all the hooks."""
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
        seen: set[int] = set()

        @functools.wraps(fn)
        def first(grad: Tensor) -> None:
            task = _C._current_graph_task_id()
            with lock:
                is_first = task not in seen
                seen.add(task)
            if is_first:
                _C._at_end_of_backward(lambda: seen.discard(task))
                fn(grad)

        return _Handles([t.register_hook(first) for t in tensors if t.requires_grad])
    found: dict[int, list[Tensor | None]] = {}
    missing: dict[int, int] = {}
    wanted = [i for i, t in enumerate(tensors) if t.requires_grad]
    nodes = [get_gradient_edge(tensors[i]).node for i in wanted]

    def arrived(index: int, grad: Tensor) -> None:
        task = _C._current_graph_task_id()
        with lock:
            if task not in missing:
                missing[task] = sum(_C._engine_runs(node) for node in nodes)
                found[task] = [None] * len(tensors)
                # Runs that fail do not get to all of them.
                _C._at_end_of_backward(lambda: (missing.pop(task, None), found.pop(task, None)))
            found[task][index] = grad
            missing[task] -= 1
            if missing[task] > 0:
                return
            grads = found.pop(task)
            del missing[task]
        fn(grads)

    return _Handles([tensors[i].register_hook(functools.partial(arrived, i)) for i in wanted])


def queue_callback(callback: Callable[[], None]) -> None:
    """Has something called at the end of the backward pass that this thread runs.

    Callbacks are called in the order in which they were given; here, other than in PyTorch, also at
    the end of a pass that fails.

    Args:
        callback: takes nothing.

    Raises:
        RuntimeError: outside of backward passes.
    """
    if _C._current_graph_task_id() < 0:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    _C._at_end_of_backward(callback)


def region_activation_memory_budget(budget: float) -> Any:
    """Would say how much a compiler may keep for the backward pass, if there was one.

    Args:
        budget: from 0 to 1.

    Raises:
        ValueError: for other numbers.
        RuntimeError: for these: nothing is compiled, see :mod:`pullback.utils.checkpoint`.
    """
    name = "torch.autograd.graph.region_activation_memory_budget"
    if not 0 <= budget <= 1:
        raise ValueError(f"{name}: must be in [0, 1], got {budget}")
    raise RuntimeError(
        f"{name} can only be used inside a torch.compile region; it has no effect in eager mode. "
        "Use torch.utils.checkpoint."
    )


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Whether to warn where a gradient arrives on another stream: there is one, this cannot be."""


def set_override_stale_capture_stream(enabled: bool) -> None:
    """What to do with streams while a graph of CUDA is captured: none is."""
