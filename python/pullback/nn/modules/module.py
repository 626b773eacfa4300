"""The base class of all neural network modules: registration, calls with hooks, printing.

``Module`` inherits its tree walks (``traversal.py``), conversions (``conversion.py``) and saving
(``state.py``). Invariant: parameters, buffers and submodules live in their own dictionaries, never
in the instance ``__dict__``, so a name means exactly one thing. Start at ``_call_with_hooks``:
without hooks anywhere a call is native, one test and the call of ``forward``.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from ... import _C
from ..._hooks import RemovableHandle
from ..._tensor import Tensor
from ..parameter import Buffer, Parameter
from . import _base
from . import hook as _hook
from ._base import typename
from .hook import (
    HookDict,
    insert,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from .state import _EXTRA_STATE_KEY_SUFFIX as _EXTRA_STATE_KEY_SUFFIX
from .state import State, _IncompatibleKeys

if TYPE_CHECKING:
    from typing_extensions import Self

    from .backward_hook import BackwardHook

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_CALL_HOOKS = frozenset(
    ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
)


def _forward_unimplemented(self: Module, *input: Any) -> None:
    """What a subclass must define: the computation performed at every call."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


def _new_state() -> dict[str, Any]:
    """The instance attributes that every module starts with."""
    return {
        "training": True,
        "_parameters": {},
        "_buffers": {},
        "_non_persistent_buffers_set": set(),
        "_backward_pre_hooks": HookDict(),
        "_backward_hooks": HookDict(),
        "_is_full_backward_hook": None,
        "_forward_hooks": HookDict(),
        "_forward_hooks_with_kwargs": OrderedDict(),
        "_forward_hooks_always_called": OrderedDict(),
        "_forward_pre_hooks": HookDict(),
        "_forward_pre_hooks_with_kwargs": OrderedDict(),
        "_state_dict_hooks": OrderedDict(),
        "_state_dict_pre_hooks": OrderedDict(),
        "_load_state_dict_pre_hooks": OrderedDict(),
        "_load_state_dict_post_hooks": OrderedDict(),
        "_modules": {},
    }


class _CallSignature:
    """The signature of a module, whose call is native; classes have signatures of their own."""

    def __get__(self, module: Any, owner: type) -> inspect.Signature:
        if module is None:
            raise AttributeError("__signature__")
        return inspect.signature(_any_arguments)


def _any_arguments(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


class Module(State, _C._ModuleBase):
    """Base class of all neural network modules.

    A model subclasses it, assigns parameters and submodules as attributes, and defines
    ``forward``::

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Linear(4, 8)
                self.outer = nn.Linear(8, 2)

            def forward(self, x):
                return self.outer(self.inner(x).relu())

    ``super().__init__()`` comes before the first assignment of a parameter or module.

    Attributes:
        training: whether the module is in training mode (:meth:`train`) or not (:meth:`eval`).
    """

    # The type of arguments and results of `state_dict`, in annotations.
    T_destination = TypeVar("T_destination", bound=dict[str, Any])

    __signature__ = _CallSignature()

    # With True, the remaining arguments go on to the next class of the inheritance order.
    call_super_init: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            name = f"{type(self).__name__}.__init__()"
            if kwargs:
                unknown = next(iter(kwargs))
                raise TypeError(f"{name} got an unexpected keyword argument '{unknown}'")
            raise TypeError(f"{name} takes 1 positional argument but {len(args) + 1} were given")
        self.__dict__.update(_new_state())
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _C._quicken_module(cls)

    forward: Callable[..., Any] = _forward_unimplemented

    # ---- calls ----

    # `__call__` is native: `forward` and plain forward hooks; with hooks of any other kind it is
    # `_call_with_hooks`. Here is the name by which programs written for PyTorch reach it.
    _call_impl: Callable[..., Any] = _C._ModuleBase.__call__

    def _call_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """One call of a module that has hooks of some kind."""
        done: set[int] = set()
        call: dict[str, Any] = {"args": args, "kwargs": kwargs, "result": None}
        try:
            return self._run_hooks(call, done)
        except Exception:
            self._run_always_called(call, done)
            raise

    def _run_hooks(self, call: dict[str, Any], done: set[int]) -> Any:
        """The stages of a call in order; ``call`` holds what the next stage is given."""
        pre_hooks = [*_hook.backward_pre_hooks.values(), *self._backward_pre_hooks.values()]
        full, partial = self._get_backward_hooks()
        self._run_forward_pre_hooks(call)
        backward: BackwardHook | None = None
        if full or pre_hooks:
            from .backward_hook import BackwardHook

            backward = BackwardHook(self, full, pre_hooks)
            call["args"] = backward.setup_input_hook(call["args"])
        call["result"] = self.forward(*call["args"], **call["kwargs"])
        self._run_forward_hooks(call, done)
        if backward is not None:
            result = call["result"]
            if not isinstance(result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a "
                    f"tuple of Tensors but received {type(result)}",
                    stacklevel=4,
                )
            call["result"] = backward.setup_output_hook(result)
        if partial:
            from .backward_hook import attach_to_result

            attach_to_result(self, partial, call["args"], call["result"])
        return call["result"]

    def _run_forward_pre_hooks(self, call: dict[str, Any]) -> None:
        hooks = (*_hook.forward_pre_hooks.items(), *self._forward_pre_hooks.items())
        for id_, hook in hooks:
            if id_ not in self._forward_pre_hooks_with_kwargs:
                args = hook(self, call["args"])
                if args is not None:
                    call["args"] = args if isinstance(args, tuple) else (args,)
                continue
            both = hook(self, call["args"], call["kwargs"])
            if both is None:
                continue
            if not isinstance(both, tuple) or len(both) != 2:
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {both}."
                )
            call["args"], call["kwargs"] = both

    def _run_forward_hooks(self, call: dict[str, Any], done: set[int]) -> None:
        for id_, hook in (*_hook.forward_hooks.items(), *self._forward_hooks.items()):
            done.add(id_)
            self._run_forward_hook(id_, hook, call)

    def _run_forward_hook(self, id_: int, hook: Any, call: dict[str, Any]) -> None:
        if id_ in self._forward_hooks_with_kwargs or id_ in _hook.forward_hooks_with_kwargs:
            result = hook(self, call["args"], call["kwargs"], call["result"])
        else:
            result = hook(self, call["args"], call["result"])
        if result is not None:
            call["result"] = result

    def _run_always_called(self, call: dict[str, Any], done: set[int]) -> None:
        """Runs, after an exception, the hooks with `always_call` that did not run yet."""
        for kind, hooks, wanted in (
            ("global module", _hook.forward_hooks, _hook.forward_hooks_always_called),
            ("module", self._forward_hooks, self._forward_hooks_always_called),
        ):
            for id_, hook in list(hooks.items()):
                if id_ not in wanted or id_ in done:
                    continue
                try:
                    self._run_forward_hook(id_, hook, call)
                except Exception as error:
                    warnings.warn(
                        f"{kind} forward hook with ``always_call=True`` raised an exception "
                        f"that was silenced as another error was raised in forward: {error}",
                        stacklevel=4,
                    )

    def _get_backward_hooks(self) -> tuple[list[Any], list[Any]]:
        """The full backward hooks, and those of the older kind."""
        full: list[Any] = []
        partial: list[Any] = []
        for hooks, is_full in (
            (_hook.backward_hooks, _hook.is_full_backward),
            (self._backward_hooks, self._is_full_backward_hook),
        ):
            (full if is_full else partial).extend(hooks.values())
        return full, partial

    # ---- hooks ----

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, args)`` before every :meth:`forward`.

        Args:
            hook: may return new arguments: a tuple, or a single value that becomes one.
            prepend: whether it runs before the hooks that are registered already.
            with_kwargs: the hook is called as ``hook(module, args, kwargs)`` and may return
                ``(args, kwargs)``.

        Returns:
            A handle whose ``remove()`` takes the hook away.
        """
        hooks, flags = self._forward_pre_hooks, self._forward_pre_hooks_with_kwargs
        handle = insert(hooks, hook, flags)
        if with_kwargs:
            flags[handle.id] = True
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls ``hook(module, args, output)`` after every :meth:`forward`.

        Args:
            hook: may return a new output.
            prepend: whether it runs before the hooks that are registered already.
            with_kwargs: the hook is called as ``hook(module, args, kwargs, output)``.
            always_call: whether it runs even when ``forward`` raised.

        Returns:
            A handle whose ``remove()`` takes the hook away.
        """
        hooks = self._forward_hooks
        flags, always = self._forward_hooks_with_kwargs, self._forward_hooks_always_called
        handle = insert(hooks, hook, flags, always)
        if with_kwargs:
            flags[handle.id] = True
        if always_call:
            always[handle.id] = True
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, grad_output)`` before the module's gradients are computed.

        ``grad_output`` is a tuple with one entry per output; the hook may return another.
        """
        handle = insert(self._backward_pre_hooks, hook)
        if prepend:
            self._backward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls ``hook(module, grad_input, grad_output)`` when gradients of inputs are known.

        Both are tuples, one entry per positional argument and per output, ``None`` where there
        is no tensor. The hook may return another ``grad_input``.

        Raises:
            RuntimeError: hooks of :meth:`register_backward_hook` exist on the module.
        """
        self._claim_backward_hooks(True)
        handle = insert(self._backward_hooks, hook)
        if prepend:
            self._backward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older form of :meth:`register_full_backward_hook`; sees one node's gradients."""
        self._claim_backward_hooks(False)
        return insert(self._backward_hooks, hook)

    def _claim_backward_hooks(self, full: bool) -> None:
        known = self._is_full_backward_hook
        if known is not None and known is not full:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a "
                "single Module. Please use only one of them."
            )
        self._is_full_backward_hook = full

    # ---- registration ----

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a buffer: a tensor that is state of the module but not a parameter.

        Args:
            name: the attribute under which it is reached.
            tensor: the buffer; with ``None`` the name exists but is not saved.
            persistent: whether it is part of :meth:`state_dict`.

        Raises:
            TypeError, KeyError: the name or the value is unfit, or the name is taken.
        """
        self._check_name("buffer", name, "_buffers", "cannot assign buffer")
        if tensor is not None and not _is_tensor_like(tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        tensor = _hook.registered(_hook.buffer_registration_hooks, self, name, tensor)
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter.

        Args:
            name: the attribute under which it is reached.
            param: the parameter; with ``None`` the name exists but holds nothing.

        Raises:
            TypeError, KeyError: the name or the value is unfit, or the name is taken.
            ValueError: the parameter has a history, i.e. is not a leaf.
        """
        self._check_name("parameter", name, "_parameters", "cannot assign parameter")
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                f"created explicitly. To express '{name}' as a function of another Tensor, "
                "compute the value in the forward() method."
            )
        self._parameters[name] = _hook.registered(
            _hook.parameter_registration_hooks, self, name, param
        )

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule under the attribute ``name``.

        Raises:
            TypeError, KeyError: the name or the value is unfit, or the name is taken.
        """
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, "_modules", "cannot assign module")
        self._modules[name] = _hook.registered(_hook.module_registration_hooks, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Alias of :meth:`add_module`."""
        self.add_module(name, module)

    def _check_name(self, kind: str, name: Any, store: str, refusal: str) -> None:
        members = self.__dict__.get(store)
        if members is None:
            raise AttributeError(f"{refusal} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            detail = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{detail}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in members and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    # ---- attributes ----

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        params = own.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, None)
        elif isinstance(value, Module) or name in own.get("_modules", ()):
            self._set_module(name, value)
        elif isinstance(value, Buffer) or name in own.get("_buffers", ()):
            self._set_buffer(name, value)
        else:
            if name in _CALL_HOOKS and type(value) is not HookDict:
                value = HookDict(value)
            super().__setattr__(name, value)

    def _forget(self, name: str, *stores: str) -> None:
        """Removes an attribute that is about to become something of another kind."""
        own = self.__dict__
        own.pop(name, None)
        for store in stores:
            own[store].pop(name, None)
        own["_non_persistent_buffers_set"].discard(name)

    def _set_module(self, name: str, value: Any) -> None:
        modules = self.__dict__.get("_modules")
        if modules is None:
            raise AttributeError("cannot assign module before Module.__init__() call")
        if isinstance(value, Module):
            self._forget(name, "_parameters", "_buffers")
        elif value is not None:
            raise TypeError(
                f"cannot assign '{typename(value)}' as child module '{name}' "
                "(torch.nn.Module or None expected)"
            )
        modules[name] = _hook.registered(_hook.module_registration_hooks, self, name, value)

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not _is_tensor_like(value):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            persistent = value.persistent
        else:
            persistent = name not in self.__dict__.get("_non_persistent_buffers_set", ())
        if type(self).register_buffer is Module.register_buffer or (
            "persistent" in inspect.signature(self.register_buffer).parameters
        ):
            self.register_buffer(name, value, persistent)
        elif persistent:
            self.register_buffer(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements "
                "register_buffer() without the persistent argument is not allowed."
            )

    def __delattr__(self, name: str) -> None:
        for store in (self._parameters, self._buffers, self._modules):
            if name in store:
                del store[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__]
        for store in (self._parameters, self._modules, self._buffers):
            names += store
        # Names such as "0" cannot be written after a dot.
        return sorted(name for name in names if not name[0].isdigit())

    # ---- mode ----

    def train(self, mode: bool = True) -> Self:
        """Sets training mode for the module and its submodules; returns the module.

        It matters to modules that behave differently in training, such as ``Dropout`` and
        ``BatchNorm``.

        Raises:
            ValueError: ``mode`` is not a ``bool``.
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Sets evaluation mode, as ``train(False)`` does."""
        return self.train(False)

    # ---- pickling and printing ----

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        own = self.__dict__
        own.update(state)
        for name, value in _new_state().items():
            own.setdefault(name, value)
        for name in _CALL_HOOKS:
            if type(own[name]) is not HookDict:
                own[name] = HookDict(own[name])

    def _replicate_for_data_parallel(self) -> Self:
        """A copy for another device: its own dictionaries, filled by ``nn.parallel.replicate``."""
        replica = self.__new__(type(self))
        replica.__dict__.update(self.__dict__)
        own = replica.__dict__
        own["_parameters"] = {}
        own["_buffers"] = dict(self._buffers)
        own["_modules"] = dict(self._modules)
        # The tensors in place of parameters, which are no leaves.
        own["_former_parameters"] = {}
        own["_is_replica"] = True
        return replica

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Checks the arguments of ``torch.compile``; the module runs as it is, before and after.

        Raises:
            InvalidBackend: if there is no such backend; and what else ``torch.compile`` raises.
        """
        from ... import compile

        compile(self._call_impl, *args, **kwargs)

    def extra_repr(self) -> str:
        """The text of ``repr`` in the parentheses; subclasses override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        plain = len(lines) <= 1 and not self._modules
        lines += [f"({name}): {_indented(repr(child))}" for name, child in self._modules.items()]
        body = "".join(lines) if plain else "\n  " + "\n  ".join(lines) + "\n"
        return f"{self._get_name()}({body})"

    def _repr_html_(self) -> str:
        """The HTML for notebooks: a tree that folds, with parameters and memory."""
        from ..._html import module_html

        return module_html(self)


def _is_tensor_like(value: object) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def _indented(text: str) -> str:
    """Indents all lines but the first by two; blank lines become empty."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(f"  {line}" if line.strip() else "" for line in rest)])


def _addindent(s_: str, numSpaces: int) -> str:
    """Moves all lines but the first to the right."""
    first, *rest = s_.split("\n")
    return "\n".join([first, *(" " * numSpaces + line for line in rest)])


_IncompatibleKeys.__module__ = __name__

# Who asks for the types of a module's attributes (`typing.get_type_hints`) looks them up where its
# classes are defined.
vars(_base)["Module"] = Module


class _WithHooks(ModuleType):
    """This module's class: the hooks of all modules under the names that PyTorch has for them.

    Programs that put others in their place change what is called.
    """


def _table(name: str) -> property:
    def get(space: ModuleType) -> Any:
        return getattr(_hook, name)

    def put(space: ModuleType, value: Any) -> None:
        table = getattr(_hook, name)
        if isinstance(table, dict):
            # (It is the same object, because the native call of modules reads it.)
            given = dict(value)
            table.clear()
            table.update(given)
        else:
            setattr(_hook, name, value)

    return property(get, put)


for _theirs, _ours in (
    ("_global_backward_hooks", "backward_hooks"),
    ("_global_backward_pre_hooks", "backward_pre_hooks"),
    ("_global_buffer_registration_hooks", "buffer_registration_hooks"),
    ("_global_forward_hooks", "forward_hooks"),
    ("_global_forward_hooks_always_called", "forward_hooks_always_called"),
    ("_global_forward_hooks_with_kwargs", "forward_hooks_with_kwargs"),
    ("_global_forward_pre_hooks", "forward_pre_hooks"),
    ("_global_is_full_backward_hook", "is_full_backward"),
    ("_global_module_registration_hooks", "module_registration_hooks"),
    ("_global_parameter_registration_hooks", "parameter_registration_hooks"),
):
    setattr(_WithHooks, _theirs, _table(_ours))
sys.modules[__name__].__class__ = _WithHooks


def _has_any_global_hook() -> bool:
    """Whether calls have to look for a hook of all modules."""
    return bool(
        _hook.backward_pre_hooks
        or _hook.backward_hooks
        or _hook.forward_pre_hooks
        or _hook.forward_hooks
    )
