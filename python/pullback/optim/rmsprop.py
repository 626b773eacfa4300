"""RMSprop: gradients divided by a running root of their mean square."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import _C, Tensor, zeros_like
from ._lists import ListOptimizer, State, check_options, decay, number_state, run_step
from .optimizer import ParamGroup, ParamsT

__all__ = ["RMSprop", "rmsprop"]

_VF = _C._VariableFunctions


class RMSprop(ListOptimizer):
    r"""RMSprop: `p <- p - lr * g / (sqrt(v) + eps)`.

    With `g` the gradient (negated for `maximize`) plus `weight_decay * p`:
    `v <- alpha v + (1 - alpha) g^2`. `centered` takes `v - a^2` for `v`, with
    `a <- alpha a + (1 - alpha) g`. With `momentum`, `b <- momentum * b + g / (sqrt(v) + eps)` and
    `p <- p - lr * b`.

    `lr` may be a one-element tensor. `foreach` is accepted; dense parameters take the native list
    kernel either way. `capturable` needs parameters on an accelerator. Parameters whose `grad` is
    `None` are left alone.

    Raises `ValueError` for negative `lr`, `eps`, `momentum`, `weight_decay` or `alpha`;
    `RuntimeError` for sparse gradients.

    Sources: Tieleman and Hinton, Lecture 6.5, 2012; Graves, Generating sequences with recurrent
    neural networks, 2013 (centred).
    """

    _name = "RMSprop"
    _state_names = ("square_avg", "grad_avg", "momentum_buffer", "step")
    _options = ("lr", "alpha", "eps", "weight_decay", "momentum", "centered")
    _kernel = _VF._fused_rmsprop_
    _kernel_states = _state_names
    _kernel_options = (*_options, "maximize")
    _later_options: ClassVar[dict[str, Any]] = {
        "momentum": 0,
        "centered": False,
        **ListOptimizer._later_options,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _first_state(self, group: ParamGroup, param: Tensor, grad: Tensor) -> State:
        state = {"step": number_state(group, param), "square_avg": zeros_like(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = zeros_like(param)
        return state

    def _unused_states(self, group: ParamGroup) -> tuple[str, ...]:
        of_centre = () if group["centered"] else ("grad_avg",)
        of_momentum = () if group["momentum"] > 0 else ("momentum_buffer",)
        return (*of_centre, *of_momentum)

    def _update(self, lists: list[Any], options: dict[str, Any]) -> None:
        rmsprop(*lists, **options)


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """One step of `RMSprop` on parallel lists, in place; see the class for the rule.

    `grad_avgs` is read only if `centered`, `momentum_buffer_list` only with `momentum`. Call it
    under `no_grad` unless the step is `differentiable`.
    """
    run_step(
        RMSprop._name,
        _VF._fused_rmsprop_,
        _plain_rmsprop,
        [
            params,
            grads,
            square_avgs,
            grad_avgs if centered else [],
            momentum_buffer_list if momentum > 0 else [],
        ],
        {"state_steps": state_steps},
        {
            "lr": lr,
            "alpha": alpha,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "centered": centered,
            "maximize": maximize,
        },
        capturable=capturable,
        differentiable=differentiable,
    )


def _plain_rmsprop(
    rule: Any,
    param: Tensor,
    grad: Tensor,
    square_avg: Tensor,
    grad_avg: Tensor | None,
    momentum_buffer: Tensor | None,
    step: Tensor,
) -> None:
    step.add_(1)
    grad = decay(rule, param, grad)
    square_avg.mul_(rule.alpha).addcmul_(grad, grad, value=1 - rule.alpha)
    variance = square_avg
    if grad_avg is not None:
        grad_avg.lerp_(grad, 1 - rule.alpha)
        # The clone keeps the value that the product needs: the state changes at the next step.
        mean = grad_avg.clone()
        variance = square_avg.addcmul(mean, mean, value=-1)
    deviation = variance.sqrt() + rule.eps
    if momentum_buffer is None:
        param.addcdiv_(grad, deviation, value=-rule.lr)
    else:
        momentum_buffer.mul_(rule.momentum).addcdiv_(grad, deviation)
        param.add_(momentum_buffer, alpha=-rule.lr)
