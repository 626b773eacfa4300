"""Copies of a module on several devices, whose gradients come back to the module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ..modules.module import Module
from . import comm

__all__ = ["replicate"]

T = TypeVar("T", bound=Module)


def replicate(network: T, devices: Sequence[Any], detach: bool = False) -> list[T]:
    """A copy of a module on each device; parameters of the copies are views of the history.

    A copy's parameters are no leaves: gradients go on to the module's own. Buffers have none.

    Args:
        network: the module.
        devices: numbers, devices or their names; the module's own first.
        detach: whether copies have no history.
    """
    numbers = comm._numbers(devices)
    params = list(network.parameters())
    buffers = list(network.buffers())
    param_copies = _copies(params, numbers, detach)
    buffer_copies = _copies(buffers, numbers, True)
    modules = list(network.modules())
    index = {module: position for position, module in enumerate(modules)}
    replicas: list[Any] = []
    for device in range(len(numbers)):
        shown = {id(p): c for p, c in zip(params, param_copies[device], strict=True)}
        shown |= {id(b): c for b, c in zip(buffers, buffer_copies[device], strict=True)}
        made = [module._replicate_for_data_parallel() for module in modules]
        for module, copy in zip(modules, made, strict=True):
            children = [
                None if child is None else made[index[child]] for child in module._modules.values()
            ]
            _fill(module, copy, shown, children)
        replicas.append(made[0])
    return replicas


def _copies(tensors: list[Any], numbers: list[int], detach: bool) -> list[list[Any]]:
    """The tensors on each device."""
    if not tensors:
        return [[] for _ in numbers]
    if detach:
        tensors = [tensor.detach() for tensor in tensors]
    return [list(copies) for copies in comm.broadcast_coalesced(tensors, numbers)]


def _fill(module: Module, copy: Any, shown: dict[int, Any], children: list[Any]) -> None:
    """Gives a copy its submodules and tensors."""
    for name, child in zip(module._modules, children, strict=True):
        copy._modules[name] = child
    for name, param in module._parameters.items():
        copy._parameters.pop(name, None)
        if param is None:
            copy._parameters[name] = None
        else:
            # It is no leaf, so that it is an attribute and no parameter.
            copy.__dict__[name] = shown[id(param)]
            copy._former_parameters[name] = shown[id(param)]
    for name, buffer in module._buffers.items():
        copy._buffers[name] = None if buffer is None else shown[id(buffer)]
