"""Adam, and the functional form that AdamW shares.

`_plain_adam` is the kernel's rule in tensor operations, for steps that are to be differentiated.
The state is the same either way: "step", a 0-dim CPU tensor that counts from 1, with "exp_avg" and
"exp_avg_sq" like the parameter (and "max_exp_avg_sq" for amsgrad).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from .. import _C, Tensor, maximum, zeros_like
from ._lists import (
    ListOptimizer,
    State,
    check_betas,
    check_fused_flags,
    check_options,
    climb,
    number_state,
    run_step,
)
from .optimizer import ParamGroup, ParamsT, scalar_of

__all__ = ["Adam", "adam"]

_VF = _C._VariableFunctions


class Adam(ListOptimizer):
    r"""Adam: `p <- p - lr * m_hat / (sqrt(v_hat) + eps)`.

    With `g` the gradient (negated for `maximize`) plus `weight_decay * p`:
    `m <- b1 m + (1 - b1) g`, `v <- b2 v + (1 - b2) g^2`, `m_hat = m / (1 - b1^t)`,
    `v_hat = v / (1 - b2^t)`; `amsgrad` takes the running maximum of `v` in `v_hat`.
    With `decoupled_weight_decay` the decay is `p <- p (1 - lr * weight_decay)` and stays out
    of `m` and `v` (AdamW).

    `lr` may be a one-element tensor, `betas` two floats or two one-element tensors.
    `foreach` and `fused` are accepted and validated; every dense real parameter takes the
    native list kernel either way. `capturable` needs parameters on an accelerator.
    Parameters whose `grad` is `None` are left alone.

    Raises `ValueError` for values out of range; `RuntimeError` for sparse gradients and for
    `fused` together with `foreach` or `differentiable`.

    Sources: Kingma and Ba, Adam, 2015; Reddi, Kale and Kumar, On the convergence of Adam
    and beyond, 2018.
    """

    _name = "Adam"
    _state_names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")
    _options = ("lr", "betas", "eps", "weight_decay", "amsgrad", "decoupled_weight_decay")
    _flags = (*ListOptimizer._flags, "fused")
    _kernel = _VF._fused_adam_counted_
    _kernel_states = _state_names
    _kernel_options = ("lr", "eps", "weight_decay", "amsgrad", "maximize")
    _later_options: ClassVar[dict[str, Any]] = {
        "amsgrad": False,
        **ListOptimizer._later_options,
        "decoupled_weight_decay": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        eager_foreach = bool(foreach) and not capturable
        if isinstance(lr, Tensor) and eager_foreach:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        check_options(lr=lr, eps=eps)
        check_betas(betas)
        check_options(weight_decay=weight_decay)
        _check_kinds(betas, eager_foreach)
        defaults = {
            "lr": lr,
            "betas": (scalar_of(betas[0]), scalar_of(betas[1])),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused_flags(fused, foreach, differentiable)
        if fused:
            self._step_supports_amp_scaling = True

    def _first_state(self, group: ParamGroup, param: Tensor, grad: Tensor) -> State:
        state = {
            "step": number_state(group, param),
            "exp_avg": zeros_like(param),
            "exp_avg_sq": zeros_like(param),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(param)
        return state

    def _unused_states(self, group: ParamGroup) -> tuple[str, ...]:
        return () if group["amsgrad"] else ("max_exp_avg_sq",)

    def _kernel_of(self, group: ParamGroup) -> Callable[..., None] | None:
        kernel = super()._kernel_of(group)
        is_coupled = kernel is None or not group["decoupled_weight_decay"]
        return kernel if is_coupled else _VF._fused_adamw_counted_

    def _update(self, lists: list[Any], options: dict[str, Any]) -> None:
        if options["differentiable"] and any(count.requires_grad for count in lists[-1]):
            raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
        options |= {name: getattr(self, name, None) for name in ("grad_scale", "found_inf")}
        adam(*lists, **options)


def _check_kinds(betas: tuple[float | Tensor, float | Tensor], eager_foreach: bool) -> None:
    if not any(
        isinstance(betas[0], kind) and isinstance(betas[1], kind) for kind in (float, Tensor)
    ):
        raise ValueError("betas must be either both floats or both Tensors")
    for index, beta in enumerate(betas):
        if not isinstance(beta, Tensor):
            continue
        if eager_foreach:
            raise ValueError(
                f"betas[{index}] as a Tensor is not supported for capturable=False and foreach=True"
            )
        if beta.numel() != 1:
            raise ValueError(f"Tensor betas[{index}] must be 1-element")


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of `Adam` on parallel lists, in place; see the class for the rule.

    `max_exp_avg_sqs` is read only with `amsgrad`. Call it under `no_grad` unless the step
    is `differentiable`.
    """
    if not fused and (grad_scale is not None or found_inf is not None):
        raise AssertionError("Expected grad_scale and found_inf to be None")
    if foreach and not capturable and isinstance(lr, Tensor):
        raise RuntimeError("lr as a Tensor is not supported for capturable=False and foreach=True")
    if fused and differentiable:
        raise RuntimeError("Adam with fused=True does not support differentiable=True")
    kernel = _VF._fused_adamw_counted_ if decoupled_weight_decay else _VF._fused_adam_counted_
    options = {
        "amsgrad": amsgrad,
        "lr": lr,
        "beta1": beta1,
        "beta2": beta2,
        "weight_decay": weight_decay,
        "eps": eps,
        "maximize": maximize,
    }
    run_step(
        Adam._name,
        partial(kernel, grad_scale=grad_scale, found_inf=found_inf),
        _plain_adamw if decoupled_weight_decay else _plain_adam,
        [params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else []],
        {"state_steps": state_steps},
        options,
        capturable=capturable,
        differentiable=differentiable,
    )


def _plain_adam(
    rule: Any,
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    max_exp_avg_sq: Tensor | None,
    count: Tensor,
) -> None:
    grad = climb(rule, grad)
    weight_decay = rule.weight_decay
    if isinstance(weight_decay, Tensor) and weight_decay.requires_grad:
        # The clone keeps the value that the product needs: the parameter changes below.
        grad = grad.addcmul(param.clone(), weight_decay)
    elif weight_decay != 0:
        grad = grad.add(param, alpha=weight_decay)
    _move(rule, param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, count)


def _plain_adamw(rule: Any, param: Tensor, grad: Tensor, *state: Any) -> None:
    if rule.weight_decay != 0:
        param.mul_(1 - rule.lr * rule.weight_decay)
    _move(rule, param, climb(rule, grad), *state)


def _move(
    rule: Any,
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    max_exp_avg_sq: Tensor | None,
    count: Tensor,
) -> None:
    """Moves the parameter without reading the counter back, so that a graph can form."""
    count.add_(1)
    _update_moments(rule, grad, exp_avg, exp_avg_sq)
    second = exp_avg_sq
    if max_exp_avg_sq is not None:
        # The clones keep the values that the derivative needs: the state changes at the next step.
        max_exp_avg_sq.copy_(maximum(max_exp_avg_sq.clone(), exp_avg_sq.clone()))
        second = max_exp_avg_sq
    # The counter changes in place at the next step, so a power with a graph needs a copy.
    time = count.clone()
    step_size = rule.lr / (1 - rule.beta1**time)
    downhill = step_size.neg()
    scale = (1 - rule.beta2**time).sqrt()
    denominator = (second.sqrt() / (scale * downhill)).add_(rule.eps / downhill)
    param.addcdiv_(exp_avg.clone(), denominator)


def _update_moments(rule: Any, grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor) -> None:
    beta1, beta2 = rule.beta1, rule.beta2
    if isinstance(beta1, Tensor):
        beta1 = beta1.to(device=grad.device, dtype=grad.dtype)
    exp_avg.lerp_(grad, 1 - beta1)
    if isinstance(beta2, Tensor) and beta2.requires_grad:
        # b2 v + (1 - b2) g^2 as one lerp: addcmul takes no tensor for its factor.
        exp_avg_sq.lerp_(grad.square(), 1 - beta2)
    else:
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
