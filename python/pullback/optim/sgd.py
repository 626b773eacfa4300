"""Stochastic gradient descent, with momentum, dampening and Nesterov's variant.

`SGD.step` gathers lists and hands them to the native kernel; `_plain_sgd` is the same
rule in tensor operations for what the kernel does not take: sparse and complex
gradients, hyper-parameters that are tensors with a graph, differentiable steps.
Invariant: both give the same numbers up to rounding.
"""

from __future__ import annotations

from typing import Any

from .. import _C, Tensor, empty_like, ones
from .optimizer import (
    Closure,
    Optimizer,
    ParamGroup,
    ParamsT,
    are_native,
    check_fused,
    evaluate,
    scalar_of,
    use_grad_for_differentiable,
)

__all__ = ["SGD", "sgd"]

_VF = _C._VariableFunctions


class SGD(Optimizer):
    r"""Stochastic gradient descent: `p <- p - lr * d`.

    With `g` the gradient (negated for `maximize`) plus `weight_decay * p`, and momentum `mu`:
    `buf <- mu * buf + (1 - dampening) * g` (the first time `buf <- g`), then `d = buf`, or
    `d = g + mu * buf` with `nesterov`. Without momentum `d = g`.

    `lr` and `weight_decay` may be one-element tensors. `foreach` and `fused` are accepted
    and validated; every dense real parameter takes the native list kernel either way.
    Parameters whose `grad` is `None` are left alone.

    Raises `ValueError` for negative `lr`, `momentum` or `weight_decay` and for `nesterov`
    without momentum or with dampening; `RuntimeError` for `fused` together with `foreach`
    or `differentiable`.

    Source: Sutskever et al., On the importance of initialization and momentum in deep
    learning, 2013 (there the learning rate is inside the velocity; here it is outside).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        if fused:
            self._step_supports_amp_scaling = True
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("differentiable", False)
            group.setdefault("fused", False)

    @use_grad_for_differentiable
    def step(self, closure: Closure | None = None) -> Any:
        """Updates the parameters once; returns what `closure` returned, if given."""
        loss = None if closure is None else evaluate(closure)
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def _step_group(self, group: ParamGroup) -> None:
        params = group["params"]
        grads = [grad for param in params if (grad := param.grad) is not None]
        if len(grads) != len(params):
            params = [param for param in params if param.grad is not None]
        if not params:
            return
        if group["fused"]:
            for param in params:
                check_fused(param)
        momentum = group["momentum"]
        states = [self.state[param] for param in params] if momentum else []
        buffers = [state.get("momentum_buffer") for state in states]
        sgd(
            params,
            grads,
            buffers,
            foreach=group["foreach"],
            fused=group["fused"],
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            differentiable=group["differentiable"],
            weight_decay=group["weight_decay"],
            momentum=momentum,
            lr=group["lr"],
            dampening=group["dampening"],
            nesterov=group["nesterov"],
            maximize=group["maximize"],
        )
        for state, buffer in zip(states, buffers, strict=True):
            state["momentum_buffer"] = buffer


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float | Tensor,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    differentiable: bool = False,
) -> None:
    """One step of `SGD` on parallel lists, in place; see the class for the rule.

    `momentum_buffer_list` may hold `None` for buffers that do not exist yet; they are put
    into the list. Call it under `no_grad`.
    """
    if not fused and (grad_scale is not None or found_inf is not None):
        raise AssertionError("Expected grad_scale and found_inf to be None")
    native = are_native(d_p_list)
    if fused and not native and any(grad.is_sparse for grad in d_p_list):
        raise RuntimeError("`_fused_sgd` does not support sparse gradients")
    if not fused and (
        differentiable
        or not native
        or isinstance(weight_decay, Tensor)
        or (isinstance(lr, Tensor) and lr.requires_grad)
    ):
        _plain_sgd(
            params,
            d_p_list,
            momentum_buffer_list,
            weight_decay=weight_decay,
            momentum=momentum,
            lr=scalar_of(lr),
            dampening=dampening,
            nesterov=nesterov,
            maximize=maximize,
        )
        return
    _native_sgd(
        params,
        d_p_list,
        momentum_buffer_list,
        {
            "weight_decay": float(weight_decay),
            "momentum": momentum,
            "lr": lr,
            "dampening": dampening,
            "nesterov": nesterov,
            "maximize": maximize,
            "grad_scale": grad_scale,
            "found_inf": found_inf,
        },
    )


def _native_sgd(
    params: list[Tensor],
    grads: list[Tensor],
    buffers: list[Tensor | None],
    options: dict[str, Any],
) -> None:
    """Calls the kernel, which refuses lists before it writes to any; apart for new buffers."""
    if not params and not grads:
        return
    if not options["momentum"]:
        _VF._fused_sgd_(params, grads, [], is_first_step=False, **options)
        return
    fresh = {row for row, buffer in enumerate(buffers) if buffer is None}
    rows = zip(grads, buffers, strict=True)
    made = [empty_like(grad) if buffer is None else buffer for grad, buffer in rows]
    if len(fresh) in (0, len(params)):
        _VF._fused_sgd_(params, grads, made, is_first_step=bool(fresh), **options)
    else:
        # A step that found an infinity writes nothing, but is refused as any other.
        infinite = {**options, "found_inf": ones(())}
        _VF._fused_sgd_(params, grads, made, is_first_step=False, **infinite)
        # A parameter that gets its first gradient late starts its buffer while others decay theirs.
        for is_first in (True, False):
            some = [row for row in range(len(params)) if (row in fresh) == is_first]
            lists = [[column[row] for row in some] for column in (params, grads, made)]
            _VF._fused_sgd_(*lists, is_first_step=is_first, **options)
    found_inf = options["found_inf"]
    if found_inf is None or found_inf.item() != 1:
        buffers[:] = made


def _plain_sgd(
    params: list[Tensor],
    grads: list[Tensor],
    buffers: list[Tensor | None],
    *,
    weight_decay: float | Tensor,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    for row, param in enumerate(params):
        grad = -grads[row] if maximize else grads[row]
        if isinstance(weight_decay, Tensor) and weight_decay.requires_grad:
            # The clone keeps the value that the product needs: the parameter changes below.
            grad = grad.addcmul(param.clone(), weight_decay)
        elif weight_decay != 0:
            grad = grad.add(param, alpha=scalar_of(weight_decay))
        if momentum != 0:
            buffer = buffers[row]
            if buffer is None:
                buffer = buffers[row] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
        if isinstance(lr, Tensor) and lr.requires_grad:
            param.addcmul_(grad, lr, value=-1)
        else:
            param.add_(grad, alpha=-scalar_of(lr))
