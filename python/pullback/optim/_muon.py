"""Muon: momentum steps of matrices, made orthogonal.

There is no native kernel: a step is a few products of matrices, which are ops already, and no loop
over elements is left to fuse.
"""

from __future__ import annotations

import math
from typing import Any

from .. import Tensor, addmm, bfloat16, no_grad, zeros_like
from ._lists import check_dense
from .optimizer import Closure, Optimizer, ParamGroup, ParamsT, evaluate, scalar_of

__all__ = ["Muon", "muon"]

# The quintic of Jordan's post, steepest at zero: a fixed point near one is not needed.
EPS = 1e-7
DEFAULT_A = 3.4445
DEFAULT_B = -4.7750
DEFAULT_C = 2.0315
DEFAULT_NS_STEPS = 5

_OPTIONS = (
    "lr",
    "weight_decay",
    "momentum",
    "nesterov",
    "ns_coefficients",
    "eps",
    "ns_steps",
    "adjust_lr_fn",
)

# The factor of the learning rate for an m x n matrix.
_ADJUSTMENTS = {
    "original": lambda m, n: math.sqrt(max(1, m / n)),
    "match_rms_adamw": lambda m, n: 0.2 * math.sqrt(max(m, n)),
    "spectral_unclamped": lambda m, n: math.sqrt(m / n),
}


class Muon(Optimizer):
    r"""Muon: `p <- p (1 - lr * weight_decay) - a * lr * orthogonal(u)`, for matrices only.

    `b <- momentum * b + (1 - momentum) g`, and `u = momentum * b + (1 - momentum) g` with
    `nesterov`, else `u = b`. `orthogonal(u)` comes near the orthogonal factor of `u`, with singular
    values between about 0.5 and 1.5: `ns_steps` Newton-Schulz iterations
    `x <- ns[0] x + (ns[1] x x^T + ns[2] (x x^T)^2) x` in bfloat16, from `u / max(|u|, eps)`. For a
    matrix of m rows and n columns, `a` is `sqrt(max(1, m / n))` with `adjust_lr_fn` "original" (or
    `None`), `0.2 sqrt(max(m, n))` with "match_rms_adamw", `sqrt(m / n)` with "spectral_unclamped".

    `lr` may be a one-element tensor. Parameters whose `grad` is `None` are left alone.

    Raises `ValueError` for values out of range and for parameters that are no matrices;
    `RuntimeError` for complex parameters and sparse gradients.

    Source: Jordan, Muon: an optimizer for hidden layers in neural networks, 2024.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (DEFAULT_A, DEFAULT_B, DEFAULT_C),
        eps: float = EPS,
        ns_steps: int = DEFAULT_NS_STEPS,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        # Written as `not (valid)` so that a NaN is refused as well.
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn is not None and adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with "
                        f"size: {param.size()}"
                    )

    def step(self, closure: Closure | None = None) -> Any:
        """Updates the parameters once; returns what `closure` returned, if given."""
        loss = None if closure is None else evaluate(closure)
        with no_grad():
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _step_group(self, group: ParamGroup) -> None:
        params = [param for param in group["params"] if param.grad is not None]
        grads: list[Any] = [param.grad for param in params]
        if any(param.is_complex() for param in params):
            raise RuntimeError("Muon does not support complex parameters")
        check_dense(grads, "Muon")
        states = [self.state[param] for param in params]
        for grad, state in zip(grads, states, strict=True):
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = zeros_like(grad)
        options = {name: group[name] for name in _OPTIONS}
        buffers = [state["momentum_buffer"] for state in states]
        muon(params, grads, buffers, **options, has_complex=False)


def muon(
    params: list[Tensor],
    grads: list[Tensor],
    muon_momentum_bufs: list[Tensor],
    *,
    foreach: bool | None = None,
    lr: float | Tensor,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: tuple[float, float, float],
    ns_steps: int,
    eps: float,
    adjust_lr_fn: str | None,
    has_complex: bool,
) -> None:
    """One step of `Muon` on parallel lists, in place; see the class for the rule.

    Call it under `no_grad`. Raises `RuntimeError` for `foreach=True`, `ValueError` for complex
    parameters, gradients that are no matrices, 100 iterations and more, and coefficients that are
    not three.
    """
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    if has_complex:
        raise ValueError("Complex parameters are not supported")
    # Before anything changes.
    if ns_steps >= 100:
        raise ValueError(
            "Number of steps must be less than 100 for computational efficiency, got "
            f"ns_steps={ns_steps}"
        )
    if len(ns_coefficients) != 3:
        raise ValueError(f"Coefficients must be a tuple of exactly 3 values, got {ns_coefficients}")
    for grad in grads:
        if grad.ndim != 2:
            raise ValueError(f"Param gradient must be a 2D matrix, got size {grad.size()}")
    rate: Any = scalar_of(lr)
    for param, grad, buffer in zip(params, grads, muon_momentum_bufs, strict=True):
        buffer.lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if nesterov else buffer
        update = _orthogonalize(update, ns_coefficients, ns_steps, eps)
        ratio = _ADJUSTMENTS[adjust_lr_fn or "original"](*param.shape)
        param.mul_(1 - rate * weight_decay)
        param.add_(update, alpha=-rate * ratio)


def _orthogonalize(
    matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """Newton-Schulz iterations towards the orthogonal factor of a matrix, in bfloat16."""
    a, b, c = coefficients
    # The products of rows with rows are the smaller for a wide matrix.
    is_tall = matrix.size(0) > matrix.size(1)
    x = matrix.to(dtype=bfloat16, copy=True)
    x = x.T if is_tall else x
    x.div_(x.norm().clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.T
        change = addmm(gram, gram, gram, beta=b, alpha=c)
        x = addmm(x, change, x, beta=a)
    return x.T if is_tall else x


Muon.__module__ = __name__.rpartition(".")[0]
