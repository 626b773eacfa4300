"""NAdam: Adam with Nesterov's momentum, whose factor grows towards `beta1`."""

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

__all__ = ["NAdam", "nadam"]

_VF = _C._VariableFunctions


class NAdam(ListOptimizer):
    r"""NAdam: `p <- p - lr * m_hat / (sqrt(v / (1 - b2^t)) + eps)`.

    With `g` the gradient (negated for `maximize`) plus `weight_decay * p`:
    `m <- b1 m + (1 - b1) g`, `v <- b2 v + (1 - b2) g^2`,
    `mu_t = b1 (1 - 0.96^(t * momentum_decay) / 2)` and
    `m_hat = mu_(t+1) m / (1 - mu_1 ... mu_(t+1)) + (1 - mu_t) g / (1 - mu_1 ... mu_t)`.
    With `decoupled_weight_decay` the decay is `p <- p (1 - lr * weight_decay)` and stays out of `m`
    and `v`.

    `lr` may be a one-element tensor. `foreach` is accepted; dense parameters take the native list
    kernel either way. `capturable` needs parameters on an accelerator. Parameters whose `grad` is
    `None` are left alone.

    Raises `ValueError` for negative `lr`, `eps`, `weight_decay` or `momentum_decay` and for betas
    outside `[0, 1)`; `RuntimeError` for sparse gradients.

    Sources: Dozat, Incorporating Nesterov momentum into Adam, 2016; Loshchilov and Hutter,
    Decoupled weight decay regularization, 2019.
    """

    _name = "NAdam"
    _state_names = ("exp_avg", "exp_avg_sq", "mu_product", "step")
    _options = ("lr", "betas", "eps", "weight_decay", "momentum_decay", "decoupled_weight_decay")
    _kernel = _VF._fused_nadam_
    _kernel_states = ("exp_avg", "exp_avg_sq", "step", "mu_product")
    _kernel_options = (
        "lr",
        "eps",
        "weight_decay",
        "momentum_decay",
        "decoupled_weight_decay",
        "maximize",
    )
    _numbers = ("step", "mu_product")
    _later_options: ClassVar[dict[str, Any]] = {
        **ListOptimizer._later_options,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr=lr, eps=eps)
        check_betas(betas)
        check_options(weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _first_state(self, group: ParamGroup, param: Tensor, grad: Tensor) -> State:
        return {
            "step": number_state(group, param),
            "mu_product": number_state(group, param, 1.0),
            "exp_avg": zeros_like(param),
            "exp_avg_sq": zeros_like(param),
        }

    def _update(self, lists: list[Any], options: dict[str, Any]) -> None:
        nadam(*lists, **options)


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """One step of `NAdam` on parallel lists, in place; see the class for the rule.

    Call it under `no_grad` unless the step is `differentiable`.
    """
    run_step(
        NAdam._name,
        _VF._fused_nadam_,
        _plain_nadam,
        [params, grads, exp_avgs, exp_avg_sqs],
        {"state_steps": state_steps, "mu_products": mu_products},
        {
            "lr": lr,
            "beta1": beta1,
            "beta2": beta2,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
        },
        capturable=capturable,
        differentiable=differentiable,
    )


def _plain_nadam(
    rule: Any,
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    step: Tensor,
    mu_product: Tensor,
) -> None:
    step.add_(1)
    time = step.item()
    grad = decay(rule, param, grad)
    mu, mu_next = (
        rule.beta1 * (1 - 0.5 * 0.96 ** (t * rule.momentum_decay)) for t in (time, time + 1)
    )
    mu_product.mul_(mu)
    exp_avg.lerp_(grad, 1 - rule.beta1)
    exp_avg_sq.mul_(rule.beta2).addcmul_(grad, grad, value=1 - rule.beta2)
    denominator = (exp_avg_sq / (1 - rule.beta2**time)).sqrt() + rule.eps
    of_grad = grad * (-rule.lr * (1 - mu) / (1 - mu_product))
    of_average = exp_avg * (-rule.lr * mu_next / (1 - mu_product * mu_next))
    param.addcdiv_(of_grad, denominator)
    param.addcdiv_(of_average, denominator)
