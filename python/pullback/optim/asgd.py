"""Averaged stochastic gradient descent: the mean of the last iterates beside the last one."""

from __future__ import annotations

from typing import Any

from .. import _C, Tensor, tensor, zeros_like
from ._lists import ListOptimizer, State, check_options, climb, run_step
from .optimizer import ParamGroup, ParamsT, step_dtype

__all__ = ["ASGD", "asgd"]

_VF = _C._VariableFunctions


def _number(group: ParamGroup, param: Tensor, value: float = 0.0) -> Tensor:
    return tensor(value, dtype=step_dtype(), device=param.device)


class ASGD(ListOptimizer):
    r"""Averaged SGD: `p <- p (1 - lambd * eta) - eta * g`, `ax <- ax + mu (p - ax)`.

    `g` is the gradient (negated for `maximize`) plus `weight_decay * p`. After step `t`,
    `eta = lr / (1 + lambd * lr * t)^alpha` and `mu = 1 / max(1, t - t0)`; `eta` is `lr` in the
    first step. The average is `state[p]["ax"]`.

    `lr` may be a one-element tensor. `foreach` is accepted; dense parameters take the native list
    kernel either way. `capturable` needs parameters on an accelerator. Parameters whose `grad` is
    `None` are left alone.

    Raises `ValueError` for negative `lr`, `lambd`, `alpha` or `weight_decay`; `RuntimeError` for
    sparse gradients.

    Source: Polyak and Juditsky, Acceleration of stochastic approximation by averaging, 1992.
    """

    _name = "ASGD"
    _state_names = ("ax", "mu", "eta", "step")
    _options = ("lr", "lambd", "alpha", "t0", "weight_decay")
    _kernel = _VF._fused_asgd_
    _kernel_states = ("ax", "step", "eta", "mu")
    _kernel_options = (*_options, "maximize")
    _numbers = ("step", "eta", "mu")
    _number = staticmethod(_number)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_options(lr=lr, lambd=lambd, alpha=alpha, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _first_state(self, group: ParamGroup, param: Tensor, grad: Tensor) -> State:
        return {
            "step": _number(group, param),
            "eta": _number(group, param, float(group["lr"])),
            "mu": _number(group, param, 1.0),
            "ax": zeros_like(param),
        }

    def _update(self, lists: list[Any], options: dict[str, Any]) -> None:
        asgd(*lists, **options)


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float | Tensor,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step of `ASGD` on parallel lists, in place; see the class for the rule.

    Call it under `no_grad` unless the step is `differentiable`.
    """
    run_step(
        ASGD._name,
        _VF._fused_asgd_,
        _plain_asgd,
        [params, grads, axs],
        {"state_steps": state_steps, "etas": etas, "mus": mus},
        {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "maximize": maximize,
        },
        capturable=capturable,
        differentiable=differentiable,
    )


def _plain_asgd(
    rule: Any, param: Tensor, grad: Tensor, ax: Tensor, step: Tensor, eta: Tensor, mu: Tensor
) -> None:
    step.add_(1)
    grad = climb(rule, grad)
    if rule.weight_decay != 0:
        grad = grad.add(param, alpha=rule.weight_decay)
    rate = eta.item()
    param.mul_(1 - rule.lambd * rate)
    param.add_(grad, alpha=-rate)
    share = mu.item()
    if share == 1:
        ax.copy_(param)
    else:
        ax.add_((param - ax) * share)
    time = step.item()
    lr = float(rule.lr)
    eta.fill_(lr / (1 + rule.lambd * lr * time) ** rule.alpha)
    mu.fill_(1 / max(1, time - rule.t0))
