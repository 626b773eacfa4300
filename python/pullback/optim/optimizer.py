"""The base class of all optimisers: parameter groups, state, checkpoints and hooks.

No update rule lives here. A subclass implements `step`; the base class wraps it once
per class so that step hooks run around it and so that a schedule can tell whether a
step was taken. Invariant: every entry of `param_groups` is a dict whose "params" is a
list of distinct tensors, and no tensor is in two groups. `state` maps a parameter to
a dict whose contents the subclass decides.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, ClassVar, TypeAlias, TypeVar

from .. import (
    _C,
    Tensor,
    _hooks,
    enable_grad,
    float32,
    float64,
    get_default_dtype,
)
from .._hooks import RemovableHandle

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

StateDict: TypeAlias = dict[str, Any]
ParamGroup: TypeAlias = dict[str, Any]
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
StepPreHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], tuple[Args, Kwargs] | None]
StepPostHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], None]
StateDictHook: TypeAlias = Callable[["Optimizer", StateDict], StateDict | None]
PlainHook: TypeAlias = Callable[["Optimizer"], None]
Closure: TypeAlias = Callable[[], Any]

_F = TypeVar("_F", bound=Callable[..., Any])
_H = TypeVar("_H")

_global_optimizer_pre_hooks: OrderedDict[int, StepPreHook] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, StepPostHook] = OrderedDict()

# Whether the native step kernels take all these tensors: dense ones of real floating dtypes.
are_native: Callable[[list[Tensor]], bool] = _C._are_dense_floats
_NATIVE_DEVICES = ("cpu", "cuda")
_CAPTURABLE_DEVICES = ("cuda",)


class _RequiredParameter:
    """Marks an option that each parameter group has to give itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def scalar_of(value: Any) -> Any:
    """Turns a one-element tensor of any rank into a 0-dim one; leaves the rest alone."""
    return value.squeeze() if isinstance(value, Tensor) and value.dim() != 0 else value


def step_dtype(fused: bool | None = None) -> Any:
    """The dtype of the `step` counter: f32, or f64 when that is the default dtype."""
    return float64 if not fused and get_default_dtype() == float64 else float32


def check_fused(param: Tensor) -> None:
    """Raises `RuntimeError` if `fused=True` cannot serve this parameter."""
    if param.device.type not in _NATIVE_DEVICES or not param.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of "
            f"supported devices: {list(_NATIVE_DEVICES)} but {param.dtype} and "
            f"{param.device.type}"
        )


def check_capturable(params: Iterable[Tensor], steps: Iterable[Tensor]) -> None:
    """Raises `AssertionError` unless parameters and step counters are on an accelerator."""
    for param, step in zip(params, steps, strict=True):
        device = param.device.type
        if device != step.device.type or device not in _CAPTURABLE_DEVICES:
            raise AssertionError(
                "If capturable=True, params and state_steps must be on supported devices: "
                f"{list(_CAPTURABLE_DEVICES)}, but got {device} and {step.device.type}."
            )


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether PyTorch would choose a fused kernel, or one for lists: neither on the CPU."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """On which devices a step can be part of a captured graph: on none."""
    return []


def evaluate(closure: Closure | None) -> Any:
    """Runs the closure of a step with gradients enabled; `None` without a closure."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def typename(value: object) -> str:
    """The qualified name of the class of `value`, bare for builtins."""
    cls = type(value)
    if cls.__module__ in ("builtins", ""):
        return cls.__qualname__
    return f"{cls.__module__}.{cls.__qualname__}"


def use_grad_for_differentiable(step: _F) -> _F:
    """Runs `step` without recording a graph, unless the optimiser is differentiable."""

    @functools.wraps(step)
    def wrapper(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        previous = _C.is_grad_enabled()
        _C._set_grad_enabled(bool(self.defaults["differentiable"]))
        try:
            return step(self, *args, **kwargs)
        finally:
            _C._set_grad_enabled(previous)

    return wrapper  # type: ignore[return-value]


_use_grad_for_differentiable = use_grad_for_differentiable


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[_F], _F]:
    """A decorator that changes nothing: nothing is compiled."""
    return lambda function: function


def _get_value(x: Any) -> Any:
    """The number in a tensor of one element; what is no tensor, as it is."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """A tensor without dimensions; what is no tensor, as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def _dispatch_sqrt(x: Any) -> Any:
    """The square root of a number or a tensor."""
    return x.sqrt() if isinstance(x, Tensor) else math.sqrt(x)


def _stack_if_compiling(x: Any) -> Any:
    """The list as it is: nothing is compiled."""
    return x


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """The dtype of counters of steps."""
    if is_fused:
        return _C.float32
    return _C.float64 if get_default_dtype() == _C.float64 else _C.float32


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Puts real views in the place of complex tensors, in each of parallel lists."""
    for place, param in enumerate(params):
        if param.is_complex():
            for each in (params, *state_and_grads):
                each[place] = _real(each[place])


def _real(tensor: Tensor) -> Tensor:
    seen: Tensor = _C._VariableFunctions.view_as_real(tensor)
    return seen


def _add_hook(hooks: OrderedDict[int, _H], hook: _H, prepend: bool = False) -> RemovableHandle:
    handle = _hooks.add(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: StepPreHook) -> RemovableHandle:
    """Adds a hook `hook(optimizer, args, kwargs)` that runs before the step of any optimiser.

    It returns `None`, or the pair `(args, kwargs)` to call the step with instead.
    """
    return _add_hook(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: StepPostHook) -> RemovableHandle:
    """Adds a hook `hook(optimizer, args, kwargs)` that runs after the step of any optimiser."""
    return _add_hook(_global_optimizer_post_hooks, hook)


class Optimizer:
    """Base class: keeps parameter groups, their options and per-parameter state.

    `params` is an iterable of tensors, of `(name, tensor)` pairs, or of dicts with a
    "params" key whose further keys override `defaults` for that group.

    Raises `TypeError` for a bare tensor, `ValueError` for no parameters at all.
    """

    # An AMP gradient scaler sets these on the instance for one fused step; else there are none.
    grad_scale: Tensor | None
    found_inf: Tensor | None
    # Set by every step; a schedule reads it to warn about the order of calls.
    _opt_called: bool = False

    _HOOK_TABLES: ClassVar[tuple[str, ...]] = (
        "_optimizer_step_pre_hooks",
        "_optimizer_step_post_hooks",
        "_optimizer_state_dict_pre_hooks",
        "_optimizer_state_dict_post_hooks",
        "_optimizer_load_state_dict_pre_hooks",
        "_optimizer_load_state_dict_post_hooks",
    )
    _optimizer_step_pre_hooks: OrderedDict[int, StepPreHook]
    _optimizer_step_post_hooks: OrderedDict[int, StepPostHook]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, PlainHook]
    _optimizer_state_dict_post_hooks: OrderedDict[int, StateDictHook]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, StateDictHook]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, PlainHook]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hook_tables()
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors "
                f"or dicts, but got {typename(params)}"
            )
        if isinstance(params, set):
            warnings.warn(
                "optimizer parameters need to be organized in ordered collections; the order "
                "of a set differs between runs. Pass a list: sets will become an error.",
                FutureWarning,
                stacklevel=2,
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[ParamGroup] = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: list[list[Tensor | None]], with_indices: bool = False
    ) -> Any:
        """Parallel lists cut into groups of one device and dtype."""
        from ..utils._foreach_utils import _group_tensors_by_device_and_dtype

        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def _make_hook_tables(self) -> None:
        for table in self._HOOK_TABLES:
            self.__dict__.setdefault(table, OrderedDict())

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hook_tables()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for number, group in enumerate(self.param_groups):
            text += f"\nParameter Group {number}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    # --- the step and its hooks ---------------------------------------------------------

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps a `step` function so that it runs the step hooks around it."""

        @functools.wraps(func)
        def wrapper(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
            self._opt_called = True
            if not (
                self._optimizer_step_pre_hooks
                or self._optimizer_step_post_hooks
                or _global_optimizer_pre_hooks
                or _global_optimizer_post_hooks
            ):
                return func(self, *args, **kwargs)
            return _step_with_hooks(func, (self, *args), kwargs)

        return wrapper

    def _patch_step_function(self) -> None:
        # Once per class and not in __init_subclass__: a program may replace `step` on the
        # class before it makes the first optimiser.
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            wrapped = self.profile_hook_step(cls.step)
            wrapped.hooked = True  # type: ignore[attr-defined]
            cls.step = wrapped  # type: ignore[method-assign]

    def step(self, closure: Closure | None = None) -> Any:
        """Updates the parameters once. `closure` re-evaluates the model and returns the loss."""
        raise NotImplementedError

    def register_step_pre_hook(self, hook: StepPreHook) -> RemovableHandle:
        """Adds `hook(optimizer, args, kwargs) -> None | (args, kwargs)` before each step."""
        return _add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: StepPostHook) -> RemovableHandle:
        """Adds `hook(optimizer, args, kwargs) -> None` after each step."""
        return _add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: PlainHook, prepend: bool = False
    ) -> RemovableHandle:
        """Adds `hook(optimizer)` that runs before `state_dict` collects."""
        return _add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: StateDictHook, prepend: bool = False
    ) -> RemovableHandle:
        """Adds `hook(optimizer, state_dict)`; what it returns, if anything, is the result."""
        return _add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: StateDictHook, prepend: bool = False
    ) -> RemovableHandle:
        """Adds `hook(optimizer, state_dict)`; what it returns, if anything, is loaded."""
        return _add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: PlainHook, prepend: bool = False
    ) -> RemovableHandle:
        """Adds `hook(optimizer)` that runs after `load_state_dict`."""
        return _add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or with `set_to_none=False` zeroes them."""
        if set_to_none:
            for group in self.param_groups:
                for param in group["params"]:
                    param.grad = None
            return
        for group in self.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # --- checkpoints --------------------------------------------------------------------

    def state_dict(self) -> StateDict:
        """Returns `{"state": ..., "param_groups": ...}` with parameters as running numbers."""
        for pre_hook in self._optimizer_state_dict_pre_hooks.values():
            pre_hook(self)
        numbers: dict[int, int] = {}
        packed_groups = []
        start = 0
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for number, param in enumerate(group["params"], start):
                numbers.setdefault(id(param), number)
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            start += len(packed["params"])
            packed_groups.append(packed)
        result: StateDict = {
            "state": {
                (numbers[id(key)] if isinstance(key, Tensor) else key): value
                for key, value in self.state.items()
            },
            "param_groups": packed_groups,
        }
        for post_hook in self._optimizer_state_dict_post_hooks.values():
            replacement = post_hook(self, result)
            if replacement is not None:
                result = replacement
        return result

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Takes over a `state_dict()`; tensors are copied to each parameter's dtype and device.

        Raises `ValueError` when the groups do not match in number or size.
        """
        state_dict = state_dict.copy()
        for pre_hook in self._optimizer_load_state_dict_pre_hooks.values():
            replacement = pre_hook(self, state_dict)
            if replacement is not None:
                state_dict = replacement
        saved_groups = deepcopy(state_dict["param_groups"])
        self._check_groups(saved_groups)
        by_number = dict(
            zip(
                chain.from_iterable(group["params"] for group in saved_groups),
                chain.from_iterable(group["params"] for group in self.param_groups),
                strict=True,
            )
        )
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_number:
                param = by_number[key]
                state[param] = self._fit(param, value, key, state_dict["param_groups"])
            else:
                state[key] = value
        for group, saved in zip(self.param_groups, saved_groups, strict=True):
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for post_hook in self._optimizer_load_state_dict_post_hooks.values():
            post_hook(self)

    def _check_groups(self, saved_groups: list[ParamGroup]) -> None:
        if len(self.param_groups) != len(saved_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups: "
                f"{len(saved_groups)} against {len(self.param_groups)}"
            )
        for number, (own, saved) in enumerate(zip(self.param_groups, saved_groups, strict=True)):
            if len(own["params"]) != len(saved["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size "
                    f"of optimizer's group: group {number} has {len(saved['params'])} "
                    f"parameters against {len(own['params'])}"
                )

    @classmethod
    def _fit(
        cls,
        param: Tensor,
        value: Any,
        number: int,
        groups: list[ParamGroup],
        key: str | None = None,
    ) -> Any:
        """Rebuilds a state value with every tensor in it moved to where `param` is."""
        if isinstance(value, Tensor):
            return cls._process_value_according_to_param_policy(param, value, number, groups, key)
        if isinstance(value, dict):
            return {k: cls._fit(param, v, number, groups, k) for k, v in value.items()}
        if isinstance(value, (str, bytes)):
            return value
        if isinstance(value, Iterable):
            return type(value)(  # type: ignore[call-arg]
                cls._fit(param, item, number, groups) for item in value
            )
        return value

    @staticmethod
    def _process_value_according_to_param_policy(
        param: Tensor,
        value: Tensor,
        param_id: int,
        param_groups: list[ParamGroup],
        key: str | None = None,
    ) -> Tensor:
        """Casts a state tensor like its parameter; `step` counters keep their own dtype."""
        placed: Tensor = value
        if key == "step":
            group = next((group for group in param_groups if param_id in group["params"]), {})
            if group.get("fused", False) or group.get("capturable", False):
                placed = value.to(dtype=float32, device=param.device)
        elif param.is_floating_point():
            placed = value.to(dtype=param.dtype, device=param.device)
        else:
            placed = value.to(device=param.device)
        return placed

    # --- groups -------------------------------------------------------------------------

    def add_param_group(self, param_group: ParamGroup) -> None:
        """Adds a group: a dict with "params" and any options that differ from the defaults.

        Raises `TypeError` for what is not a dict, for a set, or for anything but tensors;
        `ValueError` for a non-leaf tensor, a missing option, a tensor of another group, or a
        mix of groups with and without parameter names.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        _unpack_params(param_group)
        params = param_group["params"]
        for param in params:
            self._check_param(param)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization "
                    f"parameter {name}"
                )
            param_group.setdefault(name, default)
        seen = {id(param) for param in params}
        if len(seen) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; "
                "in future, this will cause an error",
                stacklevel=3,
            )
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                kind = "with names" if "param_names" in param_group else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {kind} to the optimizer"
                )
            if any(id(param) in seen for param in group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _check_param(self, param: Any) -> None:
        if not isinstance(param, Tensor):
            raise TypeError(
                f"optimizer can only optimize Tensors, but one of the params is {typename(param)}"
            )
        if not self.defaults.get("differentiable") and not (param.is_leaf or param.retains_grad):
            raise ValueError("can't optimize a non-leaf Tensor")


def _unpack_params(group: ParamGroup) -> None:
    """Makes group["params"] a list of tensors and moves names into group["param_names"]."""
    params = group["params"]
    if isinstance(params, Tensor):
        params = [params]
    elif isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the "
            "ordering of tensors in sets will change between runs. Please use a list instead."
        )
    entries = list(params)
    names = [entry[0] for entry in entries if isinstance(entry, tuple)]
    group["params"] = [entry[1] if isinstance(entry, tuple) else entry for entry in entries]
    if not names:
        return
    if len(names) != len(entries):
        raise ValueError(
            "all optimizer params should be with/without names. Some param names are missing: "
            f"{len(names)} of {len(entries)} are named"
        )
    group["param_names"] = names


def _step_with_hooks(func: Callable[..., Any], args: Args, kwargs: Kwargs) -> Any:
    optimizer: Optimizer = args[0]
    pre_hooks = (
        *_global_optimizer_pre_hooks.values(),
        *optimizer._optimizer_step_pre_hooks.values(),
    )
    for pre_hook in pre_hooks:
        result = pre_hook(optimizer, args, kwargs)
        if result is None:
            continue
        if not (isinstance(result, tuple) and len(result) == 2):
            raise RuntimeError(
                f"{func} must return None or a tuple of (new_args, new_kwargs), but got {result}."
            )
        args, kwargs = result
    loss = func(*args, **kwargs)
    post_hooks = (
        *optimizer._optimizer_step_post_hooks.values(),
        *_global_optimizer_post_hooks.values(),
    )
    for post_hook in post_hooks:
        post_hook(optimizer, args, kwargs)
    return loss
