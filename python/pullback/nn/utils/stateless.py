"""Modules as functions of their parameters and buffers.

For the time of a call other tensors take the place of a module's own. Invariant: afterwards the
module has its own again, the same objects, whatever happened in between.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import _C

if TYPE_CHECKING:
    from ..._tensor import Tensor
    from ..modules.module import Module

__all__ = ["functional_call"]

# Stands for the absence of a tensor.
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
    """The old name of :func:`pullback.func.functional_call`."""
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
    own = _places(module)
    if tie_weights:
        given = _with_tied(own, given)
    if strict:
        _check_names(module, own, given)
    replaced: list[tuple[str, _Place, Any]] = []
    try:
        for path, tensor in given.items():
            attribute = own[path] if path in own else _attribute(module, path)
            replaced.append((path, attribute, attribute.swap(tensor)))
        yield
    finally:
        for path, attribute, old in reversed(replaced):
            current = attribute.swap(old)
            if path in parameters_and_buffers and current is not _ABSENT:
                parameters_and_buffers[path] = current


class _Place(NamedTuple):
    """The dictionary, or attribute, in which a module keeps a tensor."""

    owner: Module
    name: str
    store: dict[str, Any] | None

    def get(self) -> Any:
        if self.store is not None:
            return self.store.get(self.name, _ABSENT)
        return getattr(self.owner, self.name, _ABSENT)

    def swap(self, value: Any) -> Any:
        """Stores a value there; returns the previous one."""
        if not (value is None or value is _ABSENT or isinstance(value, _C.TensorBase)):
            raise TypeError(f"{value} is not an instance of torch.Tensor")
        old = self.get()
        if self.store is not None:
            self.store[self.name] = value
            return old
        if not (old is None or old is _ABSENT or isinstance(old, _C.TensorBase)):
            raise TypeError(f"attribute `{self.name}`: {old} is not an instance of torch.Tensor")
        if value is _ABSENT:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, value)
        return old


def _places(module: Module) -> dict[str, _Place]:
    """All parameters and buffers by path, those with several names under each of them."""
    found: dict[str, _Place] = {}
    for prefix, owner in _owners(module, "", ()):
        for store in (owner._parameters, owner._buffers):
            for name, tensor in store.items():
                if tensor is not None:
                    path = f"{prefix}.{name}" if prefix else name
                    found[path] = _Place(owner, name, store)
    return found


def _owners(module: Module, prefix: str, above: tuple[Module, ...]) -> Iterator[tuple[str, Module]]:
    """A module and those below it by path, also under several; not again below themselves."""
    yield prefix, module
    above = (*above, module)
    for name, child in module._modules.items():
        if child is not None and not any(child is each for each in above):
            yield from _owners(child, f"{prefix}.{name}" if prefix else name, above)


def _attribute(module: Module, path: str) -> _Place:
    """The error for a path that leads to no parameter and no buffer."""
    above, _, name = path.rpartition(".")
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    owner = _owner(module, above.split(".") if above else [])
    for store in (owner._parameters, owner._buffers):
        if name in store:
            return _Place(owner, name, store)
    return _Place(owner, name, None)


def _with_tied(own: dict[str, _Place], given: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors that are given, also under the other names of those that they replace."""
    names: dict[int, list[str]] = {}
    for path, attribute in own.items():
        names.setdefault(id(attribute.get()), []).append(path)
    result = dict(given)
    for group in names.values():
        if len(group) == 1:
            continue
        named = [path for path in group if path in given]
        if not named:
            continue
        if any(given[path] is not given[named[0]] for path in named):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(named)}, which are tied. "
                "Consider using tie_weights=False"
            )
        result.update(dict.fromkeys(group, given[named[0]]))
    return result


def _check_names(module: Module, own: dict[str, _Place], given: dict[str, Tensor]) -> None:
    complaints = [
        f"{what} key(s): {', '.join(map(repr, sorted(names)))}."
        for what, names in (
            ("Unexpected", given.keys() - own.keys()),
            ("Missing", own.keys() - given.keys()),
        )
        if names
    ]
    if complaints:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {type(module).__name__}:\n\t"
            + "\n\t".join(complaints)
        )


def _owner(module: Module, path: list[str]) -> Module:
    """The module that a path of modules leads to."""
    from ..modules.module import Module

    owner = module
    for name in path:
        child = getattr(owner, name, _ABSENT)
        if child is _ABSENT:
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        if not isinstance(child, Module):
            raise TypeError(f"{type(owner).__name__}.{name} is not an instance of torch.nn.Module")
        owner = child
    return owner
