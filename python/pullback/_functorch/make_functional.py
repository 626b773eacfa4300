"""Modules taken apart into a function and its parameters, as ``functorch`` did it.

New programs use :func:`pullback.func.functional_call`. Invariant: a functional module holds a copy
of the module, none of whose parameters and buffers matter to what it computes: all of them are
given by the caller.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _C
from ..nn.modules.module import Module
from ..nn.utils.stateless import _reparametrize_module

if TYPE_CHECKING:
    from .._tensor import Tensor

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functional_init",
    "functional_init_with_buffers",
    "make_functional",
    "make_functional_with_buffers",
    "transpose_stack",
]


def _names(tensors: Iterable[tuple[str, Tensor]]) -> dict[str, list[str]]:
    """The first name of each tensor with all of its names."""
    firsts: dict[int, str] = {}
    names: dict[str, list[str]] = {}
    for name, tensor in tensors:
        names.setdefault(firsts.setdefault(id(tensor), name), []).append(name)
    return names


def _by_every_name(names: dict[str, list[str]], tensors: Iterable[Tensor]) -> dict[str, Tensor]:
    given = tuple(tensors)
    if len(given) != len(names):
        raise RuntimeError(
            f"the functional module takes {len(names)} tensors ({', '.join(names)}), got "
            f"{len(given)}"
        )
    return {
        name: tensor for group, tensor in zip(names.values(), given, strict=True) for name in group
    }


def _called(
    module: Module, state: dict[str, Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    with _reparametrize_module(module, state):
        return module(*args, **kwargs)


def _kept(tensors: Iterable[Tensor], disable_autograd_tracking: bool) -> tuple[Tensor, ...]:
    """The tensors, which stop to require grad where that is asked for."""
    found = tuple(tensors)
    if disable_autograd_tracking:
        for tensor in found:
            tensor.requires_grad_(False)
    return found


class FunctionalModule(Module):
    """A module without buffers that takes its parameters as its first argument.

    Args:
        stateless_model: the module; its own parameters do not matter.
        param_names: a name of each parameter, in the order in which they are given.
        names_map: all names of the parameter of each of these names.
    """

    def __init__(
        self,
        stateless_model: Module,
        param_names: tuple[str, ...],
        names_map: dict[str, list[str]],
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.names_map = names_map

    @staticmethod
    def _create_from(
        model: Module, disable_autograd_tracking: bool = False
    ) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
        names = _names(model.named_parameters(remove_duplicate=False))
        own = copy.deepcopy(model)
        for parameter in own.parameters():
            parameter.requires_grad_(False)
        functional = FunctionalModule(own, tuple(names), names)
        return functional, _kept(model.parameters(), disable_autograd_tracking)

    def forward(self, params: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        """The output of the module with these parameters."""
        return _called(self.stateless_model, _by_every_name(self.names_map, params), args, kwargs)


class FunctionalModuleWithBuffers(Module):
    """A module that takes its parameters and its buffers as its first two arguments.

    Args:
        stateless_model: the module; its own parameters and buffers do not matter.
        param_names: a name of each parameter, in the order in which they are given.
        buffer_names: the same of buffers.
        param_names_map: all names of the parameter of each of these names.
        buffer_names_map: the same of buffers.
    """

    def __init__(
        self,
        stateless_model: Module,
        param_names: tuple[str, ...],
        buffer_names: tuple[str, ...],
        param_names_map: dict[str, list[str]],
        buffer_names_map: dict[str, list[str]],
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names
        self.buffer_names = buffer_names
        self.param_names_map = param_names_map
        self.buffer_names_map = buffer_names_map

    @staticmethod
    def _create_from(
        model: Module, disable_autograd_tracking: bool = False
    ) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
        parameters = _names(model.named_parameters(remove_duplicate=False))
        buffers = _names(model.named_buffers(remove_duplicate=False))
        own = copy.deepcopy(model)
        for parameter in own.parameters():
            parameter.requires_grad_(False)
        functional = FunctionalModuleWithBuffers(
            own, tuple(parameters), tuple(buffers), parameters, buffers
        )
        kept = _kept(model.parameters(), disable_autograd_tracking)
        return functional, kept, tuple(model.buffers())

    def forward(
        self, params: Iterable[Tensor], buffers: Iterable[Tensor], *args: Any, **kwargs: Any
    ) -> Any:
        """The output of the module with these parameters and buffers."""
        state = _by_every_name(self.param_names_map, params)
        state.update(_by_every_name(self.buffer_names_map, buffers))
        return _called(self.stateless_model, state, args, kwargs)


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """A module without buffers as a function ``f(parameters, *args)``, and its parameters.

    Args:
        model: the module.
        disable_autograd_tracking: its parameters are not to require grad any more.

    Raises:
        RuntimeError: if the module has buffers.

    Example:
        >>> import pullback as torch
        >>> from pullback._functorch.make_functional import make_functional
        >>> f, parameters = make_functional(torch.nn.Linear(3, 2))
        >>> f(tuple(torch.zeros_like(p) for p in parameters), torch.ones(3)).tolist()
        [0.0, 0.0]
    """
    if next(model.buffers(), None) is not None:
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A module as a function ``f(parameters, buffers, *args)``, its parameters and its buffers.

    Args:
        model: the module.
        disable_autograd_tracking: its parameters are not to require grad any more.
    """
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def transpose_stack(
    tuple_of_tuple_of_tensors: Sequence[Sequence[Tensor]],
) -> tuple[Tensor, ...]:
    """The tensors at the same index of each tuple, stacked; without history."""
    return tuple(
        _C._VariableFunctions.stack(list(group)).detach()
        for group in zip(*tuple_of_tuple_of_tensors, strict=True)
    )


def combine_state_for_ensemble(
    models: list[Module],
) -> tuple[Callable[..., Any], tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Modules of one class as one function, with their parameters and buffers stacked.

    Args:
        models: modules with parameters of the same shapes.

    Returns:
        The function ``f(parameters, buffers, *args)`` of one of them, for :func:`pullback.vmap`,
        and what is stacked, which requires grad where the originals' first does.

    Raises:
        RuntimeError: without modules, for different classes, and for some in training mode and
            others not.
    """
    name = "combine_state_for_ensemble"
    if not models:
        raise RuntimeError(f"{name}: Expected at least one model, got 0.")
    if any(model.training != models[0].training for model in models):
        raise RuntimeError(f"{name}: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError(f"{name}: Expected all models to be of the same class.")
    functions, parameters, buffers = zip(
        *(make_functional_with_buffers(model) for model in models), strict=True
    )
    return functions[0], _stacked(parameters), transpose_stack(buffers)


_Names = tuple[str, ...]


def _ensemble(
    model_class: Callable[..., Module], ensemble_shape: Sequence[int], device: Any
) -> Callable[..., list[Module]]:
    """Makes as many modules as an ensemble of this shape has; one for an empty shape.

    Raises:
        ValueError: for a shape of more than one dimension, or without modules.
    """
    if len(ensemble_shape) > 1:
        raise ValueError(f"the shape of an ensemble has one number, got {tuple(ensemble_shape)}")
    count = ensemble_shape[0] if ensemble_shape else 1
    if count <= 0:
        raise ValueError(f"num_models {count} should be > 0")
    return lambda *args, **kwargs: [model_class(*args, **kwargs).to(device) for _ in range(count)]


def functional_init(
    model_class: Callable[..., Module], ensemble_shape: Sequence[int] = (), device: Any = "cpu"
) -> Callable[..., tuple[tuple[Tensor, ...], Callable[..., Any], _Names]]:
    """A constructor of modules without buffers that are taken apart at once.

    Args:
        model_class: makes a module.
        ensemble_shape: ``()``, or ``(n,)`` for the parameters of n modules, stacked.
        device: where they are.

    Returns:
        A function of the arguments of ``model_class`` that gives the parameters, the function
        ``f(parameters, args)`` of one module, and the parameters' names.

    Raises:
        ValueError: for another shape.
        RuntimeError: when it is called, if the module has buffers.
    """
    make = _ensemble(model_class, ensemble_shape, device)

    def made(*args: Any, **kwargs: Any) -> tuple[tuple[Tensor, ...], Callable[..., Any], _Names]:
        functions, weights = zip(
            *(make_functional(model) for model in make(*args, **kwargs)), strict=True
        )
        function: FunctionalModule = functions[0]
        stacked = _stacked(weights) if ensemble_shape else weights[0]
        return stacked, lambda params, data: function(params, *data), function.param_names

    return made


def functional_init_with_buffers(
    model_class: Callable[..., Module], ensemble_shape: Sequence[int] = (), device: Any = "cpu"
) -> Callable[
    ..., tuple[tuple[Tensor, ...], tuple[Tensor, ...], Callable[..., Any], _Names, _Names]
]:
    """As :func:`functional_init`, of modules with buffers.

    Args:
        model_class: makes a module.
        ensemble_shape: ``()``, or ``(n,)`` for the parameters and buffers of n modules, stacked.
        device: where they are.

    Returns:
        A function of the arguments of ``model_class`` that gives the parameters, the buffers, the
        function ``f(parameters, buffers, args)`` of one module, and the names of both.

    Raises:
        ValueError: for another shape.
    """
    make = _ensemble(model_class, ensemble_shape, device)

    def made(
        *args: Any, **kwargs: Any
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], Callable[..., Any], _Names, _Names]:
        functions, weights, buffers = zip(
            *(make_functional_with_buffers(model) for model in make(*args, **kwargs)), strict=True
        )
        function: FunctionalModuleWithBuffers = functions[0]
        weights = _stacked(weights) if ensemble_shape else weights[0]
        buffers = transpose_stack(buffers) if ensemble_shape else buffers[0]

        def call(params: Iterable[Tensor], state: Iterable[Tensor], data: Iterable[Any]) -> Any:
            return function(params, state, *data)

        return weights, buffers, call, function.param_names, function.buffer_names

    return made


def _stacked(weights: Sequence[Sequence[Tensor]]) -> tuple[Tensor, ...]:
    """The parameters of modules, stacked; they require grad where those of the first do."""
    stacked = transpose_stack(weights)
    for one, first in zip(stacked, weights[0], strict=True):
        one.requires_grad_(first.requires_grad)
    return stacked
