"""Courses of optimisers and schedules, for any library with these names.

Parameters and gradients come from a formula, not from a generator, so that a course depends
on the optimiser alone. The recorder runs this with PyTorch, the tests with pullback.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

SHAPES = ((2, 3), (4,), ())
STEPS = 6

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd_decay": ("SGD", {"lr": 0.1, "weight_decay": 0.2}),
    "sgd_maximize": ("SGD", {"lr": 0.1, "maximize": True, "weight_decay": 0.1}),
    "sgd_momentum": ("SGD", {"lr": 0.1, "momentum": 0.9}),
    "sgd_dampening": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.4}),
    "sgd_nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "adam": ("Adam", {"lr": 0.05}),
    "adam_decay": ("Adam", {"lr": 0.05, "weight_decay": 0.2}),
    "adam_amsgrad": ("Adam", {"lr": 0.05, "betas": (0.8, 0.6), "amsgrad": True}),
    "adam_maximize": ("Adam", {"lr": 0.05, "maximize": True, "eps": 1e-3}),
    "adam_decoupled": ("Adam", {"lr": 0.05, "weight_decay": 0.2, "decoupled_weight_decay": True}),
    "adamw": ("AdamW", {"lr": 0.05}),
    "adamw_amsgrad": ("AdamW", {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True}),
}


def _wave(library: Any, shape: tuple[int, ...], phase: float, dtype: Any) -> Any:
    count = math.prod(shape)
    values = [math.sin(1.7 * k + phase) for k in range(count)]
    return library.tensor(values, dtype=dtype).reshape(shape)


def make_params(library: Any, dtype: Any) -> list[Any]:
    """Three parameters of different rank."""
    return [
        _wave(library, shape, 0.3 + number, dtype).requires_grad_()
        for number, shape in enumerate(SHAPES)
    ]


def set_grads(library: Any, params: list[Any], step: int, with_gaps: bool) -> None:
    """The gradients of one step; with gaps, one parameter in turn has none."""
    for number, param in enumerate(params):
        param.grad = _wave(library, tuple(param.shape), 0.9 * step + 2 * number, param.dtype)
        if with_gaps and (step + number) % 3 == 0:
            param.grad = None


def optimizer_course(
    library: Any, case: str, with_gaps: bool = False, dtype: str = "float32", **more: Any
) -> list[list[float]]:
    """The parameters, flattened, after the last step."""
    name, options = OPTIMIZERS[case]
    params = make_params(library, getattr(library, dtype))
    groups = [{"params": params[:2]}, {"params": params[2:], "lr": 0.02}]
    optimizer = getattr(library.optim, name)(groups, **options, **more)
    for step in range(STEPS):
        set_grads(library, params, step, with_gaps)
        optimizer.step()
    return [param.detach().reshape(-1).tolist() for param in params]


SCHEDULES: dict[str, Callable[[Any, Any], Any]] = {
    "lambda": lambda s, o: s.LambdaLR(o, [lambda t: 0.9**t, lambda t: 1 / (1 + t)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda t: 0.95),
    "step": lambda s, o: s.StepLR(o, 3, 0.5),
    "multistep": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 9], 0.5),
    "constant": lambda s, o: s.ConstantLR(o, 0.3, 4),
    "linear": lambda s, o: s.LinearLR(o, 0.2, 0.9, 7),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.9),
    "polynomial": lambda s, o: s.PolynomialLR(o, 10, 1.7),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 7, 0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.001),
    "one_cycle": lambda s, o: s.OneCycleLR(o, [0.5, 1.0], total_steps=30),
    "one_cycle_three_phase": lambda s, o: s.OneCycleLR(
        o, 0.5, epochs=3, steps_per_epoch=10, three_phase=True, anneal_strategy="linear"
    ),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 5, 7),
    "cyclic_triangular2": lambda s, o: s.CyclicLR(o, [0.01, 0.02], 0.1, 4, mode="triangular2"),
    "cyclic_exp": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 4, mode="exp_range", gamma=0.97),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1.0, 4), s.ExponentialLR(o, 0.9), s.StepLR(o, 2)], [4, 12]
    ),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 3), s.ExponentialLR(o, 0.9)]),
}


def make_scheduled(library: Any, case: str) -> tuple[Any, Any]:
    """An SGD optimiser of two groups with momentum, and a schedule on it."""
    first, second, _ = make_params(library, library.float32)
    optimizer = library.optim.SGD(
        [{"params": [first], "lr": 0.1}, {"params": [second], "lr": 0.5}], lr=0.2, momentum=0.9
    )
    return optimizer, SCHEDULES[case](library.optim.lr_scheduler, optimizer)


def schedule_course(library: Any, case: str, count: int = 28) -> list[list[float]]:
    """Rate and momentum of both groups, step by step."""
    optimizer, schedule = make_scheduled(library, case)
    course = []
    for _ in range(count):
        groups = optimizer.param_groups
        course.append([group[key] for group in groups for key in ("lr", "momentum")])
        optimizer.step()
        schedule.step()
    return course


PLATEAU_METRICS = [1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.5, 0.6, 0.6, 0.499, 0.6, 0.7, 0.6, 0.6, 0.6]


def plateau_course(library: Any, mode: str, threshold_mode: str) -> list[float]:
    """The rate of the first group as the metric stops improving."""
    optimizer, _ = make_scheduled(library, "constant")
    schedule = library.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, mode, 0.5, 1, 0.05, threshold_mode, cooldown=1, min_lr=[0.001, 0.2]
    )
    rates = []
    for metric in PLATEAU_METRICS:
        schedule.step(metric)
        rates.append(optimizer.param_groups[0]["lr"])
    return rates
