"""Schedules that raise and lower the rate: cycles, warm restarts, the one-cycle policy.

Two of them move the momentum (or Adam's first beta) against the rate. Invariant: the
rates are a function of `last_epoch` alone, so none of these can be chained.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any, TypedDict

from ..optimizer import Optimizer
from .schedule import LRScheduler, Rate, check_optimizer, per_group, set_value


def _uses_beta1(optimizer: Optimizer) -> bool:
    """Whether the momentum of this optimiser is its first beta; `ValueError` if it has none."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
        )
    return "betas" in optimizer.defaults


def _set_momentum(group: dict[str, Any], value: float, use_beta1: bool) -> None:
    if use_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def _start_momentum(
    optimizer: Optimizer, high: list[float], low: list[float], use_beta1: bool
) -> None:
    for group, high_value, low_value in zip(optimizer.param_groups, high, low, strict=True):
        _set_momentum(group, high_value, use_beta1)
        group["max_momentum"] = high_value
        group["base_momentum"] = low_value


class CyclicLR(LRScheduler):
    """Saw-tooth between `base_lr` and `max_lr`, `step_size_up` steps up and `_down` down.

    The height of a cycle is scaled by `scale_fn`, or by `mode`: "triangular" (1),
    "triangular2" (halved each cycle), "exp_range" (`gamma ** t`). With `cycle_momentum` the
    momentum runs the other way between `base_momentum` and `max_momentum`.

    Raises `ValueError` for an unknown mode or an optimiser without momentum.
    Source: Smith, Cyclical learning rates for training neural networks, 2017.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", rate)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"mode is invalid and scale_fn is None, mode was {mode!r}")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1(optimizer)
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                _start_momentum(optimizer, self.max_momentums, self.base_momentums, self.use_beta1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The factor on the height of a cycle, from the cycle's or the step's number."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return float(1 / (2.0 ** (x - 1)))
        return float(self.gamma**x) if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Rate]:
        """The rates at `last_epoch`; sets the momentum as well with `cycle_momentum`."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        if x <= self.step_ratio:
            height = x / self.step_ratio
        else:
            height = (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(
                self.optimizer.param_groups,
                self.base_momentums,
                self.max_momentums,
                strict=True,
            ):
                _set_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        return [
            base + (high - base) * height * scale
            for base, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Every attribute but the optimiser; of a custom scale, only a callable object's state."""
        state = super().state_dict()
        custom = state["_scale_fn_custom"]
        if custom is not None:
            is_function = isinstance(custom, types.FunctionType)
            state["_scale_fn_custom"] = None if is_function else custom.__dict__.copy()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` returned; a custom scale function itself stays."""
        rest = {key: value for key, value in state_dict.items() if key != "_scale_fn_custom"}
        super().load_state_dict(rest)
        attributes = state_dict["_scale_fn_custom"]
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)


class CosineAnnealingWarmRestarts(LRScheduler):
    """A cosine from the initial rate to `eta_min` over `T_i` steps, then from the top again.

    `T_i` starts at `T_0` and grows by the factor `T_mult` at each restart. `step` also takes
    a fraction of an epoch. Raises `ValueError` for `T_0 <= 0`, `T_mult < 1` or a negative epoch.

    Source: Loshchilov and Hutter, SGDR, 2017.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The value of the cosine at `T_cur` of `T_i`."""
        self._warn_outside_step()
        cosine = math.cos(math.pi * self.T_cur / self.T_i)
        low = self.eta_min
        return [low + (base - low) * (1 + cosine) / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Moves on by one step, or to `epoch`, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur = self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i = self.T_i * self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        else:
            self._jump_to(epoch)
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set_lrs(rates)

    def _jump_to(self, epoch: float) -> None:
        if epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            # n restarts take T_0 (T_mult^n - 1) / (T_mult - 1) steps; solve for n.
            growth = self.T_mult
            restarts = int(math.log(epoch / self.T_0 * (growth - 1) + 1, growth))
            self.T_cur = epoch - self.T_0 * (growth**restarts - 1) / (growth - 1)
            self.T_i = self.T_0 * growth**restarts


class _Phase(TypedDict):
    end_step: float
    start_lr: str
    end_lr: str
    start_momentum: str
    end_momentum: str


def _phase(end_step: float, lrs: str, momentums: str) -> _Phase:
    start_lr, end_lr = lrs.split()
    start_momentum, end_momentum = momentums.split()
    return {
        "end_step": end_step,
        "start_lr": start_lr,
        "end_lr": end_lr,
        "start_momentum": start_momentum,
        "end_momentum": end_momentum,
    }


class OneCycleLR(LRScheduler):
    """One rise from `max_lr / div_factor` to `max_lr` and one fall far below the start.

    The rise takes the fraction `pct_start` of the steps, whose number is `total_steps` or
    `epochs * steps_per_epoch`; the end is the start divided by `final_div_factor`. With
    `three_phase` the fall first mirrors the rise. `anneal_strategy` is "cos" or "linear";
    the momentum runs the other way with `cycle_momentum`. Step once per batch.

    Raises `ValueError` for unusable numbers of steps and for a step past the last one.
    Source: Smith and Topin, Super-convergence, 2018.
    """

    anneal_func: Callable[[Any, Any, float], Any]

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _count_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or pct_start < 0 or pct_start > 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._schedule_phases = self._phases(pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        max_lrs = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for high, group in zip(max_lrs, optimizer.param_groups, strict=True):
                group["initial_lr"] = high / div_factor
                group["max_lr"] = high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1(optimizer)
            high_momentums = per_group("max_momentum", optimizer, max_momentum)
            low_momentums = per_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                _start_momentum(optimizer, high_momentums, low_momentums, self.use_beta1)
        super().__init__(optimizer, last_epoch)

    def _phases(self, pct_start: float, three_phase: bool) -> list[_Phase]:
        up = float(pct_start * self.total_steps) - 1
        rise = _phase(up, "initial_lr max_lr", "max_momentum base_momentum")
        last = self.total_steps - 1
        if not three_phase:
            return [rise, _phase(last, "max_lr min_lr", "base_momentum max_momentum")]
        down = float(2 * pct_start * self.total_steps) - 2
        return [
            rise,
            _phase(down, "max_lr initial_lr", "base_momentum max_momentum"),
            _phase(last, "initial_lr min_lr", "max_momentum max_momentum"),
        ]

    @staticmethod
    def _annealing_linear(start: Any, end: Any, fraction: float) -> Any:
        return (end - start) * fraction + start

    @staticmethod
    def _annealing_cos(start: Any, end: Any, fraction: float) -> Any:
        return end + (start - end) / 2.0 * (math.cos(math.pi * fraction) + 1)

    def _anneal(self, start: Any, end: Any, fraction: float) -> Any:
        if not hasattr(self, "_anneal_func_type"):
            # Checkpoints of old versions of PyTorch hold the function instead of its name.
            return self.anneal_func(start, end, fraction)
        is_linear = self._anneal_func_type == "linear"
        function = self._annealing_linear if is_linear else self._annealing_cos
        return function(start, end, fraction)

    def get_lr(self) -> list[Rate]:
        """The rates at `last_epoch`; sets the momentum as well with `cycle_momentum`."""
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start = 0.0
        phase = self._schedule_phases[-1]
        for candidate in self._schedule_phases:
            if step <= candidate["end_step"]:
                phase = candidate
                break
            if candidate is not self._schedule_phases[-1]:
                start = candidate["end_step"]
        fraction = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], fraction))
            if self.cycle_momentum:
                momentum = self._anneal(
                    group[phase["start_momentum"]], group[phase["end_momentum"]], fraction
                )
                _set_momentum(group, momentum, self.use_beta1)
        return rates


def _count_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is not None:
        if total_steps <= 0 or not isinstance(total_steps, int):
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        return total_steps
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return epochs * steps_per_epoch
