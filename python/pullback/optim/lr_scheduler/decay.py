"""Schedules that move the rate one way: by steps, by factors, along a line or a cosine.

Each rule is recursive in the present rate and has a closed form in the initial one where
that exists. Invariant: with no interference the two agree up to rounding.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ..optimizer import Optimizer
from .schedule import LRScheduler, Rate, pack_callables, unpack_callables

Factor = Callable[[int], float]


class _FunctionLR(LRScheduler):
    """What `LambdaLR` and `MultiplicativeLR` share: one function per group."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Factor | list[Factor], last_epoch: int = -1
    ) -> None:
        self.optimizer = optimizer
        count = len(optimizer.param_groups)
        self.lr_lambdas: list[Factor]
        if not isinstance(lr_lambda, (list, tuple)):
            self.lr_lambdas = [lr_lambda] * count
        elif len(lr_lambda) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
        else:
            self.lr_lambdas = list(lr_lambda)
        self._check_functions()
        super().__init__(optimizer, last_epoch)

    def _check_functions(self) -> None:
        pass

    def state_dict(self) -> dict[str, Any]:
        """Every attribute but the optimiser; of the functions, only callable objects' state."""
        state = super().state_dict()
        state["lr_lambdas"] = pack_callables(state.pop("lr_lambdas"))
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` returned; the functions themselves stay."""
        rest = {key: value for key, value in state_dict.items() if key != "lr_lambdas"}
        self.__dict__.update(rest)
        unpack_callables(self.lr_lambdas, state_dict["lr_lambdas"])


class LambdaLR(_FunctionLR):
    """`lr = initial_lr * lr_lambda(t)`; one function, or a list of one per group."""

    def get_lr(self) -> list[Rate]:
        """The initial rates times the functions at `last_epoch`."""
        self._warn_outside_step()
        return [
            base * function(self.last_epoch)
            for function, base in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]


class MultiplicativeLR(_FunctionLR):
    """`lr <- lr * lr_lambda(t)`; one function, or a list of one per group.

    Raises `TypeError` for what is not callable.
    """

    def _check_functions(self) -> None:
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(
                    f"lr_lambda should be a function, but got {type(function).__name__}"
                )

    def get_lr(self) -> list[Rate]:
        """The present rates times the functions at `last_epoch`."""
        self._warn_outside_step()
        if self._is_initial:
            return self._present_lrs()
        return [
            group["lr"] * function(self.last_epoch)
            for function, group in zip(self.lr_lambdas, self.optimizer.param_groups, strict=True)
        ]


class StepLR(LRScheduler):
    """`lr <- lr * gamma` every `step_size` steps."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The present rates, times `gamma` at a multiple of `step_size`."""
        self._warn_outside_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._present_lrs()
        return self._scaled_lrs(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        factor = self.gamma ** (self.last_epoch // self.step_size)
        return [base * factor for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """`lr <- lr * gamma` at each of `milestones`; one named n times counts n times."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The present rates, times `gamma` at a milestone."""
        self._warn_outside_step()
        if self.last_epoch not in self.milestones:
            return self._present_lrs()
        return self._scaled_lrs(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Rate]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """`lr = initial_lr * factor` for `total_iters` steps, then `initial_lr`.

    Raises `ValueError` unless `0 <= factor <= 1`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError(
                f"Constant multiplicative factor expected to be between 0 and 1, but got {factor}."
            )
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The present rates, times `factor` at the start and `1 / factor` at the end."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._scaled_lrs(self.factor)
        if self.last_epoch != self.total_iters:
            return self._present_lrs()
        return self._scaled_lrs(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Rate]:
        is_over = self.last_epoch >= self.total_iters
        return [base * (self.factor + is_over * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """`lr = initial_lr * f`, `f` on a line from `start_factor` to `end_factor`.

    The line is `total_iters` steps long. Raises `ValueError` unless `0 < start_factor <= 1`
    and `0 <= end_factor <= 1`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or "
                f"equal to 1, but got {start_factor}."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError(
                "Ending multiplicative factor expected to be between 0 and 1, "
                f"but got {end_factor}."
            )
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The present rates times the quotient of two neighbouring factors of the line."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._scaled_lrs(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present_lrs()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._scaled_lrs(1.0 + rise / before)

    def _get_closed_form_lr(self) -> list[Rate]:
        rise = self.end_factor - self.start_factor
        done = min(self.total_iters, self.last_epoch)
        return [
            base * (self.start_factor + rise * done / self.total_iters) for base in self.base_lrs
        ]


class ExponentialLR(LRScheduler):
    """`lr <- lr * gamma` at every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The present rates times `gamma`."""
        self._warn_outside_step()
        return self._present_lrs() if self._is_initial else self._scaled_lrs(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """`lr = initial_lr * (1 - t / total_iters) ** power`, and 0 from `total_iters` on."""

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The present rates times the quotient of two neighbouring values of the polynomial."""
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present_lrs()
        now = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._scaled_lrs((now / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Rate]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """`lr = eta_min + (initial_lr - eta_min) (1 + cos(pi t / T_max)) / 2`, without restarts.

    Past `T_max` the cosine goes on and the rate rises again.

    Source: Loshchilov and Hutter, SGDR, 2017, equation 5.
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """The present rates, scaled from one value of the cosine to the next."""
        self._warn_outside_step()
        if self._is_initial:
            return self._present_lrs()
        time, low = self.last_epoch, self.eta_min
        if self._step_count == 1 and time > 0:
            return self._on_curve(math.cos(time * math.pi / self.T_max))
        if (time - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The value before was the minimum: the quotient below would divide by zero.
            rise = 1 - math.cos(math.pi / self.T_max)
            return [
                group["lr"] + (base - low) * rise / 2
                for base, group in zip(self.base_lrs, self.optimizer.param_groups, strict=True)
            ]
        now = 1 + math.cos(math.pi * time / self.T_max)
        before = 1 + math.cos(math.pi * (time - 1) / self.T_max)
        return [now / before * (group["lr"] - low) + low for group in self.optimizer.param_groups]

    def _on_curve(self, cosine: float) -> list[Rate]:
        low = self.eta_min
        return [low + (base - low) * (1 + cosine) / 2 for base in self.base_lrs]

    def _get_closed_form_lr(self) -> list[Rate]:
        return self._on_curve(math.cos(math.pi * self.last_epoch / self.T_max))
