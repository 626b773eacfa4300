"""Checkpointing: activations are computed again in backward instead of being kept.

A checkpointed region keeps its inputs alone. There are two ways. ``use_reentrant=False`` hooks on
saved tensors (``_region``); with the contexts of ``_selective`` it keeps the results of chosen ops
too. The older way is a custom function whose backward runs the region and a backward inside of it.

T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ... import _C, _absent
from ...amp.autocast_mode import autocast
from ...autograd import Function, backward
from ...autograd.grad_mode import enable_grad, no_grad
from ...random import get_rng_state
from ._log import DebugLogs
from ._region import (
    DETERMINISM,
    CheckpointError,
    GraphExecGroup,
    KeepInputs,
    Region,
    is_tensor,
    random_state,
)
from ._selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    _CachedTorchDispatchMode,
    _CachingTorchDispatchMode,
    create_selective_checkpoint_contexts,
)

if TYPE_CHECKING:
    from ..._tensor import Tensor

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "_CachedTorchDispatchMode",
    "_CachingTorchDispatchMode",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


_early_stop: bool | None = None
_debug: bool | None = None


class DefaultDeviceType:
    """The devices whose random state is kept where no argument is on one: kept, there are none."""

    _default_device_type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Sets the type of devices."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The type of devices."""
        return DefaultDeviceType._default_device_type


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
        if is_tensor(value):
            required = value.requires_grad
            value = value.detach()
            value.requires_grad = required
        detached.append(value)
    return tuple(detached)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if no tensor among the inputs requires grad."""
    if not any(value.requires_grad for value in inputs if is_tensor(value)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


def get_device_states(*args: Any) -> tuple[list[Any], list[Tensor]]:
    """The devices with random states of their own that tensors are on, and these states."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Sets the states that :func:`get_device_states` returned."""


def _autocast_as_now() -> autocast:
    """A context in which autocast on the CPU, the only device, is as it is now."""
    return autocast(
        "cpu",
        _C.get_autocast_dtype("cpu"),
        _C.is_autocast_enabled("cpu"),
        _C.is_autocast_cache_enabled(),
    )


class CheckpointFunction(Function):
    """The reentrant way: backward runs the region again and another backward in it."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        """Runs the region without recording and keeps its inputs."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.rng_state = get_rng_state() if preserve_rng_state else None
        ctx.autocast = _autocast_as_now()
        ctx.inputs = [None if is_tensor(value) else value for value in args]
        ctx.tensor_indices = [index for index, value in enumerate(args) if is_tensor(value)]
        ctx.save_for_backward(*(args[index] for index in ctx.tensor_indices))
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
        for index, tensor in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[index] = tensor
        detached = detach_variable(tuple(inputs))
        with random_state(ctx.rng_state), ctx.autocast.again(), enable_grad():
            outputs = ctx.run_function(*detached)
        if is_tensor(outputs):
            outputs = (outputs,)
        wanted = [
            (output, grad)
            for output, grad in zip(outputs, grads, strict=False)
            if is_tensor(output) and output.requires_grad
        ]
        if not wanted:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([output for output, _ in wanted], [grad for _, grad in wanted])
        return (None, None, *(v.grad if is_tensor(v) else None for v in detached))


def _without_reentry(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: _Options
) -> Any:
    context_fn, explain = options.context_fn, None
    if options.debug if _debug is None else _debug:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        logs = DebugLogs()
        context_fn, explain = logs.contexts, logs.explain
    metadata = DETERMINISM.get(options.determinism_check)
    if metadata is None:
        raise ValueError(
            f"determinism_check should be one of {list(DETERMINISM)} "
            f"but got {options.determinism_check}"
        )
    forward_context, recompute_context = context_fn()
    if isinstance(forward_context, _CachingTorchDispatchMode):
        forward_context.respect_saved_tensors_hooks = options.respect_saved_tensors_hooks
    state = get_rng_state() if options.preserve_rng_state else None
    casts = _autocast_as_now()

    def run(kwargs: dict[str, Any], *args: Any) -> None:
        with random_state(state), casts.again(), recompute_context:
            function(*args, **kwargs)

    early_stop = options.early_stop if _early_stop is None else _early_stop
    region = Region(run, metadata, early_stop, explain)
    dummy = _C._VariableFunctions.empty((0,), requires_grad=True)
    kept = KeepInputs.apply(dummy, kwargs, *args)
    region.kept = kept
    if kept.grad_fn is None:
        # Nothing is recorded: there is nothing to spare.
        return function(*args, **kwargs)
    with region.hooks(), forward_context:
        with region.levels_noted():
            result = function(*args, **kwargs)
        region.is_complete = True
        return result
    raise RuntimeError(
        "torch.utils.checkpoint: the forward context provided by context_fn suppressed an "
        "exception raised during the checkpointed forward. This is not supported because "
        "checkpoint cannot return a value for a failed forward."
    )


def _is_reentrant(given: bool | None, function: str) -> bool:
    """The value given; True, with a warning, if there is none."""
    if given is not None:
        return given
    warnings.warn(
        f"torch.utils.checkpoint.{function}: the use_reentrant parameter should be passed "
        "explicitly. It is True if it is left out; use_reentrant=False is recommended.",
        stacklevel=3,
    )
    return True


@dataclass(frozen=True)
class _Options:
    """The options of :func:`checkpoint`."""

    use_reentrant: bool | None
    preserve_rng_state: bool
    context_fn: Callable[[], tuple[Any, Any]]
    determinism_check: str
    debug: bool
    early_stop: bool
    respect_saved_tensors_hooks: bool | None

    def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Calls ``function`` in the chosen way."""
        if not _is_reentrant(self.use_reentrant, "checkpoint"):
            return _without_reentry(function, args, kwargs, self)
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        is_plain = self.context_fn is noop_context_fn and not self.debug
        if not is_plain or self.respect_saved_tensors_hooks is not None:
            raise ValueError(
                "Passing `context_fn`, `debug`, or `respect_saved_tensors_hooks` is only supported "
                "when use_reentrant=False."
            )
        return CheckpointFunction.apply(function, self.preserve_rng_state, *args)


class _CheckpointedFunction:
    """A function that is checkpointed whenever it is called."""

    def __init__(self, options: _Options, function: Callable[..., Any]) -> None:
        self.options = options
        self.function = function
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        return self.options.call(self.function, args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> _CheckpointedFunction:
        """The function as a method of ``instance``."""
        bind = getattr(self.function, "__get__", None)
        if instance is None or bind is None:
            return self
        return _CheckpointedFunction(self.options, bind(instance, owner))


def checkpoint(
    function: Callable[..., Any] | None = None,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    respect_saved_tensors_hooks: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Calls ``function(*args)``, keeping its inputs instead of what its ops would save.

    Backward calls the function once more to get the rest again: memory is traded for time.

    Args:
        function: the region; it must do the same whenever it is called with the same arguments. If
            it is left out, what comes back is a decorator.
        args: its arguments.
        use_reentrant: False is recommended: it allows keyword arguments,
            :func:`~pullback.autograd.grad`,
            ``inputs=``, and regions whose inputs do not require grad. None warns and means True.
        preserve_rng_state: whether random numbers are drawn again as they were.
        context_fn: makes two contexts, for the forward and for the recomputation; see
            :func:`create_selective_checkpoint_contexts`.
        determinism_check: ``default`` compares shape, dtype and device of what is saved; ``none``
            does not.
        debug: whether an error about a recomputation that differs shows all ops of both.
        early_stop: whether the recomputation stops as soon as everything that was saved is there.
        respect_saved_tensors_hooks: whether hooks on saved tensors around the region pack what
            selective checkpointing keeps; None means no, with a warning if there are such hooks.
        kwargs: the function's keyword arguments.

    Raises:
        ValueError: for keyword arguments, ``context_fn``, ``debug`` or
            ``respect_saved_tensors_hooks`` with ``use_reentrant=True``, and for both of
            ``context_fn`` and ``debug``.
        CheckpointError: in backward, if the function did something else the second time.
    """
    options = _Options(
        use_reentrant,
        preserve_rng_state,
        context_fn,
        determinism_check,
        debug,
        early_stop,
        respect_saved_tensors_hooks,
    )
    if function is not None or args:
        return options.call(cast("Callable[..., Any]", function), args, kwargs)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    return functools.partial(_CheckpointedFunction, options)


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
    from ...nn import Sequential

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


_absent.announce(globals())
