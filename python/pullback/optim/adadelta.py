"""Adadelta: steps in the units of the parameter, without a learning rate to tune."""

from __future__ import annotations

from typing import Any

from .. import _C, Tensor, zeros_like
from ._lists import ListOptimizer, State, check_options, decay, number_state, run_step
from .optimizer import ParamGroup, ParamsT

__all__ = ["Adadelta", "adadelta"]

_VF = _C._VariableFunctions


class Adadelta(ListOptimizer):
    r"""Adadelta: `p <- p - lr * d` with `d = sqrt(u + eps) / sqrt(v + eps) * g`.

    With `g` the gradient (negated for `maximize`) plus `weight_decay * p`:
    `v <- rho v + (1 - rho) g^2`, then `d` with the old `u`, then `u <- rho u + (1 - rho) d^2`.

    `lr` may be a one-element tensor. `foreach` is accepted; dense parameters take the native list
    kernel either way. `capturable` needs parameters on an accelerator. Parameters whose `grad` is
    `None` are left alone.

    Raises `ValueError` for negative `lr`, `eps` or `weight_decay` and for `rho` outside `[0, 1]`;
    `RuntimeError` for sparse gradients.

    Source: Zeiler, ADADELTA: an adaptive learning rate method, 2012.
    """

    _name = "Adadelta"
    _state_names = ("square_avg", "acc_delta", "step")
    _options = ("lr", "rho", "eps", "weight_decay")
    _kernel = _VF._fused_adadelta_
    _kernel_states = _state_names
    _kernel_options = (*_options, "maximize")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_options(eps=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _first_state(self, group: ParamGroup, param: Tensor, grad: Tensor) -> State:
        return {
            "step": number_state(group, param),
            "square_avg": zeros_like(param),
            "acc_delta": zeros_like(param),
        }

    def _update(self, lists: list[Any], options: dict[str, Any]) -> None:
        adadelta(*lists, **options)


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """One step of `Adadelta` on parallel lists, in place; see the class for the rule.

    Call it under `no_grad` unless the step is `differentiable`.
    """
    run_step(
        Adadelta._name,
        _VF._fused_adadelta_,
        _plain_adadelta,
        [params, grads, square_avgs, acc_deltas],
        {"state_steps": state_steps},
        {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize},
        capturable=capturable,
        differentiable=differentiable,
    )


def _plain_adadelta(
    rule: Any, param: Tensor, grad: Tensor, square_avg: Tensor, acc_delta: Tensor, step: Tensor
) -> None:
    step.add_(1)
    grad = decay(rule, param, grad)
    square_avg.mul_(rule.rho).addcmul_(grad, grad, value=1 - rule.rho)
    delta = acc_delta.add(rule.eps).sqrt() / square_avg.add(rule.eps).sqrt() * grad
    acc_delta.mul_(rule.rho).addcmul_(delta, delta, value=1 - rule.rho)
    param.add_(delta, alpha=-rule.lr)
