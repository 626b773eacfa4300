"""Checkpointing: activations are computed again in backward instead of being kept.

A checkpointed region keeps its inputs alone. There are two ways. The default of
``use_reentrant=False`` hooks on saved tensors
(:class:`pullback.autograd.graph.saved_tensors_hooks`): what the region's ops want to save becomes a
placeholder, and the first placeholder that backward asks for runs the region again, which fills
them all. The older way is a custom function whose backward runs the region and a backward inside of
it.

T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016.
"""

from __future__ import annotations

import contextlib
import uuid
import warnings
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .. import _C
from ..autograd import Function, backward
from ..autograd.grad_mode import enable_grad, no_grad
from ..autograd.graph import saved_tensors_hooks
from ..random import fork_rng, get_rng_state, set_rng_state

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


class CheckpointError(RuntimeError):
    """A region that was run again did not do what it did at first."""


class _Stop(Exception):
    """Ends a recomputation once all that it is for is there."""


_early_stop = True
_debug: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Says whether recomputation stops as soon as everything that was saved is there again.

    Applies to the regions whose forward runs inside of the context (not to reentrant ones).

    Args:
        enable: True, as outside of any such context, or False to always run regions to their end.
    """
    global _early_stop
    previous, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = previous


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Overrides the ``debug`` argument of :func:`checkpoint` here; None leaves it alone."""
    global _debug
    previous, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = previous


def noop_context_fn() -> tuple[Any, Any]:
    """Contexts that do nothing, for the forward and for the recomputation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def _is_tensor(value: object) -> bool:
    return isinstance(value, _C.TensorBase)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs, tensors among them detached and with the same ``requires_grad``.

    Raises:
        RuntimeError: unless ``inputs`` is a tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: ",
            type(inputs).__name__,
        )
    detached = []
    for value in inputs:
        if _is_tensor(value):
            required = value.requires_grad
            value = value.detach()
            value.requires_grad = required
        detached.append(value)
    return tuple(detached)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if no tensor among the inputs requires grad."""
    if not any(value.requires_grad for value in inputs if _is_tensor(value)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


def get_device_states(*args: Any) -> tuple[list[Any], list[Tensor]]:
    """The devices with random states of their own that tensors are on, and these states."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Puts back what :func:`get_device_states` gave."""


class CheckpointFunction(Function):
    """The reentrant way: backward runs the region again and another backward in it."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        """Runs the region without recording and keeps its inputs."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.rng_state = get_rng_state() if preserve_rng_state else None
        ctx.inputs = [None if _is_tensor(value) else value for value in args]
        ctx.tensor_places = [place for place, value in enumerate(args) if _is_tensor(value)]
        ctx.save_for_backward(*(args[place] for place in ctx.tensor_places))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Runs the region again, and backward through it."""
        if not _C._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        inputs = list(ctx.inputs)
        for place, tensor in zip(ctx.tensor_places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor
        detached = detach_variable(tuple(inputs))
        with _random_state(ctx.rng_state), enable_grad():
            outputs = ctx.run_function(*detached)
        if _is_tensor(outputs):
            outputs = (outputs,)
        wanted = [
            (output, grad)
            for output, grad in zip(outputs, grads, strict=False)
            if _is_tensor(output) and output.requires_grad
        ]
        if not wanted:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([output for output, _ in wanted], [grad for _, grad in wanted])
        return (None, None, *(v.grad if _is_tensor(v) else None for v in detached))


@contextlib.contextmanager
def _random_state(state: Tensor | None) -> Iterator[None]:
    """Random numbers as from ``state`` on, for the duration; None changes nothing."""
    if state is None:
        yield
        return
    with fork_rng(devices=[]):
        set_rng_state(state)
        yield


class _Handle:
    """Names a value that was computed again."""


class _Holder:
    """What the graph keeps instead of a tensor: for each run of backward, the value's name."""

    def __init__(self) -> None:
        self.handles: dict[int, _Handle | None] = {}


class _KeepInputs(Function):
    """Saves a region's inputs where hooks of an outer region see them."""

    @staticmethod
    def forward(*tensors: Any) -> Tensor:
        """Gives an empty tensor."""
        return _C._VariableFunctions.empty((0,))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keeps tensors as saved tensors and the rest as it is."""
        ctx.places = [place for place, value in enumerate(inputs) if _is_tensor(value)]
        ctx.others = [None if _is_tensor(value) else value for value in inputs]
        ctx.save_for_backward(*(inputs[place] for place in ctx.places))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Never runs: nothing is computed from the output."""
        raise AssertionError("nothing leads to the keeper of a region's inputs")


def _inputs_of(keeper: Any) -> list[Any]:
    values = list(keeper.others)
    for place, tensor in zip(keeper.places, keeper.saved_tensors, strict=True):
        # The dummy that makes the keeper require grad was not an argument of the region.
        values[place] = tensor
    return values[1:]


def _metadata(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


_DETERMINISM: dict[str, Callable[[Tensor], Any]] = {
    "default": _metadata,
    "none": lambda tensor: None,
}


class _Region:
    """One checkpointed call: what it saved, and what each backward computed again."""

    def __init__(self, run: Callable[..., Any], metadata: Callable[[Tensor], Any]) -> None:
        self.run = run
        self.metadata = metadata
        self.kept: Any = None
        self.early_stop = _early_stop
        self.holders: list[weakref.ref[_Holder]] = []
        self.metadatas: list[Any] = []
        self.is_complete = False
        self.counts: defaultdict[int, int] = defaultdict(int)
        self.values: defaultdict[int, weakref.WeakKeyDictionary[_Handle, Tensor]] = defaultdict(
            weakref.WeakKeyDictionary
        )
        self.done: set[int] = set()
        self.is_short = False

    def hooks(self) -> saved_tensors_hooks:
        """Hooks for the forward: placeholders instead of tensors."""

        def pack(tensor: Tensor) -> _Holder:
            holder = _Holder()
            self.holders.append(weakref.ref(holder))
            with no_grad():
                self.metadatas.append(self.metadata(tensor))
            return holder

        return saved_tensors_hooks(pack, self.restore)

    def restore(self, holder: _Holder) -> Tensor:
        """The value that a placeholder stands for; the first one asked for runs the region."""
        task = _C._current_graph_task_id()
        if task == -1:
            # Outside of backward nothing says when values are no longer wanted: each access is one
            # of its own.
            task = uuid.uuid4().int
        if task not in self.done:
            inputs = _inputs_of(self.kept.grad_fn)
            try:
                with self.recomputing(task), enable_grad():
                    self.run(*inputs)
            except _Stop:
                pass
            self.done.add(task)
            self.compare(task)
        if task not in holder.handles:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation: a value that backward asks for was not "
                "computed again."
            )
        handle = holder.handles[task]
        if handle is None:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already "
                "unpacked once. If you are calling ctx.saved_tensors in backward, make sure to do "
                "so only once."
            )
        value = self.values[task][handle]
        # Handed out once, so that it is freed as soon as it has been used.
        holder.handles[task] = None
        return value

    def recomputing(self, task: int) -> saved_tensors_hooks:
        """Hooks for the recomputation: collect what is saved, in order."""
        region = weakref.ref(self)

        def pack(tensor: Tensor) -> Tensor:
            this = region()
            assert this is not None
            index = this.counts[task]
            this.counts[task] += 1
            if index >= len(this.holders):
                if not this.is_complete:
                    # Backward inside of the region: it goes on saving after this recomputation.
                    this.is_short = True
                    return tensor.detach()
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation "
                    "than during the original forward pass."
                )
            holder = this.holders[index]()
            if holder is not None:
                handle = _Handle()
                holder.handles[task] = handle
                # (What has no history is handed out itself: programs may know it by its identity.)
                this.values[task][handle] = tensor.detach() if tensor.requires_grad else tensor
            if this.early_stop and this.counts[task] == len(this.holders):
                raise _Stop
            return tensor.detach()

        return saved_tensors_hooks(pack, lambda tensor: tensor)

    def compare(self, task: int) -> None:
        """Compares the recomputation with the forward.

        Raises:
            CheckpointError: if more, fewer or other tensors were saved.
        """
        if self.is_short:
            return
        if self.counts[task] != len(self.holders):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\\n"
                f"Number of tensors saved during forward: {len(self.holders)}\\n"
                f"Number of tensors saved during recomputation: {self.counts[task]}."
            )
        different = []
        for index, reference in enumerate(self.holders):
            holder = reference()
            if holder is None:
                continue
            handle = holder.handles.get(task)
            if handle is None:
                continue
            now = self.metadata(self.values[task][handle])
            if now != self.metadatas[index]:
                different.append(
                    f"tensor at position {index}:\\nsaved metadata: {self.metadatas[index]}\\n"
                    f"recomputed metadata: {now}"
                )
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                "different metadata than during the forward pass.\\n" + "\\n".join(different)
            )


def _without_reentry(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    preserve_rng_state: bool,
    context_fn: Callable[[], tuple[Any, Any]],
    determinism_check: str,
) -> Any:
    forward_context, recompute_context = context_fn()
    metadata = _DETERMINISM.get(determinism_check)
    if metadata is None:
        raise ValueError(
            f"determinism_check should be one of {list(_DETERMINISM)} but got {determinism_check}"
        )
    state = get_rng_state() if preserve_rng_state else None

    def run(kwargs: dict[str, Any], *args: Any) -> None:
        with _random_state(state), recompute_context:
            function(*args, **kwargs)

    region = _Region(run, metadata)
    dummy = _C._VariableFunctions.empty((0,), requires_grad=True)
    kept = _KeepInputs.apply(dummy, kwargs, *args)
    region.kept = kept
    if kept.grad_fn is None:
        # Nothing is recorded: there is nothing to spare.
        return function(*args, **kwargs)
    with region.hooks(), forward_context:
        result = function(*args, **kwargs)
    region.is_complete = True
    return result


def _is_reentrant(asked: bool | None, function: str) -> bool:
    """What was asked for; True, with a warning, if nothing was."""
    if asked is not None:
        return asked
    warnings.warn(
        f"torch.utils.checkpoint.{function}: the use_reentrant parameter should be passed "
        "explicitly. It is True if it is left out; use_reentrant=False is recommended.",
        stacklevel=3,
    )
    return True


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls ``function(*args)``, keeping its inputs instead of what its ops would save.

    Backward calls the function once more to get the rest again: memory is traded for time.

    Args:
        function: the region; it must do the same whenever it is called with the same arguments.
        args: its arguments.
        use_reentrant: False is recommended: it allows keyword arguments,
            :func:`~pullback.autograd.grad`,
            ``inputs=``, and regions whose inputs do not require grad. None warns and means True.
        context_fn: makes two contexts, for the forward and for the recomputation.
        determinism_check: ``default`` compares shape, dtype and device of what is saved; ``none``
            does not.
        debug: not implemented; True raises.
        kwargs: ``preserve_rng_state`` (default True: random numbers are drawn again as they were);
            the rest are the function's keyword arguments.

    Raises:
        ValueError: for keyword arguments, ``context_fn`` or ``debug`` with ``use_reentrant=True``.
        CheckpointError: in backward, if the function did something else the second time.
    """
    use_reentrant = _is_reentrant(use_reentrant, "checkpoint")
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve, *args)
    if debug if _debug is None else _debug:
        raise NotImplementedError("checkpoint(debug=True) needs op logs, which are not there yet")
    return _without_reentry(function, args, kwargs, preserve, context_fn, determinism_check)


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Calls functions one after the other, all but the last of ``segments`` parts checkpointed.

    Args:
        functions: a ``Sequential`` or a sequence of functions of one argument.
        segments: how many parts of about equal length to make.
        input: what the first function is called with.
        use_reentrant: as in :func:`checkpoint`.
        kwargs: ``preserve_rng_state`` as in :func:`checkpoint`.

    Raises:
        ValueError: for other keyword arguments, and fewer than one segment.
    """
    if segments < 1:
        raise ValueError(f"checkpoint_sequential: segments must be at least 1, got {segments}")
    use_reentrant = _is_reentrant(use_reentrant, "checkpoint_sequential")
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    from ..nn import Sequential

    if isinstance(functions, Sequential):
        functions = list(functions.children())

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for function in functions[start:end]:
                value = function(value)
            return value

        return run

    size = len(functions) // segments
    start = 0
    for _ in range(segments - 1):
        input = checkpoint(
            part(start, start + size),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )
        start += size
    return part(start, len(functions))(input)
