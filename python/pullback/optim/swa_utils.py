"""Averages of a model's weights along its training, equal (SWA) or exponential (EMA).

`AveragedModel` holds the averages, a function on tensors says how a new value enters; `SWALR` is
the learning-rate schedule that goes with equal averages, and `update_bn` computes the statistics of
batch normalisation anew, which averages of weights do not have.

Sources: Izmailov et al., Averaging weights leads to wider optima and better generalization, 2018;
Polyak and Juditsky, Acceleration of stochastic approximation by averaging, 1992.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias

from .. import Tensor, no_grad, tensor
from .. import int64 as _int64
from ..nn import Module
from ..nn.modules.batchnorm import _BatchNorm
from ..utils._foreach_utils import (
    _get_foreach_kernels_supported_devices,
    _group_tensors_by_device_and_dtype,
)
from .lr_scheduler.schedule import LRScheduler, Rate, per_group
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Tensors: TypeAlias = Sequence[Tensor]
AverageFn: TypeAlias = Callable[[Tensor, Tensor, Any], Tensor]
MultiAverageFn: TypeAlias = Callable[[Tensors, Tensors, Any], None]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def _interpolates(values: Tensors) -> bool:
    return values[0].is_floating_point() or values[0].is_complex()


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverageFn:
    """The function on lists `average <- decay * average + (1 - decay) * value`, in place.

    Raises `ValueError` for a decay outside `[0, 1]`.
    """
    _check_decay(decay)

    def ema_update(ema_param_list: Tensors, current_param_list: Tensors, _: Any) -> None:
        with no_grad():
            interpolates = _interpolates(ema_param_list)
            for average, value in zip(ema_param_list, current_param_list, strict=True):
                if interpolates:
                    average.lerp_(value, 1 - decay)
                else:
                    average.copy_(average * decay + value * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> MultiAverageFn:
    """The function on lists `average <- average + (value - average) / (n + 1)`, in place."""

    def swa_update(
        averaged_param_list: Tensors, current_param_list: Tensors, num_averaged: Tensor | int
    ) -> None:
        with no_grad():
            interpolates = _interpolates(averaged_param_list)
            share = float(1 / (num_averaged + 1))
            for average, value in zip(averaged_param_list, current_param_list, strict=True):
                if interpolates:
                    average.lerp_(value, share)
                else:
                    average.copy_(average + (value - average) / (num_averaged + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> AverageFn:
    """The function `decay * average + (1 - decay) * value`.

    Raises `ValueError` for a decay outside `[0, 1]`.
    """
    _check_decay(decay)

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> AverageFn:
    """The function `average + (value - average) / (n + 1)`."""

    def swa_update(
        averaged_param: Tensor, current_param: Tensor, num_averaged: Tensor | int
    ) -> Tensor:
        with no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model, `module`, whose parameters are averages of the model's.

    `update_parameters` takes the model's present values in: the first ones as they are, then by
    `avg_fn(average, value, n)` for each parameter, or `multi_avg_fn(averages, values, n)` for lists
    of one device and dtype, `n` values having been averaged. Without either, all values weigh the
    same. With `use_buffers` buffers are averaged too, else copied. The buffer `n_averaged` counts.

    Raises `AssertionError` if both functions are given.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: AverageFn | None = None,
        multi_avg_fn: MultiAverageFn | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=_int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Takes the present parameters of `model` into the averages."""
        own: Iterable[Tensor] = self.parameters()
        theirs: Iterable[Tensor] = model.parameters()
        if self.use_buffers:
            own = chain(self.module.parameters(), self.module.buffers())
            theirs = chain(model.parameters(), model.buffers())
        pairs = [
            (average.detach(), value.detach().to(average.device))
            for average, value in zip(own, theirs, strict=False)
        ]
        if self.n_averaged == 0:
            for average, value in pairs:
                average.copy_(value)
        else:
            self._average(pairs)
        if not self.use_buffers:
            for buffer, value in zip(self.module.buffers(), model.buffers(), strict=True):
                buffer.detach().copy_(value.detach().to(buffer.device))
        self.n_averaged += 1

    def _average(self, pairs: list[tuple[Tensor, Tensor]]) -> None:
        if self.avg_fn is not None:
            self._average_each(pairs, self.avg_fn)
            return
        lists: Any = [list(column) for column in zip(*pairs, strict=True)]
        for (device, _), (columns, _) in _group_tensors_by_device_and_dtype(lists).items():
            averages: Any
            values: Any
            averages, values = columns
            multi_avg_fn = self.multi_avg_fn
            # PyTorch averages lists there by default: the last bits differ.
            if multi_avg_fn is None and device.type in _get_foreach_kernels_supported_devices():
                multi_avg_fn = get_swa_multi_avg_fn()
            if multi_avg_fn is None:
                self._average_each(zip(averages, values, strict=True), get_swa_avg_fn())
            else:
                multi_avg_fn(averages, values, self.n_averaged.to(device))

    def _average_each(self, pairs: Iterable[tuple[Any, Any]], avg_fn: AverageFn) -> None:
        for average, value in pairs:
            average.copy_(avg_fn(average, value, self.n_averaged.to(average.device)))


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of batch normalisation anew, as means over all of `loader`.

    Runs `model` in training mode on each batch of `loader`, or on its first item if it is a list or
    tuple, moved to `device`; momentum and mode are afterwards as before. A model without batch
    normalisation is not run.
    """
    with no_grad():
        momenta = {}
        for module in model.modules():
            if isinstance(module, _BatchNorm):
                module.reset_running_stats()
                momenta[module] = module.momentum
        if not momenta:
            return
        was_training = model.training
        model.train()
        for module in momenta:
            # Without momentum the statistics are plain means.
            module.momentum = None
        for batch in loader:
            if isinstance(batch, (list, tuple)):
                batch = batch[0]
            model(batch if device is None else batch.to(device))
        for module, momentum in momenta.items():
            module.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the learning rate of each group to `swa_lr` within `anneal_epochs` steps, then stays.

    In step `t` the rate is `(1 - a) lr + a swa_lr`, with `a = t / anneal_epochs` for
    `anneal_strategy="linear"` and `a = (1 - cos(pi t / anneal_epochs)) / 2` for "cos". `swa_lr` is
    one value, or one for each group.

    Raises `ValueError` for another strategy, negative or fractional `anneal_epochs`, and a list of
    the wrong length.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._set_anneal_func(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _set_anneal_func(self, anneal_strategy: str) -> None:
        self._anneal_strategy = anneal_strategy
        self.anneal_func = self._cosine_anneal if anneal_strategy == "cos" else self._linear_anneal

    @staticmethod
    def _linear_anneal(t: float) -> float:
        return t

    @staticmethod
    def _cosine_anneal(t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2

    def _share(self, step: int) -> float:
        """How far the rate has gone to `swa_lr` in a step, from 0 to 1."""
        return self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))

    @staticmethod
    def _get_initial_lr(lr: Rate, swa_lr: Rate, alpha: float) -> Rate:
        """The rate before annealing, from the present one."""
        return swa_lr if alpha == 1 else (lr - alpha * swa_lr) / (1 - alpha)

    def get_lr(self) -> list[Rate]:
        """The rates of this step, one for each group; call `get_last_lr` from outside."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, "
                "please use `get_last_lr()`.",
                UserWarning,
                stacklevel=2,
            )
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        groups = self.optimizer.param_groups
        starts = [self._get_initial_lr(group["lr"], group["swa_lr"], before) for group in groups]
        return [
            group["swa_lr"] * now + lr * (1 - now) for group, lr in zip(groups, starts, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """Returns every attribute but the optimiser and the function of the strategy."""
        left_out = ("optimizer", "anneal_func")
        return {key: value for key, value in self.__dict__.items() if key not in left_out}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` returned."""
        self.__dict__.update(state_dict)
        self._set_anneal_func(self._anneal_strategy)
