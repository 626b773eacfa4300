"""Adam, and the functional form that AdamW shares.

`Adam.step` gathers lists and hands them to the native kernels; `_plain_adam` is the same
rule in tensor operations for what the kernels do not take: complex parameters,
hyper-parameters that are tensors, differentiable steps. Invariant: both give the same
numbers up to rounding, and the state is the same either way: "step", a 0-dim CPU tensor
that counts from 1, with "exp_avg" and "exp_avg_sq" like the parameter (and
"max_exp_avg_sq" for amsgrad).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _C, Tensor, maximum, tensor, view_as_real, zeros, zeros_like
from .optimizer import (
    Closure,
    Optimizer,
    ParamGroup,
    ParamsT,
    check_capturable,
    check_fused,
    evaluate,
    is_native,
    kind_of,
    scalar_of,
    step_dtype,
    use_grad_for_differentiable,
)

__all__ = ["Adam", "adam"]

_VF = _C._VariableFunctions


class Adam(Optimizer):
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
        _check_lr(lr, eager_foreach)
        # Written as `not (valid)` so that a NaN is refused as well.
        if not lr >= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        _check_betas(betas, eager_foreach)
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
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
        if fused:
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            self._step_supports_amp_scaling = True
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("amsgrad", False)
            group.setdefault("maximize", False)
            group.setdefault("foreach", None)
            group.setdefault("capturable", False)
            group.setdefault("differentiable", False)
            group.setdefault("decoupled_weight_decay", False)
            group.setdefault("fused", None)
            for param in group["params"]:
                param_state = self.state.get(param)
                # Old checkpoints hold the counter as a plain number.
                if param_state and not isinstance(param_state["step"], Tensor):
                    param_state["step"] = _step_counter(group, param, float(param_state["step"]))

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
        amsgrad = group["amsgrad"]
        lists = self._state_lists(group, params, grads, amsgrad)
        if group["differentiable"] and any(count.requires_grad for count in lists[3]):
            raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
        beta1, beta2 = group["betas"]
        adam(
            params,
            grads,
            *lists,
            foreach=group["foreach"],
            capturable=group["capturable"],
            differentiable=group["differentiable"],
            fused=group["fused"],
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            decoupled_weight_decay=group["decoupled_weight_decay"],
            amsgrad=amsgrad,
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
        )

    def _state_lists(
        self, group: ParamGroup, params: list[Tensor], grads: list[Tensor], amsgrad: bool
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor], list[Tensor]]:
        """The moments, maxima and counters of `params`, made first where they are missing."""
        all_states = self.state
        states = [all_states[param] for param in params]
        if not all(states):
            _check_dense(grads)
            for param, state in zip(params, states, strict=True):
                if not state:
                    _init_state(group, param, state)
        return (
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["max_exp_avg_sq"] for state in states] if amsgrad else [],
            [state["step"] for state in states],
        )


def _check_lr(lr: float | Tensor, eager_foreach: bool) -> None:
    if not isinstance(lr, Tensor):
        return
    if eager_foreach:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    if lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def _check_betas(betas: tuple[float | Tensor, float | Tensor], eager_foreach: bool) -> None:
    for index in (0, 1):
        if not 0.0 <= betas[index] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {betas[index]}")
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


def _check_dense(grads: list[Tensor]) -> None:
    if any(grad.is_sparse for grad in grads):
        raise RuntimeError(
            "Adam does not support sparse gradients, please consider SparseAdam instead"
        )


def _step_counter(group: ParamGroup, param: Tensor, value: float) -> Tensor:
    # On the CPU unless a kernel on the device needs it: a launch per counter costs more.
    if group["capturable"] or group["fused"]:
        dtype = step_dtype(group["fused"])
        counter = zeros((), dtype=dtype, device=param.device)
        return counter.fill_(value) if value else counter
    return tensor(value, dtype=step_dtype())


def _init_state(group: ParamGroup, param: Tensor, state: dict[str, Any]) -> None:
    if group["fused"]:
        check_fused(param)
    state["step"] = _step_counter(group, param, 0.0)
    state["exp_avg"] = zeros_like(param)
    state["exp_avg_sq"] = zeros_like(param)
    if group["amsgrad"]:
        state["max_exp_avg_sq"] = zeros_like(param)


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
    kinds = set(map(kind_of, grads))
    if not fused and (grad_scale is not None or found_inf is not None):
        raise AssertionError("Expected grad_scale and found_inf to be None")
    if foreach and not capturable and isinstance(lr, Tensor):
        raise RuntimeError("lr as a Tensor is not supported for capturable=False and foreach=True")
    if capturable:
        check_capturable(params, state_steps)
    native = all(map(is_native, kinds))
    if not native:
        _check_dense(grads)
    if fused and differentiable:
        raise RuntimeError("Adam with fused=True does not support differentiable=True")
    if fused or (
        native
        and not differentiable
        and not isinstance(beta1, Tensor)
        and not isinstance(beta2, Tensor)
        and not isinstance(weight_decay, Tensor)
    ):
        _native_adam(
            [params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps],
            _VF._fused_adamw_ if decoupled_weight_decay else _VF._fused_adam_,
            {
                "amsgrad": amsgrad,
                "lr": lr,
                "beta1": scalar_of(beta1),
                "beta2": scalar_of(beta2),
                "weight_decay": weight_decay,
                "eps": eps,
                "maximize": maximize,
                "grad_scale": grad_scale,
                "found_inf": found_inf,
            },
        )
        return
    rule = _Rule(
        lr=scalar_of(lr),
        beta1=scalar_of(beta1),
        beta2=scalar_of(beta2),
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
        decoupled=decoupled_weight_decay,
        on_device=capturable or differentiable,
        differentiable=differentiable,
    )
    maxima: list[Tensor | None] = [*max_exp_avg_sqs] if amsgrad else [None] * len(params)
    for row in zip(params, grads, exp_avgs, exp_avg_sqs, maxima, state_steps, strict=True):
        _plain_adam(rule, *row)


def _native_adam(
    columns: list[list[Tensor]], kernel: Callable[..., None], options: dict[str, Any]
) -> None:
    """Counts the steps up and calls the kernel, which refuses lists before it writes to any."""
    state_steps = columns[5]
    for count in state_steps:
        count.add_(1)
    try:
        kernel(*columns, **options)
    except BaseException:
        for count in state_steps:
            count.sub_(1)
        raise
    found_inf = options["found_inf"]
    if found_inf is not None:
        # The kernel skips the update where the gradients overflowed: take the count back.
        for count in state_steps:
            count.sub_(found_inf.to(count.device))


class _Rule(NamedTuple):
    """The options of one step in tensor operations; `Any` is a float or a 0-dim tensor."""

    lr: Any
    beta1: Any
    beta2: Any
    weight_decay: Any
    eps: float
    maximize: bool
    decoupled: bool
    on_device: bool
    differentiable: bool


def _plain_adam(
    rule: _Rule,
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    max_exp_avg_sq: Tensor | None,
    count: Tensor,
) -> None:
    if rule.maximize:
        grad = -grad
    count.add_(1)
    grad = _decay(rule, param, grad)
    if param.is_complex():
        # Adam treats a complex number as two real ones.
        param, grad = view_as_real(param), view_as_real(grad)
        exp_avg, exp_avg_sq = view_as_real(exp_avg), view_as_real(exp_avg_sq)
        max_exp_avg_sq = None if max_exp_avg_sq is None else view_as_real(max_exp_avg_sq)
    _update_moments(rule, grad, exp_avg, exp_avg_sq)
    second = exp_avg_sq
    if max_exp_avg_sq is not None:
        before = max_exp_avg_sq.clone() if rule.differentiable else max_exp_avg_sq
        max_exp_avg_sq.copy_(maximum(before, exp_avg_sq))
        second = max_exp_avg_sq
    if rule.on_device:
        _move_with_tensors(rule, param, exp_avg, second, count)
    else:
        time = count.item()
        step_size = rule.lr / (1 - rule.beta1**time)
        scale = (1 - rule.beta2**time) ** 0.5
        param.addcdiv_(exp_avg, (second.sqrt() / scale).add_(rule.eps), value=-step_size)


def _decay(rule: _Rule, param: Tensor, grad: Tensor) -> Tensor:
    decay = rule.weight_decay
    if isinstance(decay, Tensor) and decay.requires_grad and not rule.decoupled:
        # The clone keeps the value that the product needs: the parameter changes below.
        grad = grad.addcmul(param.clone(), decay)
    elif decay == 0:
        pass
    elif rule.decoupled:
        param.mul_(1 - rule.lr * decay)
    else:
        grad = grad.add(param, alpha=decay)
    return grad


def _update_moments(rule: _Rule, grad: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor) -> None:
    beta1, beta2 = rule.beta1, rule.beta2
    if isinstance(beta1, Tensor):
        beta1 = beta1.to(device=grad.device, dtype=grad.dtype)
    exp_avg.lerp_(grad, 1 - beta1)
    if rule.differentiable and isinstance(beta2, Tensor) and beta2.requires_grad:
        # b2 v + (1 - b2) g^2 as one lerp: addcmul takes no tensor for its factor.
        exp_avg_sq.lerp_(grad.square(), 1 - beta2)
    else:
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)


def _move_with_tensors(
    rule: _Rule, param: Tensor, exp_avg: Tensor, second: Tensor, count: Tensor
) -> None:
    """Moves the parameter without reading the counter back, so that a graph can form."""
    # The counter changes in place at the next step, so a power with a graph needs a copy.
    time = count.clone() if rule.differentiable else count
    step_size = rule.lr / (1 - rule.beta1**time)
    downhill = step_size.neg()
    scale = (1 - rule.beta2**time).sqrt()
    denominator = (second.sqrt() / (scale * downhill)).add_(rule.eps / downhill)
    param.addcdiv_(exp_avg.clone() if rule.differentiable else exp_avg, denominator)
