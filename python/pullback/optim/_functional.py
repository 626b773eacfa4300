"""The steps of the optimisers as functions on lists, and the one of `SparseAdam`."""

from __future__ import annotations

import math

from .. import Tensor, sparse_coo_tensor
from .adadelta import adadelta
from .adagrad import adagrad
from .adam import adam
from .adamax import adamax
from .adamw import adamw
from .asgd import asgd
from .nadam import nadam
from .radam import radam
from .rmsprop import rmsprop
from .rprop import rprop
from .sgd import sgd

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
    "sparse_adam",
]


def sparse_adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    maximize: bool,
) -> None:
    """One step of `SparseAdam` on parallel lists, in place; `state_steps` are read, not counted up.

    Call it under `no_grad`. Raises `RuntimeError` for dense gradients.
    """
    rows = zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True)
    for param, grad, exp_avg, exp_avg_sq, step in rows:
        # The update is not linear, so that each element has to be specified once.
        grad = (-grad if maximize else grad).coalesce()
        indices, values = grad._indices(), grad._values()
        if values.numel() == 0:
            continue
        # The values are those of the gradient's elements, `old + (1 - beta) (new - old)`.
        first = exp_avg.sparse_mask(grad)._values()
        first_change = (values - first).mul_(1 - beta1)
        exp_avg.add_(sparse_coo_tensor(indices, first_change, grad.size()))
        second = exp_avg_sq.sparse_mask(grad)._values()
        second_change = (values.square() - second).mul_(1 - beta2)
        exp_avg_sq.add_(sparse_coo_tensor(indices, second_change, grad.size()))
        numerator = first_change.add_(first)
        denominator = second_change.add_(second).sqrt_().add_(eps)
        step_size = lr * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        move = -step_size * numerator.div_(denominator)
        param.add_(sparse_coo_tensor(indices, move, grad.size()))
