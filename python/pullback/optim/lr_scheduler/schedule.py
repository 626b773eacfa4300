"""The base class of the schedules, and how a schedule writes a value into a group.

A schedule counts its steps in `last_epoch` and asks `get_lr` for the next rates. Most
rules are recursive (next rate from the present one), so that a rate changed from outside
or by a second schedule carries on; `_get_closed_form_lr`, where a rule has one, gives the
rate from the start value alone. Invariant: a rate that is a tensor is filled in place and
never aliased by what the schedule hands out.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from ... import Tensor
from ..optimizer import Optimizer, scalar_of

Rate: TypeAlias = Any  # a float, or a one-element tensor where the group's rate is one


def own_copy(value: Any) -> Any:
    """A clone of a tensor; anything else as it is."""
    return value.clone() if isinstance(value, Tensor) else value


def values_of(optimizer: Optimizer, key: str) -> list[Any]:
    """`group[key]` of every group, tensors cloned."""
    return [own_copy(group[key]) for group in optimizer.param_groups]


def set_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Sets `group[key]`, filling it in place if it is a tensor."""
    if isinstance(group[key], Tensor):
        group[key].fill_(scalar_of(value))
    else:
        group[key] = value


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value per group from a scalar or from a list of the right length."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * count
    elif len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {count}."
        )
    return [own_copy(item) for item in value]


def check_optimizer(optimizer: object) -> None:
    """Raises `TypeError` for what is not an `Optimizer`."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def pack_callables(functions: Iterable[Any]) -> list[dict[str, Any] | None]:
    """The attributes of callable objects; `None` for functions, which no checkpoint holds."""
    return [
        None if isinstance(function, types.FunctionType) else function.__dict__.copy()
        for function in functions
    ]


def unpack_callables(functions: Sequence[Any], saved: Iterable[dict[str, Any] | None]) -> None:
    """Puts the attributes that `pack_callables` took back into the callables."""
    for index, attributes in enumerate(saved):
        if attributes is not None:
            functions[index].__dict__.update(attributes)


class LRScheduler:
    """Base class: counts steps and sets the learning rate of each group.

    With `last_epoch=-1` the present rates become the initial ones; another value resumes,
    and every group must then hold "initial_lr".

    A subclass implements `get_lr`. Raises `TypeError` if `optimizer` is none, `KeyError`
    when resuming without "initial_lr".
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False
    _get_closed_form_lr: Callable[[], list[Rate]]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", own_copy(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{index}] when "
                    f"resuming scheduler with last_epoch >= 0 (it is {last_epoch}). Load the "
                    "optimizer's state first, or start a fresh run with last_epoch=-1."
                )
        self.base_lrs: list[Rate] = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _watch_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Returns every attribute but the optimiser."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Rate]:
        """The rates that the last step set, one per group; tensors are copies."""
        return self._last_lr

    def get_lr(self) -> list[Rate]:
        """The rates for `last_epoch`, one per group. Called by `step`; see `get_last_lr`."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Moves on by one step, or, deprecated, to the closed form at `epoch`."""
        if self._step_count == 1:
            _warn_about_order(self.optimizer)
        self._step_count += 1
        if epoch is not None:
            warn_epoch_is_deprecated()
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", None)
                rates = self.get_lr() if closed_form is None else closed_form()
        finally:
            self._get_lr_called_within_step = False
        self._set_lrs(rates)

    def _set_lrs(self, rates: list[Rate]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_value(group, "lr", rate)
        self._last_lr: list[Rate] = values_of(self.optimizer, "lr")

    def _present_lrs(self) -> list[Rate]:
        return values_of(self.optimizer, "lr")

    def _scaled_lrs(self, factor: float) -> list[Rate]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, "
                "please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )


EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. Until then, a given epoch "
    "selects the closed form where there is one."
)
_ADVICE = "See https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


def warn_epoch_is_deprecated() -> None:
    """Warns that `scheduler.step(epoch)` is on its way out."""
    warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=3)


def _step_function(optimizer: Optimizer) -> Any:
    step = optimizer.step
    return getattr(step, "__func__", step)


def _watch_steps(optimizer: Optimizer) -> None:
    """Remembers the step function in use; steps taken before the first schedule do not count."""
    if "_scheduled_step" not in optimizer.__dict__:
        optimizer.__dict__["_scheduled_step"] = _step_function(optimizer)
        optimizer._opt_called = False


def _warn_about_order(optimizer: Optimizer) -> None:
    step = _step_function(optimizer)
    if optimizer.__dict__.get("_scheduled_step", step) is not step:
        warnings.warn(
            "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
            "initialization. Please, make sure to call `optimizer.step()` before "
            f"`lr_scheduler.step()`. {_ADVICE}",
            UserWarning,
            stacklevel=3,
        )
    elif not optimizer._opt_called:
        warnings.warn(
            "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call "
            "`optimizer.step()` first: in this order the first value of the learning rate "
            f"schedule is skipped. {_ADVICE}",
            UserWarning,
            stacklevel=3,
        )
