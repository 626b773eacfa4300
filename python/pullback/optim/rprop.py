"""Resilient backpropagation: a step size for each element, from the signs of the gradient alone."""

from __future__ import annotations

from typing import Any

from .. import _C, Tensor, full_like, ones_like, zeros_like
from ._lists import ListOptimizer, State, check_options, climb, number_state, run_step
from .optimizer import ParamGroup, ParamsT

__all__ = ["Rprop", "rprop"]

_VF = _C._VariableFunctions


class Rprop(ListOptimizer):
    r"""Rprop: `p <- p - s * sign(g)`, a step size `s` for each element.

    Where the gradient (negated for `maximize`) has the sign that it had in the last step, `s` is
    multiplied by `etas[1]`, where it has the other by `etas[0]`, and then it is clamped to
    `step_sizes`; where the sign changed, `g` counts as zero in this step and as last gradient in
    the next. `s` begins as `lr`.

    `lr` may be a one-element tensor. `foreach` is accepted; dense parameters take the native list
    kernel either way. `capturable` needs parameters on an accelerator. Parameters whose `grad` is
    `None` are left alone.

    Raises `ValueError` for negative `lr` and unless `0 < etas[0] < 1 < etas[1]`; `RuntimeError` for
    sparse gradients.

    Source: Riedmiller and Braun, A direct adaptive method for faster backpropagation learning: the
    RPROP algorithm, 1993.
    """

    _name = "Rprop"
    _state_names = ("prev", "step_size", "step")
    _options = ("etas", "step_sizes")
    _kernel = _VF._fused_rprop_
    _kernel_states = _state_names

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _first_state(self, group: ParamGroup, param: Tensor, grad: Tensor) -> State:
        lr = float(group["lr"])
        size = complex(lr, lr) if param.is_complex() else lr
        return {
            "step": number_state(group, param),
            "prev": zeros_like(param),
            "step_size": full_like(grad, size),
        }

    def _keywords(self, group: ParamGroup) -> dict[str, Any]:
        etaminus, etaplus = group["etas"]
        least, most = group["step_sizes"]
        return {
            "step_size_min": least,
            "step_size_max": most,
            "etaminus": etaminus,
            "etaplus": etaplus,
            "maximize": group["maximize"],
        }

    def _update(self, lists: list[Any], options: dict[str, Any]) -> None:
        etaminus, etaplus = options.pop("etas")
        least, most = options.pop("step_sizes")
        rprop(
            *lists,
            **options,
            step_size_min=least,
            step_size_max=most,
            etaminus=etaminus,
            etaplus=etaplus,
        )


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step of `Rprop` on parallel lists, in place; see the class for the rule.

    Call it under `no_grad` unless the step is `differentiable`.
    """
    run_step(
        Rprop._name,
        _VF._fused_rprop_,
        _plain_rprop,
        [params, grads, prevs, step_sizes],
        {"state_steps": state_steps},
        {
            "step_size_min": step_size_min,
            "step_size_max": step_size_max,
            "etaminus": etaminus,
            "etaplus": etaplus,
            "maximize": maximize,
        },
        capturable=capturable,
        differentiable=differentiable,
    )


def _plain_rprop(
    rule: Any, param: Tensor, grad: Tensor, prev: Tensor, step_size: Tensor, step: Tensor
) -> None:
    step.add_(1)
    grad = climb(rule, grad)
    agreement = grad * prev
    has_turned = agreement < 0
    factor = ones_like(grad).masked_fill(agreement > 0, rule.etaplus)
    step_size.mul_(factor.masked_fill(has_turned, rule.etaminus))
    step_size.clamp_(rule.step_size_min, rule.step_size_max)
    grad = grad.masked_fill(has_turned, 0)
    # The clone keeps the value that the product needs: the state changes at the next step.
    param.addcmul_(grad.sign(), step_size.clone(), value=-1)
    prev.copy_(grad)
