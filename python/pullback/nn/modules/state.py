"""Saving a module to a dictionary and loading it back.

Part of ``Module`` (``module.py``), which inherits it. Invariant: ``state_dict`` shares storage
with the module and is flat: dotted names to tensors (and extra state), in order of registration,
with the versions of the classes in its ``_metadata`` attribute.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast, overload

from ... import __future__ as _future
from ..._hooks import RemovableHandle
from ..._tensor import Tensor
from ..parameter import Parameter, is_lazy
from .conversion import Conversion, no_grad
from .hook import BoundHook, insert

if TYPE_CHECKING:
    from .module import Module

__all__: list[str] = []

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(_Keys):
    """The keys that a ``load_state_dict`` did not find, and those that it could not place."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, "
            f"unexpected_keys={self.unexpected_keys!r})"
        )

    __str__ = __repr__


Destination = TypeVar("Destination", bound=dict[str, Any])


class _StateDict(OrderedDict[str, Any]):
    """Declares the attribute that a plain ``OrderedDict`` instance carries."""

    _metadata: OrderedDict[str, dict[str, Any]]


class State(Conversion):
    """``state_dict`` and ``load_state_dict`` with their hooks."""

    def get_extra_state(self) -> Any:
        """What a subclass wants saved besides tensors; must be picklable. Override both forms."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called."
        )

    def set_extra_state(self, state: Any) -> None:
        """Receives on loading what :meth:`get_extra_state` returned on saving."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called."
        )

    @overload
    def state_dict(
        self, *, destination: Destination, prefix: str = ..., keep_vars: bool = ...
    ) -> Destination: ...

    @overload
    def state_dict(self, *, prefix: str = ..., keep_vars: bool = ...) -> dict[str, Any]: ...

    @overload
    def state_dict(self, *args: Any, **kwargs: Any) -> Any: ...

    def state_dict(
        self,
        *args: Any,
        destination: Any = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> Any:
        """A dictionary of all parameters and persistent buffers; it shares their memory.

        Args:
            destination: the dictionary to fill; a new ``OrderedDict`` when omitted.
            prefix: put before every key.
            keep_vars: whether the tensors stay attached to autograd instead of detached.
        """
        if args:
            destination, prefix, keep_vars = _from_positional(args, destination, prefix, keep_vars)
        if destination is None:
            destination = cast(_StateDict, OrderedDict())
            destination._metadata = OrderedDict()
        metadata: dict[str, Any] = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, metadata)
            if result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = result
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Writes this module's own tensors, without those of its submodules."""
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not State.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copies values from ``state_dict`` into the module and its submodules.

        Args:
            state_dict: names to tensors, as made by :meth:`state_dict`.
            strict: whether missing and unexpected keys are errors.
            assign: whether the given tensors themselves become the module's, instead of
                being copied into it.

        Returns:
            The named tuple ``(missing_keys, unexpected_keys)``.

        Raises:
            TypeError: ``state_dict`` is not a mapping.
            RuntimeError: shapes differ, a copy failed, or keys do not match under ``strict``.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        keys = _IncompatibleKeys([], [])
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        # A copy: hooks and _load_from_state_dict of subclasses may edit it.
        entries = cast(_StateDict, OrderedDict(state_dict))
        if metadata is not None:
            entries._metadata = metadata
        _load(cast("Module", self), entries, "", metadata, assign, keys, errors)
        if strict:
            errors = _key_errors(keys) + errors
        if errors:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {self._get_name()}:\n\t" + "\n\t".join(errors)
            )
        return keys

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Loads this module's own tensors, without those of its submodules.

        Subclasses override it to accept older forms; ``local_metadata["version"]`` says which.
        """
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        own: dict[str, Tensor] = {k: p for k, p in self._parameters.items() if p is not None}
        own |= {
            name: buffer
            for name, buffer in self._buffers.items()
            if buffer is not None and name not in self._non_persistent_buffers_set
        }
        assign = bool(local_metadata.get("assign_to_params_buffers", False))
        for name, tensor in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_tensor(key, name, tensor, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys += self._find_unexpected(state_dict, prefix, own)

    def _load_tensor(
        self,
        key: str,
        name: str,
        tensor: Tensor,
        given: Any,
        assign: bool,
        error_msgs: list[str],
    ) -> None:
        if not isinstance(given, Tensor) and not hasattr(given, "__torch_function__"):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or '
                f"Tensor-like object from checkpoint but received {type(given)}"
            )
            return
        # (A tensor of a lazy module has no shape yet; one for it that has a shape gave it that.)
        lazy = is_lazy(tensor)
        # Old checkpoints hold single numbers as tensors of shape (1,).
        if not lazy and tensor.dim() == 0 and given.dim() == 1 and given.shape[0] == 1:
            given = given[0]
        if not lazy and given.shape != tensor.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {given.shape} from "
                f"checkpoint, the shape in current model is {tensor.shape}."
            )
            return
        if not lazy and tensor.is_meta and not given.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True`?)",
                stacklevel=2,
            )
        swap = _future.get_swap_module_params_on_conversion()
        try:
            with no_grad():
                if swap:
                    _swap(tensor, given, assign)
                elif assign:
                    self._assign_tensor(name, tensor, given)
                else:
                    tensor.copy_(given)
        except Exception as error:
            error_msgs.append(
                f'While {"swapping" if swap else "copying"} the parameter named "{key}", whose '
                f"dimensions in the model are {tensor.size()} and whose dimensions in the "
                f"checkpoint are {given.size()}, "
                f"an exception occurred : {error.args}."
            )

    def _assign_tensor(self, name: str, tensor: Tensor, given: Any) -> None:
        if isinstance(tensor, Parameter):
            if isinstance(given, Parameter):
                given.requires_grad_(tensor.requires_grad)
            else:
                given = Parameter(given, tensor.requires_grad)
        setattr(self, name, given)

    def _load_extra_state(
        self,
        state_dict: Any,
        prefix: str,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
    ) -> None:
        key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not State.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

    def _find_unexpected(self, state_dict: Any, prefix: str, own: Mapping[str, Any]) -> list[str]:
        unexpected = []
        extra_state_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        for key in state_dict:
            if not key.startswith(prefix) or key == extra_state_key:
                continue
            name, dot, _ = key[len(prefix) :].partition(".")
            known: Mapping[str, Any] = self._modules if dot else own
            if name not in known:
                unexpected.append(key)
        return unexpected

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, prefix, keep_vars)`` before :meth:`state_dict` collects."""
        return insert(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, state_dict, prefix, local_metadata)`` after collecting.

        The hook may edit ``state_dict`` in place and must return ``None``.
        """
        hook._from_public_api = True  # type: ignore[attr-defined]
        return insert(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Like the public form, but what the hook returns replaces the dictionary."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return insert(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls the hook before this module loads its own tensors.

        Its arguments: ``(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)``; it may edit the dictionary and the lists.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        bound = BoundHook(hook, cast("Module", self) if with_module else None)
        return insert(self._load_state_dict_pre_hooks, bound)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls ``hook(module, incompatible_keys)`` after this module was loaded.

        The hook may edit the two lists in place, which decides what ``strict`` complains
        about, and must return ``None``.
        """
        return insert(self._load_state_dict_post_hooks, hook)


def _swap(tensor: Tensor, given: Any, assign: bool) -> None:
    """Makes a module's tensor what it makes of a given one."""
    from ...utils import swap_tensors

    new: Any = tensor.module_load(given, assign=assign)
    if new is tensor or new is given:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning "
            "one of the inputs in module_load"
        )
    if isinstance(tensor, Parameter):
        if isinstance(new, Parameter):
            new.requires_grad_(tensor.requires_grad)
        else:
            new = Parameter(new, tensor.requires_grad)
    swap_tensors(tensor, new)


def _from_positional(
    args: tuple[Any, ...], destination: Any, prefix: str, keep_vars: bool
) -> tuple[Any, str, bool]:
    warnings.warn(
        "Positional args are being deprecated, use kwargs instead.", FutureWarning, stacklevel=3
    )
    if destination is None:
        destination = args[0]
    if len(args) > 1 and prefix == "":
        prefix = args[1]
    if len(args) > 2 and keep_vars is False:
        keep_vars = args[2]
    return destination, prefix, keep_vars


def _load(
    module: Module,
    entries: Any,
    prefix: str,
    metadata: Any,
    assign: bool,
    keys: _IncompatibleKeys,
    errors: list[str],
) -> None:
    """Loads a module and then its submodules; ``entries`` has only keys with ``prefix``."""
    local = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
    if assign:
        local["assign_to_params_buffers"] = assign
    missing, unexpected = keys
    module._load_from_state_dict(entries, prefix, local, True, missing, unexpected, errors)
    for name, child in module._modules.items():
        if child is not None:
            inner = f"{prefix}{name}."
            inner_entries = {k: v for k, v in entries.items() if k.startswith(inner)}
            _load(child, inner_entries, inner, metadata, assign, keys, errors)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected "
                "to return new values, if incompatible_keys need to be modified, "
                "it should be done inplace."
            )


def _key_errors(keys: _IncompatibleKeys) -> list[str]:
    errors = []
    for word, names in (("Missing", keys.missing_keys), ("Unexpected", keys.unexpected_keys)):
        if names:
            listed = ", ".join(f'"{name}"' for name in names)
            errors.append(f"{word} key(s) in state_dict: {listed}. ")
    return errors
