"""Adamax: Adam with the largest gradient so far in the place of the average of squares."""

from __future__ import annotations

from typing import Any

from .. import _C, Tensor, maximum, zeros_like
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

__all__ = ["Adamax", "adamax"]

_VF = _C._VariableFunctions


class Adamax(ListOptimizer):
    r"""Adamax: `p <- p - lr / (1 - b1^t) * m / u`.

    With `g` the gradient (negated for `maximize`) plus `weight_decay * p`:
    `m <- b1 m + (1 - b1) g`, `u <- max(b2 u, |g| + eps)`.

    `lr` may be a one-element tensor. `foreach` is accepted; dense parameters take the native list
    kernel either way. `capturable` needs parameters on an accelerator. Parameters whose `grad` is
    `None` are left alone.

    Raises `ValueError` for negative `lr`, `eps` or `weight_decay` and for betas outside `[0, 1)`;
    `RuntimeError` for sparse gradients.

    Source: Kingma and Ba, Adam, 2015, section 7.1.
    """

    _name = "Adamax"
    _state_names = ("exp_avg", "exp_inf", "step")
    _options = ("lr", "betas", "eps", "weight_decay")
    _kernel = _VF._fused_adamax_
    _kernel_states = _state_names
    _kernel_options = ("lr", "eps", "weight_decay", "maximize")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_options(lr=lr, eps=eps)
        check_betas(betas)
        check_options(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _first_state(self, group: ParamGroup, param: Tensor, grad: Tensor) -> State:
        return {
            "step": number_state(group, param),
            "exp_avg": zeros_like(param),
            "exp_inf": zeros_like(param),
        }

    def _update(self, lists: list[Any], options: dict[str, Any]) -> None:
        adamax(*lists, **options)


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
) -> None:
    """One step of `Adamax` on parallel lists, in place; see the class for the rule.

    Call it under `no_grad` unless the step is `differentiable`.
    """
    run_step(
        Adamax._name,
        _VF._fused_adamax_,
        _plain_adamax,
        [params, grads, exp_avgs, exp_infs],
        {"state_steps": state_steps},
        {
            "lr": lr,
            "beta1": beta1,
            "beta2": beta2,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
        },
        capturable=capturable,
        differentiable=differentiable,
    )


def _plain_adamax(
    rule: Any, param: Tensor, grad: Tensor, exp_avg: Tensor, exp_inf: Tensor, step: Tensor
) -> None:
    step.add_(1)
    grad = decay(rule, param, grad)
    exp_avg.lerp_(grad, 1 - rule.beta1)
    exp_inf.copy_(maximum(exp_inf * rule.beta2, grad.abs() + rule.eps))
    step_size = rule.lr / (1 - rule.beta1 ** step.item())
    # The clones keep the values that the quotient needs: the state changes at the next step.
    param.addcdiv_(exp_avg.clone(), exp_inf.clone(), value=-step_size)
