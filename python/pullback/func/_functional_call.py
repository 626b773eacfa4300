"""Modules in transforms: called with other parameters, and many of them stacked to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _C
from ..nn.utils import stateless

if TYPE_CHECKING:
    from .._tensor import Tensor
    from ..nn.modules.module import Module


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """What a module gives with other parameters and buffers, which may be inputs of a transform.

    The module itself is as it was afterwards. If it puts another tensor in the place of one that
    was given (as batch normalisation does with its statistics), a single dictionary has that one
    afterwards.

    Args:
        module: any module.
        parameter_and_buffer_dicts: tensors by their names (``"0.weight"``), or several such
            dictionaries. The module keeps its own tensors under all other names.
        args: its positional arguments; what is no tuple is the only one.
        kwargs: its arguments by keyword.
        tie_weights: a tensor that the module has under several names is replaced under all of
            them.
        strict: raise an error unless all parameters and buffers are given, and nothing else.

    Raises:
        ValueError: for a name in several dictionaries, different tensors in the place of one, and
            anything but dictionaries.
        RuntimeError: for what ``strict`` asks for.
        TypeError: for what is no tensor.
        AttributeError: for names below modules that there are not.

    Example:
        >>> import pullback as torch
        >>> layer = torch.nn.Linear(2, 1, bias=False)
        >>> x = torch.tensor([1.0, 2.0])
        >>> loss = lambda p: torch.func.functional_call(layer, p, x).sum()
        >>> torch.func.grad(loss)({"weight": torch.zeros(1, 2)})
        {'weight': tensor([[1., 2.]])}
    """
    return stateless._functional_call(
        module,
        _merged(parameter_and_buffer_dicts),
        args,
        kwargs,
        tie_weights=tie_weights,
        strict=strict,
    )


def _merged(dicts: Any) -> dict[str, Tensor]:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, (list, tuple)):
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(dicts)}"
        )
    if not all(isinstance(part, dict) for part in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    merged: dict[str, Tensor] = {}
    repeated: dict[str, None] = {}
    for part in dicts:
        repeated.update(dict.fromkeys(name for name in part if name in merged))
        merged.update(part)
    if repeated:
        raise ValueError(
            f"{list(repeated)} appeared in multiple dictionaries; behavior of functional call is "
            "ambiguous"
        )
    return merged


def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and buffers of several modules of one kind, each name's stacked to one tensor.

    For :func:`vmap` over an ensemble: of a function that uses :func:`functional_call` on one of
    the modules. The results are new leaves; they require grad where the originals do.

    Args:
        models: modules of the same class, with parameters of the same shapes.

    Returns:
        The parameters and the buffers, by name; the first dimension counts modules.

    Raises:
        RuntimeError: without modules, for different classes, for some in training mode and others
            not, and where a parameter requires grad in some only.

    Example:
        >>> import pullback as torch
        >>> layers = [torch.nn.Linear(2, 3) for _ in range(4)]
        >>> parameters, buffers = torch.func.stack_module_state(layers)
        >>> parameters["weight"].shape
        torch.Size([4, 3, 2])
    """
    modules = list(models)
    if not modules:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({bool(module.training) for module in modules}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(module) is not type(modules[0]) for module in modules):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return (
        _stacked([dict(module.named_parameters()) for module in modules]),
        _stacked([dict(module.named_buffers()) for module in modules]),
    )


def _stacked(states: list[dict[str, Any]]) -> dict[str, Tensor]:
    return {name: _leaf([state[name] for state in states], name) for name in states[0]}


def _leaf(tensors: list[Tensor], name: str) -> Tensor:
    requires_grad = tensors[0].requires_grad
    if any(tensor.requires_grad != requires_grad for tensor in tensors):
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    stacked: Tensor = _C._VariableFunctions.stack(tensors).detach()
    stacked.requires_grad = requires_grad
    return stacked


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Lets all batch normalisation in a module do without running statistics, in place.

    These are buffers that a call writes to, which cannot be done in :func:`pullback.vmap` unless
    they are batched themselves. Afterwards the statistics of the batch are used in both modes.

    Args:
        root: a module; those below it are changed too.

    Returns:
        The same module.

    Example:
        >>> import pullback as torch
        >>> torch.func.replace_all_batch_norm_modules_(torch.nn.BatchNorm1d(2)).running_mean is None
        True
    """
    from ..nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.track_running_stats = False
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
    return root
