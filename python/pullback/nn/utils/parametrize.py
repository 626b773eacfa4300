"""Parameters that are functions of others: what a module shows as ``weight`` is computed anew.

A parametrized module has a class of its own, made from its former one, with a property for each
parametrized tensor. What the property computes from is in ``module.parametrizations[name]``, a
`ParametrizationList`. Invariant: a module has such a class exactly while something of it is
parametrized.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..._tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.conversion import no_grad
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

# How many `cached` contexts there are, and what was computed in them: by module and name.
_cache_enabled = 0
_cache: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """A context in which each parametrized tensor is computed once, at its first use.

    Example::

        with parametrize.cached():
            output = model(x, model.weight)   # model.weight is computed once
    """
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _maybe_set(dest: Tensor, src: Tensor) -> None:
    """Gives a tensor the memory of another, unless it has it."""
    if dest is not src:
        dest.set_(src.detach())


def _register_parameter_or_buffer(module: Module, name: str, X: Tensor) -> None:
    if isinstance(X, Parameter):
        module.register_parameter(name, X)
    else:
        module.register_buffer(name, X)


def _inverted(modules: Any, value: Any, needed: bool) -> Any:
    """``value`` through the right inverses, last first.

    Args:
        modules: the parametrizations.
        value: what they are to give.
        needed: whether one without an inverse is an error; it is passed over otherwise.
    """
    for module in reversed(list(modules)):
        if hasattr(module, "right_inverse"):
            try:
                value = module.right_inverse(value)
            except NotImplementedError:
                if needed:
                    raise
        elif needed:
            raise RuntimeError(
                f"parametrization {type(module).__name__} does not implement right_inverse."
            )
    return value


class ParametrizationList(ModuleList):
    """Parametrizations of one tensor, in order, and the tensors that the first is given.

    These are ``original``, or ``original0``, ``original1``, ... when the first one's
    ``right_inverse`` gives several.

    Args:
        modules: the parametrizations.
        original: what the module had so far.
        unsafe: whether they may change shape and dtype; nothing is checked then.

    Raises:
        ValueError: no parametrization, or one that changes shape or dtype.
    """

    is_tensor: bool
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new = _inverted(self, original, needed=False)
        if not isinstance(new, Tensor) and not isinstance(new, Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._keep_one(original, new)
        else:
            self._keep_several(original, new)
        if not unsafe:
            self._check(shape, dtype)

    def _keep_one(self, original: Tensor, new: Any) -> None:
        if original.dtype != new.dtype:
            raise ValueError(
                "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
            )
        # (It stays the same object, because an optimiser may hold it.)
        with no_grad():
            _maybe_set(original, new)
        _register_parameter_or_buffer(self, "original", original)

    def _keep_several(self, original: Tensor, new: Any) -> None:
        for index, part in enumerate(new):
            if not isinstance(part, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                    f"tuple...). Got element {index} of the sequence with type "
                    f"{type(part).__name__}."
                )
            if isinstance(original, Parameter):
                part = Parameter(part, original.requires_grad)
            part.requires_grad_(original.requires_grad)
            _register_parameter_or_buffer(self, f"original{index}", part)

    def _check(self, shape: Any, dtype: Any) -> None:
        made = self()
        if not isinstance(made, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
        for what, before, after in (("dtype", dtype, made.dtype), ("shape", shape, made.shape)):
            if before != after:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, "
                    f"unless `unsafe` flag is enabled.\nunparametrized {what}: {before}\n"
                    f"parametrized {what}: {after}"
                )

    def right_inverse(self, value: Tensor) -> None:
        """Changes the originals so that the parametrized tensor is ``value``.

        Raises:
            RuntimeError: a parametrization has no ``right_inverse``.
            ValueError: what one gives does not fit the originals.
        """
        with no_grad():
            new = _inverted(self, value, needed=True)
            if self.is_tensor:
                if not isinstance(new, Tensor):
                    raise ValueError(
                        f"`right_inverse` should return a tensor. Got {type(new).__name__}"
                    )
                self._replace("original", new, "")
                return
            if not isinstance(new, Sequence):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors. Got {type(new).__name__}."
                )
            if len(new) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(new)}."
                )
            for index, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        f"`right_inverse` must return a sequence of tensors. Got element {index} "
                        f"of type {type(part).__name__}"
                    )
                self._replace(f"original{index}", part, f" {index}")

    def _replace(self, name: str, new: Tensor, which: str) -> None:
        old = getattr(self, name)
        if old.dtype != new.dtype:
            raise ValueError(
                f"The tensor{which} returned by `right_inverse` has dtype {new.dtype} while "
                f"`{name}` has dtype {old.dtype}"
            )
        _maybe_set(old, new)

    def forward(self) -> Tensor:
        """The parametrized tensor."""
        if self.is_tensor:
            originals = [self.original]
        else:
            originals = [getattr(self, f"original{i}") for i in range(self.ntensors)]
        first, *rest = self
        value: Tensor = first(*originals)
        for module in rest:
            value = module(value)
        return value


def _refuse_pickling(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(): save that, "
        "and load it into a module that is parametrized in the same way"
    )


def _deepcopied(self: Any, memo: dict[int, Any]) -> Any:
    """A copy of a parametrized module: of the same class, which cannot be pickled."""
    known = memo.get(id(self))
    if known is None:
        kind: Any = type(self)
        known = kind.__new__(kind)
        memo[id(self)] = known
        known.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return known


def _inject_new_class(module: Module) -> None:
    """Gives a module a class of its own, for properties."""
    former = type(module)
    members: dict[str, Any] = {"__getstate__": _refuse_pickling}
    if not hasattr(former, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopied
    module.__class__ = type(f"Parametrized{former.__name__}", (former,), members)


def _inject_property(module: Module, tensor_name: str) -> None:
    """Makes an attribute of a module what its parametrizations give."""

    def get(self: Any) -> Tensor:
        compute = self.parametrizations[tensor_name]
        if not _cache_enabled:
            value: Tensor = compute()
            return value
        key = (id(self), tensor_name)
        if key not in _cache:
            _cache[key] = compute()
        return _cache[key]

    def put(self: Any, value: Tensor) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(get, put))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes a parameter or buffer of a module a function of what it was.

    ``module.weight`` becomes ``parametrization(original)``, computed at every use; the original is
    ``module.parametrizations.weight.original``. Where ``parametrization`` has a method
    ``right_inverse``, the original is what that gives for the tensor, and assignments to
    ``module.weight`` go through it. A second parametrization is applied to what the first gives.

    Args:
        module: the module; changed in place.
        tensor_name: the name of the parameter or buffer.
        parametrization: maps the original to a tensor of the same shape and dtype.
        unsafe: whether shape and dtype may change; nothing is checked then.

    Returns:
        ``module``.

    Raises:
        ValueError: there is nothing of that name, or shape or dtype change.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_further(getattr(module, tensor_name), parametrization)
        own: Any = module.parametrizations[tensor_name]
        own.append(parametrization)
        own.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        members = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = members
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def _check_further(tensor: Tensor, parametrization: Any) -> None:
    """Refuses a second parametrization that changes shape or dtype, or whose inverse does."""
    made = parametrization(tensor)
    if not isinstance(made, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
    _check_alike(tensor, made, "Registering a parametrization may not change the {} of the tensor")
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(made)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
        )
    _check_alike(
        tensor,
        back,
        "The tensor returned by parametrization.right_inverse must have the same {}",
    )


def _check_alike(before: Tensor, after: Tensor, text: str) -> None:
    for what in ("dtype", "shape"):
        old, new = getattr(before, what), getattr(after, what)
        if old != new:
            raise ValueError(
                f"{text.format(what)}, unless `unsafe` flag is enabled.\n"
                f"{what} before: {old}\n{what} after: {new}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrizations.

    Args:
        module: any module.
        tensor_name: asks for one tensor alone.
    """
    own = getattr(module, "parametrizations", None)
    if not isinstance(own, ModuleDict):
        return False
    return len(own) > 0 if tensor_name is None else tensor_name in own


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Makes a parametrized tensor an ordinary parameter or buffer again.

    Args:
        module: the module; changed in place.
        tensor_name: the name.
        leave_parametrized: whether it has what the parametrizations give now; otherwise the
            original, which must be one tensor.

    Returns:
        ``module``.

    Raises:
        ValueError: it is not parametrized, or its originals are several.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    own: Any = module.parametrizations
    members = own[tensor_name]
    if members.is_tensor:
        tensor = members.original
        if leave_parametrized:
            with no_grad():
                # (It stays the same object, because an optimiser may hold it.)
                _maybe_set(tensor, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        tensor = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del own[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, tensor)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that a module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives a module the parametrizations of another, and the tensors that they are given.

    Args:
        from_module: the module that has them.
        to_module: the module that is changed; where it lacks a tensor, it gets it.
        tensor_name: one tensor alone; all that are parametrized unless given.

    Returns:
        ``to_module``.
    """
    if not is_parametrized(from_module):
        return to_module
    source: Any = from_module.parametrizations
    for name in [*source] if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for parametrization in source[name]:
            register_parametrization(to_module, name, parametrization)
        target: Any = to_module.parametrizations[name]
        keys = ["original"] if source[name].is_tensor else []
        keys += [] if keys else [f"original{i}" for i in range(source[name].ntensors)]
        for key in keys:
            setattr(target, key, getattr(source[name], key))
    return to_module
