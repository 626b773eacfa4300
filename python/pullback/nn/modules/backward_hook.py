"""How full backward hooks see the gradients of a module's inputs and outputs.

An identity node is put around the tensors that enter the module and another around those that
leave it; hooks on the two nodes collect ``grad_output`` and ``grad_input``. Loaded only when a
module with backward hooks is called. Invariant: one ``BackwardHook`` serves one forward call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ... import _C
from ..._tensor import Tensor
from ...autograd import Function
from .hook import BoundHook

if TYPE_CHECKING:
    from .module import Module

Grads = tuple[Any, ...]


class BackwardHookFunction(Function):
    """The identity; exists to have a node of its own between a module and its surroundings."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """Returns the tensors as they are."""
        ctx.are_recorded = [arg.requires_grad for arg in args]
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Views of the tangents; if nothing is recorded, a view finds its tangent itself."""
        pairs = zip(tangents, ctx.are_recorded, strict=True)
        return tuple(t.view_as(t) if is_recorded else None for t, is_recorded in pairs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Returns the gradients as they are."""
        return grads


def _spread(indices: Sequence[int], values: Sequence[Any], size: int) -> Grads:
    """A tuple of ``size`` with ``values`` at ``indices`` and ``None`` elsewhere."""
    full: list[Any] = [None] * size
    for index, value in zip(indices, values, strict=True):
        full[index] = value
    return tuple(full)


class BackwardHook:
    """Runs the backward hooks and pre-hooks of one module for one forward call."""

    def __init__(
        self,
        module: Module,
        user_hooks: Sequence[Callable[..., Any]],
        user_pre_hooks: Sequence[Callable[..., Any]],
    ) -> None:
        self.module = module
        self.hooks = user_hooks
        self.pre_hooks = user_pre_hooks
        self.grad_outputs: Grads | None = None
        self.inputs_size = -1
        self.outputs_size = -1
        self.input_indices: list[int] | None = None
        self.output_indices: list[int] | None = None

    def setup_input_hook(self, args: Any) -> Any:
        """Wraps the positional arguments of the call; returns what ``forward`` is given."""
        wrapped, self.input_indices = _wrap(args, self._on_grad_input)
        self.inputs_size = len(args)
        return wrapped

    def setup_output_hook(self, result: Any) -> Any:
        """Wraps the result of the call, a tensor or a tuple."""
        outputs = result if isinstance(result, tuple) else (result,)
        wrapped, self.output_indices = _wrap(outputs, self._on_grad_output)
        self.outputs_size = len(outputs)
        return wrapped if isinstance(result, tuple) else wrapped[0]

    def _on_grad_input(self, grad_input: Grads, _: Grads) -> Grads | None:
        # Without grad_outputs the output side took no part in this backward pass.
        if self.grad_outputs is None or self.input_indices is None:
            return None
        grads: Grads = _spread(self.input_indices, grad_input, self.inputs_size)
        for hook in self.hooks:
            replaced = hook(self.module, grads, self.grad_outputs)
            if replaced is None:
                continue
            if len(replaced) != len(grads):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, "
                    f"got {len(replaced)}, but expected {len(grads)}"
                )
            grads = replaced
        self.grad_outputs = None
        return tuple(grads[index] for index in self.input_indices)

    def _on_grad_output(self, _: Grads, grad_output: Grads) -> Grads | None:
        indices = self.output_indices or []
        grads: Grads = _spread(indices, grad_output, self.outputs_size)
        for hook in self.pre_hooks:
            replaced = hook(self.module, grads)
            if replaced is None:
                continue
            if len(replaced) != len(grads):
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, "
                    f"got {len(replaced)}, but expected {len(grads)}"
                )
            grads = replaced
        self.grad_outputs = grads
        if self.input_indices is None:
            self._fire_without_inputs(grads)
            self.grad_outputs = None
        return tuple(grads[index] for index in indices)

    def _fire_without_inputs(self, grads: Grads) -> None:
        """No input takes part in the graph: the hooks run now, with ``None`` gradients."""
        if not self.hooks:
            return
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module "
            "outputs since no inputs require gradients.",
            stacklevel=5,
        )
        for hook in self.hooks:
            replaced = hook(self.module, (None,) * self.inputs_size, grads)
            if replaced is None:
                continue
            if not isinstance(replaced, tuple) or any(grad is not None for grad in replaced):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )


def _wrap(args: Any, hook: Callable[..., Any]) -> tuple[Any, list[int] | None]:
    """Puts the tensors of ``args`` behind one identity node that carries ``hook``.

    Returns the new arguments and the positions of the tensors, or ``None`` in place of the
    positions when no gradient can flow.
    """
    indices = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
    tensors = [args[i] for i in indices]
    if not (_C.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)):
        return args, None
    aliases = BackwardHookFunction.apply(*tensors)
    node = next(alias.grad_fn for alias in aliases if alias.grad_fn is not None)
    node.register_hook(hook)
    replaced = list(args)
    for index, alias in zip(indices, aliases, strict=True):
        replaced[index] = alias
    if type(args) is tuple:
        return tuple(replaced), indices
    return type(args)(*replaced), indices


def attach_to_result(module: Module, hooks: Sequence[Any], args: Any, result: Any) -> None:
    """Registers hooks of the older kind on the node that made the (first) result tensor."""
    tensor = result
    while not isinstance(tensor, Tensor):
        if isinstance(tensor, dict):
            tensor = next(value for value in tensor.values() if isinstance(value, Tensor))
        else:
            tensor = tensor[0]
    node = tensor.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(BoundHook(hook, module))
    problem = _incomplete_gradients(args, result, node)
    if problem:
        warnings.warn(
            f"Using {problem} is deprecated and will be removed in future versions. "
            "Please use register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=4,
        )


def _incomplete_gradients(args: Any, result: Any, node: Any) -> str | None:
    """The reason why hooks on ``node`` alone miss some gradients of the module, or ``None``."""
    results = (result,) if isinstance(result, Tensor) else result
    if not _all_tensors(results):
        return (
            "non-full backward hooks on a Module that does not return a single Tensor or a "
            "tuple of Tensors"
        )
    inputs = (args,) if isinstance(args, Tensor) else args
    if not _all_tensors(inputs):
        return (
            "non-full backward hooks on a Module that does not take as input a single Tensor "
            "or a tuple of Tensors"
        )
    makers = {tensor.grad_fn for tensor in results if tensor.grad_fn is not None}
    if len(makers) > 1:
        return "a non-full backward hook when outputs are generated by different autograd Nodes"
    if node not in makers:
        return "a non-full backward hook when outputs are nested in python data structure"
    before = {tensor.grad_fn for tensor in inputs if tensor.grad_fn is not None}
    if before != {entry[0] for entry in node.next_functions}:
        return "a non-full backward hook when the forward contains multiple autograd Nodes"
    return None


def _all_tensors(values: Any) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, Tensor) for value in values)
