"""Rectified Adam: Adam that leaves the adaptive rate out until its variance is known."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import _C, Tensor, zeros_like
from ._lists import (
    ListOptimizer,
    State,
    check_betas,
    check_options,
    decay,
    number_state,
    run_step,
)
from .optimizer import ParamGroup, ParamsT

__all__ = ["RAdam", "radam"]

_VF = _C._VariableFunctions


class RAdam(ListOptimizer):
    r"""RAdam: Adam's step times `r` once `rho > 5`, before `p <- p - lr * m / (1 - b1^t)`.

    The step is `p <- p - lr * m / (1 - b1^t) * r * sqrt(1 - b2^t) / (sqrt(v) + eps)`.

    With `g` the gradient (negated for `maximize`) plus `weight_decay * p`:
    `m <- b1 m + (1 - b1) g`, `v <- b2 v + (1 - b2) g^2`, `rho_inf = 2 / (1 - b2) - 1`,
    `rho = rho_inf - 2 t b2^t / (1 - b2^t)` and
    `r = sqrt((rho - 4) (rho - 2) rho_inf / ((rho_inf - 4) (rho_inf - 2) rho))`.
    With `decoupled_weight_decay` the decay is `p <- p (1 - lr * weight_decay)` and stays out of `m`
    and `v`.

    `lr` may be a one-element tensor. `foreach` is accepted; dense parameters take the native list
    kernel either way. `capturable` needs parameters on an accelerator. Parameters whose `grad` is
    `None` are left alone.

    Raises `ValueError` for negative `lr`, `eps` or `weight_decay` and for betas outside `[0, 1)`;
    `RuntimeError` for sparse gradients.

    Source: Liu et al., On the variance of the adaptive learning rate and beyond, 2020.
    """

    _name = "RAdam"
    _state_names = ("exp_avg", "exp_avg_sq", "step")
    _options = ("lr", "betas", "eps", "weight_decay", "decoupled_weight_decay")
    _kernel = _VF._fused_radam_
    _kernel_states = _state_names
    _kernel_options = ("lr", "eps", "weight_decay", "decoupled_weight_decay", "maximize")
    _later_options: ClassVar[dict[str, Any]] = {
        **ListOptimizer._later_options,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr=lr, eps=eps)
        check_betas(betas)
        check_options(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _first_state(self, group: ParamGroup, param: Tensor, grad: Tensor) -> State:
        return {
            "step": number_state(group, param),
            "exp_avg": zeros_like(param),
            "exp_avg_sq": zeros_like(param),
        }

    def _update(self, lists: list[Any], options: dict[str, Any]) -> None:
        radam(*lists, **options)


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
) -> None:
    """One step of `RAdam` on parallel lists, in place; see the class for the rule.

    Call it under `no_grad` unless the step is `differentiable`.
    """
    run_step(
        RAdam._name,
        _VF._fused_radam_,
        _plain_radam,
        [params, grads, exp_avgs, exp_avg_sqs],
        {"state_steps": state_steps},
        {
            "lr": lr,
            "beta1": beta1,
            "beta2": beta2,
            "eps": eps,
            "weight_decay": weight_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        },
        capturable=capturable,
        differentiable=differentiable,
    )


def _plain_radam(
    rule: Any, param: Tensor, grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, step: Tensor
) -> None:
    step.add_(1)
    time = step.item()
    grad = decay(rule, param, grad)
    exp_avg.lerp_(grad, 1 - rule.beta1)
    exp_avg_sq.mul_(rule.beta2).addcmul_(grad, grad, value=1 - rule.beta2)
    correction = 1 - rule.beta2**time
    limit = 2 / (1 - rule.beta2) - 1
    length = limit - 2 * time * rule.beta2**time / correction
    update = exp_avg / (1 - rule.beta1**time) * rule.lr
    if length > 5:
        rate = correction**0.5 / (exp_avg_sq.sqrt() + rule.eps)
        rectified = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
        update = update * rate * rectified**0.5
    param.sub_(update)
