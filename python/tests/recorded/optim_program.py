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
    "adadelta": ("Adadelta", {"lr": 1.0}),
    "adadelta_decay": (
        "Adadelta",
        {"lr": 0.5, "rho": 0.7, "eps": 1e-3, "weight_decay": 0.2, "maximize": True},
    ),
    "adagrad": ("Adagrad", {"lr": 0.1}),
    "adagrad_decay": (
        "Adagrad",
        {"lr": 0.1, "lr_decay": 0.3, "weight_decay": 0.2, "initial_accumulator_value": 0.5},
    ),
    "adagrad_maximize": ("Adagrad", {"lr": 0.1, "eps": 1e-2, "maximize": True}),
    "adamax": ("Adamax", {"lr": 0.05}),
    "adamax_decay": (
        "Adamax",
        {"lr": 0.05, "betas": (0.4, 0.7), "eps": 1e-2, "weight_decay": 0.2, "maximize": True},
    ),
    "asgd": ("ASGD", {"lr": 0.05}),
    "asgd_averages": (
        "ASGD",
        {"lr": 0.05, "lambd": 0.1, "t0": 2, "weight_decay": 0.1, "maximize": True},
    ),
    "nadam": ("NAdam", {"lr": 0.05}),
    "nadam_decay": (
        "NAdam",
        {"lr": 0.05, "betas": (0.4, 0.7), "weight_decay": 0.2, "momentum_decay": 0.1},
    ),
    "nadam_decoupled": (
        "NAdam",
        {"lr": 0.05, "weight_decay": 0.2, "decoupled_weight_decay": True, "maximize": True},
    ),
    "radam": ("RAdam", {"lr": 0.05}),
    "radam_decay": ("RAdam", {"lr": 0.05, "betas": (0.4, 0.7), "weight_decay": 0.2}),
    "radam_decoupled": (
        "RAdam",
        {"lr": 0.05, "weight_decay": 0.2, "decoupled_weight_decay": True, "maximize": True},
    ),
    "rmsprop": ("RMSprop", {"lr": 0.05}),
    "rmsprop_momentum": ("RMSprop", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.2}),
    "rmsprop_centered": ("RMSprop", {"lr": 0.05, "alpha": 0.4, "eps": 0.1, "centered": True}),
    "rmsprop_centered_momentum": (
        "RMSprop",
        {"lr": 0.05, "eps": 0.1, "centered": True, "momentum": 0.5, "maximize": True},
    ),
    "rprop": ("Rprop", {"lr": 0.05}),
    "rprop_bounds": (
        "Rprop",
        {"lr": 0.05, "etas": (0.3, 1.9), "step_sizes": (0.02, 0.1), "maximize": True},
    ),
    "adafactor": ("Adafactor", {"lr": 0.05}),
    "adafactor_decay": (
        "Adafactor",
        {
            "lr": 0.05,
            "beta2_decay": -0.5,
            "eps": (1e-3, 1e-2),
            "d": 1.5,
            "weight_decay": 0.2,
            "maximize": True,
        },
    ),
}

# Optimisers that take no step on gradients of every shape: they have courses of their own.
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "lbfgs": ("LBFGS", {"lr": 0.5, "max_iter": 4}),
    "lbfgs_history": ("LBFGS", {"lr": 1.0, "max_iter": 6, "history_size": 2, "maximize": True}),
    "lbfgs_wolfe": ("LBFGS", {"max_iter": 5, "line_search_fn": "strong_wolfe"}),
    "muon": ("Muon", {"lr": 0.05}),
    "muon_plain": (
        "Muon",
        {"lr": 0.05, "nesterov": False, "ns_steps": 3, "adjust_lr_fn": "match_rms_adamw"},
    ),
    "sparse_adam": ("SparseAdam", {"lr": 0.05}),
    "sparse_adam_maximize": ("SparseAdam", {"lr": 0.05, "betas": (0.4, 0.7), "maximize": True}),
}


def _wave(library: Any, shape: tuple[int, ...], phase: float, dtype: Any) -> Any:
    count = math.prod(shape)
    values: list[Any] = [math.sin(1.7 * k + phase) for k in range(count)]
    if dtype.is_complex:
        values = [complex(value, math.cos(1.1 * k + phase)) for k, value in enumerate(values)]
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


def long_course(library: Any, case: str, dtype: str, steps: int = 200) -> list[list[Any]]:
    """The parameters, flattened, after many steps on gradients that depend on them."""
    name, options = OPTIMIZERS[case]
    params = make_params(library, getattr(library, dtype))
    optimizer = getattr(library.optim, name)(params, **options)
    for step in range(steps):
        for number, param in enumerate(params):
            wave = _wave(library, tuple(param.shape), 0.9 * step + 2 * number, param.dtype)
            param.grad = param.detach() * 0.125 + wave
        optimizer.step()
    return [param.detach().reshape(-1).tolist() for param in params]


class Run:
    """A course step by step, whose optimiser can be looked at and whose state can be loaded."""

    def __init__(self, library: Any, case: str, dtype: str = "float64") -> None:
        self.library = library
        self.name, options = (OPTIMIZERS | OTHERS)[case]
        kind = getattr(library, dtype)
        shapes = {"Muon": ((2, 3), (4, 2)), "SparseAdam": ((5, 2), (4,))}.get(self.name, SHAPES)
        self.params = [
            _wave(library, shape, 0.3 + number, kind).requires_grad_()
            for number, shape in enumerate(shapes)
        ]
        self.optimizer = getattr(library.optim, name_of(case))(self.params, **options)

    def values(self) -> list[list[Any]]:
        """The parameters, flattened."""
        return [param.detach().reshape(-1).tolist() for param in self.params]

    def step(self, step: int) -> None:
        """One step, whose gradients depend on its number."""
        if self.name == "LBFGS":
            self.optimizer.step(self._closure)
            return
        set_grads(self.library, self.params, step, False)
        if self.name == "SparseAdam":
            for param in self.params:
                # A place is specified twice, others not at all.
                places = self.library.tensor([[step % 4, 0, (step + 1) % 4, 0]])
                values = param.grad[: places.shape[1]]
                sparse = self.library.sparse_coo_tensor(places, values, param.shape)
                param.grad = sparse
        self.optimizer.step()

    def _closure(self) -> Any:
        self.optimizer.zero_grad()
        parts = [
            ((param - 0.5) ** 4).sum() + ((param[..., 1:] if param.dim() else param) ** 2).sum()
            for param in self.params
        ]
        loss = parts[0] + parts[1] + parts[2]
        loss = -loss if self.optimizer.defaults["maximize"] else loss
        loss.backward()
        return loss


def name_of(case: str) -> str:
    """The name of the optimiser's class."""
    return (OPTIMIZERS | OTHERS)[case][0]


def pack(library: Any, value: Any) -> Any:
    """A value of a state dict as JSON can hold it."""
    if isinstance(value, library.Tensor):
        dtype = str(value.dtype).split(".")[1]
        return {"tensor": value.tolist(), "dtype": dtype, "shape": list(value.shape)}
    if isinstance(value, dict):
        return {"dict": [[pack(library, key), pack(library, item)] for key, item in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [pack(library, item) for item in value]}
    if isinstance(value, list):
        return {"list": [pack(library, item) for item in value]}
    return value


def unpack(library: Any, packed: Any) -> Any:
    """The value that `pack` took apart."""
    if not isinstance(packed, dict):
        return packed
    if "tensor" in packed:
        dtype = getattr(library, packed["dtype"])
        return library.tensor(packed["tensor"], dtype=dtype).reshape(packed["shape"])
    if "dict" in packed:
        return {unpack(library, key): unpack(library, item) for key, item in packed["dict"]}
    if "tuple" in packed:
        return tuple(unpack(library, item) for item in packed["tuple"])
    return [unpack(library, item) for item in packed["list"]]


def checkpoint_course(library: Any, case: str, steps: int = 3) -> dict[str, Any]:
    """The parameters and the state dict after some steps, and the parameters after as many more."""
    run = Run(library, case)
    for step in range(steps):
        run.step(step)
    result = {"params": run.values(), "state": pack(library, run.optimizer.state_dict())}
    for step in range(steps, 2 * steps):
        run.step(step)
    return result | {"end": run.values()}


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
