"""Automatic differentiation: ``backward``, ``grad``, custom functions, modes, graph access."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from .. import _C, _absent, _engine_log, _lazy, _transform
from . import _standard, anomaly_mode, forward_ad, function, grad_mode, graph
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function, NestedIOFunction
from .grad_mode import (
    _force_original_view_tracking as _force_original_view_tracking,
)
from .grad_mode import (
    _unsafe_preserve_version_counter as _unsafe_preserve_version_counter,
)
from .grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_multithreading_enabled,
    masked_zeros,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .gradcheck import gradcheck, gradgradcheck
from .graph import GradientEdge

if TYPE_CHECKING:
    from .._tensor import Tensor
    from . import functional as functional
    from . import profiler as profiler
    from . import profiler_legacy as profiler_legacy
    from . import profiler_util as profiler_util

__all__ = [
    "Function",
    "GradientEdge",
    "NestedIOFunction",
    "SavedTensor",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "is_multithreading_enabled",
    "masked_zeros",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

_lazy.submodules(
    globals(),
    "_functions",
    "functional",
    "profiler",
    "profiler_legacy",
    "profiler_util",
    "variable",
)

is_grad_enabled = _C.is_grad_enabled
is_view_replay_enabled = _C._is_view_replay_enabled
_profiler_enabled = _C._profiler_enabled
SavedTensor = _C.SavedTensor


class _VariableMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _C.TensorBase)


class Variable(metaclass=_VariableMeta):
    """The old name of tensors."""

    def __new__(
        cls, data: Any = None, requires_grad: bool = False, volatile: Any = None, name: Any = None
    ) -> Any:
        """Returns the tensor.

        Raises:
            ValueError: if both ``volatile`` and ``requires_grad`` are set.
            TypeError: if ``data`` is no tensor.
        """
        if name is not None:
            raise NotImplementedError("Variable(): tensors have no names yet")
        if data is not None and not isinstance(data, _C.TensorBase):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile:
            if requires_grad:
                raise ValueError("Variable can't be volatile and require_grad at the same time!")
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                stacklevel=2,
            )
        made = _C.tensor([]) if data is None else data.detach()
        made.requires_grad = requires_grad
        return made

    class _Engine:
        """The engine as wrappers of modules know it."""

        queue_callback = staticmethod(_C._queue_callback)

    _execution_engine = _Engine()


def kineto_available() -> bool:
    """Whether the profiler can write traces with all that it recorded: always."""
    return True


def _tuple(value: Any) -> tuple[Any, ...]:
    if isinstance(value, (_C.TensorBase, GradientEdge)):
        return (value,)
    return tuple(value)


def _shape_and_dtype(output: Any) -> tuple[Any, Any]:
    if isinstance(output, _C.TensorBase):
        return output.shape, output.dtype
    meta = output[0]._input_metadata[output[1]]
    return meta.shape, meta.dtype


def _batched_starts(outputs: tuple[Any, ...], grads: Any) -> list[Any]:
    """The given gradients, checked to have one dimension more than their outputs."""
    starts = [None] * len(outputs) if grads is None else list(_tuple(grads))
    if len(starts) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(starts)} gradients")
    for index, (output, grad) in enumerate(zip(outputs, starts, strict=True)):
        if not isinstance(grad, _C.TensorBase):
            continue
        shape, _ = _shape_and_dtype(output)
        if tuple(grad.shape[1:]) != tuple(shape):
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each "
                "grad_output as the batch dimension. The sizes of the remaining dimensions are "
                "expected to match the shape of corresponding output, but a mismatch was "
                f"detected: grad_output[{index}] has a shape of {grad.shape} and output[{index}] "
                f"has a shape of {shape}."
            )
    return starts


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Adds the gradients of the sum of ``tensors`` to the ``.grad`` of the graph's leaves.

    Args:
        tensors: one tensor (or gradient edge), or several.
        grad_tensors: a gradient for each; None for real tensors of one element.
        retain_graph: keep what the graph saved; defaults to ``create_graph``.
        create_graph: record the backward itself.
        grad_variables: the old name of ``grad_tensors``.
        inputs: accumulate into these only.

    Raises:
        RuntimeError: for a freed graph, outputs without graph, gradients of another shape, and
            within function transforms.
    """
    _transform.refuse_backward()
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    keep = create_graph if retain_graph is None else retain_graph
    run = _engine_log.run if _engine_log.is_wanted() else _C._engine_run_backward
    run(tensors, grad_tensors, keep, create_graph, inputs, True, True)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of the sum of ``outputs`` with respect to ``inputs``; ``.grad`` is left alone.

    Args:
        outputs: one tensor (or gradient edge), or several.
        inputs: one tensor (or gradient edge), or several.
        grad_outputs: a gradient for each output; None for real tensors of one element.
        retain_graph: keep what the graph saved; defaults to ``create_graph``.
        create_graph: record the backward itself.
        only_inputs: must be True.
        allow_unused: give None for inputs that were not used, instead of an error.
        is_grads_batched: the first dimension of each ``grad_outputs`` counts independent runs.
        materialize_grads: give zeros for inputs that were not used.

    Raises:
        RuntimeError: for an input that was not used or does not require grad.
        ValueError: if ``allow_unused=False`` contradicts ``materialize_grads=True``, and for
            batched gradients of different first sizes.
    """
    if _C._has_override_among(outputs, inputs):
        return _overridden_grad(
            outputs,
            inputs,
            grad_outputs=grad_outputs,
            retain_graph=retain_graph,
            create_graph=create_graph,
            only_inputs=only_inputs,
            allow_unused=allow_unused,
            is_grads_batched=is_grads_batched,
            materialize_grads=materialize_grads,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but "
            "got: allow_unused=False."
        )
    allow = materialize_grads if allow_unused is None else allow_unused
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use "
            "torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    keep = create_graph if retain_graph is None else retain_graph
    found: Sequence[Tensor | None]
    if is_grads_batched:
        roots = _tuple(outputs)
        starts = _batched_starts(roots, grad_outputs)
        found = _batched(roots, _tuple(inputs), starts, keep, create_graph, allow)
    else:
        run = _engine_log.run if _engine_log.is_wanted() else _C._engine_run_backward
        found = run(outputs, grad_outputs, keep, create_graph, inputs, allow, False)
    if materialize_grads:
        return tuple(
            _zeros_for(t) if g is None else g for g, t in zip(found, _tuple(inputs), strict=True)
        )
    # None comes only with `allow_unused`; as in PyTorch the type leaves that out.
    return cast("tuple[Tensor, ...]", tuple(found))


def _overridden_grad(outputs: Any, inputs: Any, **options: Any) -> tuple[Tensor, ...]:
    """The result of an override of :func:`grad`, which gets outputs and inputs as tuples."""
    from ..overrides import is_tensor_like

    given = tuple((g,) if is_tensor_like(g) else _tuple(g) for g in (outputs, inputs))
    relevant = (*given[0], *given[1])
    result = _C._handle_torch_function(grad, "torch.autograd.grad", relevant, given, options)
    return cast("tuple[Tensor, ...]", result)


def _zeros_for(target: Tensor | GradientEdge) -> Tensor:
    if isinstance(target, GradientEdge):
        raise RuntimeError(
            "materialize_grads cannot be used when the given input is a GradientEdge"
        )
    return _C._VariableFunctions.zeros_like(target).requires_grad_()


def _batched(
    roots: Sequence[Any],
    targets: Sequence[Any],
    starts: Sequence[Any],
    keep: bool,
    create_graph: bool,
    allow: bool,
) -> Sequence[Tensor | None]:
    """One backward run for all entries of the first dimension."""
    from .._vmap_internals import _vmap

    def pull(*vectors: Any) -> tuple[Tensor | None, ...]:
        found = _C._engine_run_backward(
            list(roots), list(vectors), keep, create_graph, list(targets), allow, False
        )
        return tuple(found)

    dims = tuple(None if start is None else 0 for start in starts)
    batched: Sequence[Tensor | None] = _vmap(pull, dims, 0, allow_none_pass_through=True)(*starts)
    return batched


_standard.install()

_absent.announce(globals())
