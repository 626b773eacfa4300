"""Modules as functions of their parameters and buffers.

For the time of a call other tensors take the place of a module's own. Invariant: afterwards the
module has its own again, the same objects, whatever happened in between.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ... import _C

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ..modules.module import Module

__all__ = ["functional_call"]

# In the place of a tensor: there is none.
_ABSENT = object()


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The old place of :func:`pullback.func.functional_call`."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated. Please use "
        "`torch.func.functional_call` instead, which takes the same arguments.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(
        module, parameters_and_buffers, tie_weights=tie_weights, strict=strict
    ):
        return module(*args, **({} if kwargs is None else kwargs))


@contextlib.contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
) -> Iterator[None]:
    """Within it the module has these tensors instead of its own.

    Args:
        module: any module.
        parameters_and_buffers: by name; what the module puts in their place is there afterwards.
        tie_weights: a tensor that the module has under several names is replaced under all of
            them.
        strict: raise an error unless all parameters and buffers are given, and nothing else.

    Raises:
        ValueError: for different tensors in the place of one.
        RuntimeError: for what ``strict`` asks for.
        TypeError: for what is no tensor.
        AttributeError: for names below modules that there are not.
    """
    given = parameters_and_buffers
    if tie_weights:
        given = _with_tied(module, given)
    if strict:
        _check_names(module, given)
    own: dict[str, Any] = {}
    try:
        for name, tensor in given.items():
            own[name] = _swap(module, name, tensor)
        yield
    finally:
        for name in reversed(own):
            current = _swap(module, name, own[name])
            if name in parameters_and_buffers and current is not _ABSENT:
                parameters_and_buffers[name] = current


def _named_tensors(module: Module) -> dict[str, Any]:
    """All parameters and buffers, those with several names under each of them."""
    found: dict[str, Any] = dict(module.named_parameters(remove_duplicate=False))
    found.update(module.named_buffers(remove_duplicate=False))
    return found


def _with_tied(module: Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors that are given, also under the other names of those that they replace."""
    names: dict[int, list[str]] = {}
    for name, tensor in _named_tensors(module).items():
        names.setdefault(id(tensor), []).append(name)
    result = dict(given)
    for group in names.values():
        named = [name for name in group if name in given]
        if not named:
            continue
        if any(given[name] is not given[named[0]] for name in named):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(named)}, which are tied. "
                "Consider using tie_weights=False"
            )
        result.update(dict.fromkeys(group, given[named[0]]))
    return result


def _check_names(module: Module, given: dict[str, Tensor]) -> None:
    own = _named_tensors(module).keys()
    complaints = [
        f"{what} key(s): {', '.join(map(repr, sorted(names)))}."
        for what, names in (("Unexpected", given.keys() - own), ("Missing", own - given.keys()))
        if names
    ]
    if complaints:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {type(module).__name__}:\n\t"
            + "\n\t".join(complaints)
        )


def _owner(module: Module, path: str) -> Module:
    """The module that a tensor of that path belongs to."""
    from ..modules.module import Module

    owner = module
    for name in path.split(".")[:-1]:
        child = getattr(owner, name, _ABSENT)
        if child is _ABSENT:
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        if not isinstance(child, Module):
            raise TypeError(f"{type(owner).__name__}.{name} is not an instance of torch.nn.Module")
        owner = child
    return owner


def _swap(module: Module, path: str, value: Any) -> Any:
    """Puts a value in the place of a tensor; gives what was there."""
    owner, name = _owner(module, path), path.rpartition(".")[2]
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    if not (value is None or value is _ABSENT or isinstance(value, _C.TensorBase)):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    stores: tuple[dict[str, Any], ...] = (owner._parameters, owner._buffers)
    for store in stores:
        if name in store:
            old = store[name]
            if value is _ABSENT:
                del store[name]
            else:
                store[name] = value
            return old
    old = getattr(owner, name, _ABSENT)
    if not (old is None or old is _ABSENT or isinstance(old, _C.TensorBase)):
        raise TypeError(f"attribute `{name}`: {old} is not an instance of torch.Tensor")
    if value is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, value)
    return old
