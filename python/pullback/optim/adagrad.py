"""Adagrad: gradients divided by the root of the sum of all their squares."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from .. import _C, Tensor, full_like, sparse_coo_tensor
from ._lists import (
    ListOptimizer,
    State,
    check_fused_flags,
    check_numbers,
    check_options,
    climb,
    number_state,
    run_step,
)
from .optimizer import ParamGroup, ParamsT, check_fused

__all__ = ["Adagrad", "adagrad"]

_VF = _C._VariableFunctions


class Adagrad(ListOptimizer):
    r"""Adagrad: `s <- s + g^2`, `p <- p - lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps)`.

    `g` is the gradient (negated for `maximize`) plus `weight_decay * p`; `s` begins as
    `initial_accumulator_value`, when the optimiser is made. A sparse gradient changes the elements
    that it specifies.

    `lr` may be a one-element tensor. `foreach` and `fused` are accepted and validated; every dense
    parameter takes the native list kernel either way. Parameters whose `grad` is `None` are left
    alone.

    Raises `ValueError` for negative values; `RuntimeError` for sparse gradients with
    `weight_decay`, and for `fused` together with `foreach`, `differentiable`, sparse gradients or
    complex parameters.

    Source: Duchi, Hazan and Singer, Adaptive subgradient methods for online learning and
    stochastic optimization, 2011.
    """

    _name = "Adagrad"
    _state_names = ("sum", "step")
    _options = ("lr", "lr_decay", "weight_decay", "eps")
    _flags = ("foreach", "maximize", "differentiable", "fused")
    _kernel = _VF._fused_adagrad_counted_
    _kernel_states = _state_names
    _kernel_options = (*_options, "maximize")
    _later_options: ClassVar[dict[str, Any]] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_options(
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused_flags(fused, foreach, differentiable)
        if fused:
            self._step_supports_amp_scaling = True
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param].update(self._first_state(group, param, param))

    def share_memory(self) -> None:
        """Moves the sums of squares to memory that processes share."""
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param]["sum"].share_memory_()

    def _first_state(self, group: ParamGroup, param: Tensor, grad: Tensor) -> State:
        value = self.defaults["initial_accumulator_value"]
        start = complex(value, value) if param.is_complex() else value
        return {"step": number_state(group, param), "sum": full_like(param, start)}

    def _kernel_of(self, group: ParamGroup) -> Callable[..., None] | None:
        return None if group["fused"] else super()._kernel_of(group)

    def _check_grads(self, grads: list[Tensor]) -> None:
        """Accepts sparse gradients."""

    def _update(self, lists: list[Any], options: dict[str, Any]) -> None:
        if options["fused"]:
            for param in lists[0]:
                check_fused(param)
        options |= {name: getattr(self, name, None) for name in ("grad_scale", "found_inf")}
        adagrad(*lists, **options)


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of `Adagrad` on parallel lists, in place; see the class for the rule.

    Call it under `no_grad` unless the step is `differentiable`.
    """
    check_numbers(state_steps=state_steps)
    if fused:
        if any(grad.is_sparse for grad in grads) or any(param.is_complex() for param in params):
            raise RuntimeError("`fused` does not support sparse grad or complex param")
        if differentiable:
            raise RuntimeError("adagrad with fused=True does not support differentiable=True")
    elif grad_scale is not None or found_inf is not None:
        raise AssertionError("Expected grad_scale and found_inf to be None")
    # Before anything changes: other parameters of the list may be dense.
    if weight_decay != 0 and any(grad.is_sparse for grad in grads):
        raise RuntimeError(
            f"weight_decay option is not compatible with sparse gradients, got {weight_decay}"
        )
    options = {
        "lr": lr,
        "lr_decay": lr_decay,
        "weight_decay": weight_decay,
        "eps": eps,
        "maximize": maximize,
    }
    run_step(
        Adagrad._name,
        partial(_VF._fused_adagrad_counted_, grad_scale=grad_scale, found_inf=found_inf),
        _plain_adagrad,
        [params, grads, state_sums],
        {"state_steps": state_steps},
        options,
        differentiable=differentiable,
        takes_sparse=True,
    )


def _plain_adagrad(rule: Any, param: Tensor, grad: Tensor, state_sum: Tensor, step: Tensor) -> None:
    step.add_(1)
    grad = climb(rule, grad)
    if rule.weight_decay != 0:
        grad = grad.add(param, alpha=rule.weight_decay)
    rate = rule.lr / (1 + (step.item() - 1) * rule.lr_decay)
    if grad.is_sparse:
        grad = grad.coalesce()
        values = grad._values()
        state_sum.add_(_make_sparse(grad, grad._indices(), values.square()))
        deviation = state_sum.sparse_mask(grad)._values().sqrt().add_(rule.eps)
        param.add_(_make_sparse(grad, grad._indices(), values / deviation), alpha=-rate)
    else:
        state_sum.addcmul_(grad, grad)
        param.addcdiv_(grad, state_sum.sqrt() + rule.eps, value=-rate)


def _make_sparse(grad: Tensor, grad_indices: Tensor, values: Tensor) -> Tensor:
    """A sparse tensor of the gradient's size."""
    return sparse_coo_tensor(grad_indices, values, grad.size())
