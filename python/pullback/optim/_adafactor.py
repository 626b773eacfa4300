"""Adafactor: Adam's second moment of a matrix, kept as the means of its rows and columns.

There is no native kernel: each parameter needs norms and means of whole rows and columns, which are
ops already, and no loop over elements is left to fuse.
"""

from __future__ import annotations

from typing import Any

from .. import Tensor, finfo, linalg, no_grad, tensor, zeros_like
from ._lists import check_dense
from .optimizer import (
    Closure,
    Optimizer,
    ParamGroup,
    ParamsT,
    evaluate,
    scalar_of,
    step_dtype,
)

__all__ = ["Adafactor", "adafactor"]


class Adafactor(Optimizer):
    r"""Adafactor: `p <- p - a * u / max(1, rms(u) / d)` with `u = g / sqrt(v)`.

    In step `t`, `b = 1 - t^beta2_decay`; `a = max(eps[1], rms(p)) * min(lr, 1 / sqrt(t))`. For a
    gradient `g` (negated for `maximize`) of two or more dimensions the means of its squares over
    rows and columns are averaged, `r <- b r + (1 - b) mean_row(g^2)`,
    `c <- b c + (1 - b) mean_col(g^2)`, and `v = r c / max(mean(r), eps[0])`; for others
    `v <- b v + (1 - b) g^2`. `v` is at least `eps[0]^2`; `eps[0]` is the precision of the dtype if
    it is `None`. The decay is `p <- p (1 - lr * weight_decay)`.

    `lr` may be a one-element tensor. `foreach` is accepted and changes nothing. Parameters whose
    `grad` is `None` are left alone.

    Raises `ValueError` for values out of range; `RuntimeError` for complex parameters and sparse
    gradients.

    Source: Shazeer and Stern, Adafactor: adaptive learning rates with sublinear memory cost, 2018
    (there without `lr`, and `eps[0]` is added to the squares).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        # Written as `not (valid)` so that a NaN is refused as well.
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            for param in group["params"]:
                param_state = self.state.get(param)
                if param_state and not isinstance(param_state["step"], Tensor):
                    param_state["step"] = tensor(float(param_state["step"]), dtype=step_dtype())

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
            raise RuntimeError("Adafactor does not support complex parameters")
        check_dense(grads, "Adafactor")
        states = [self.state[param] for param in params]
        for grad, state in zip(grads, states, strict=True):
            if not state:
                _init_state(grad, state)
        eps1, eps2 = group["eps"]
        adafactor(
            params,
            grads,
            [state.get("row_var") for state in states],
            [state.get("col_var") for state in states],
            [state.get("variance") for state in states],
            [state["step"] for state in states],
            foreach=group["foreach"],
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            d=group["d"],
            lr=group["lr"],
            beta2_decay=group["beta2_decay"],
            weight_decay=group["weight_decay"],
            eps1=eps1,
            eps2=eps2,
            maximize=group["maximize"],
        )


def _init_state(grad: Tensor, state: dict[str, Any]) -> None:
    state["step"] = tensor(0.0, dtype=step_dtype())
    if grad.dim() > 1:
        *outer, rows, columns = grad.shape
        state["row_var"] = grad.new_zeros([*outer, rows, 1])
        state["col_var"] = grad.new_zeros([*outer, 1, columns])
    else:
        state["variance"] = zeros_like(grad)


def adafactor(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: float | Tensor,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """One step of `Adafactor` on parallel lists, in place; see the class for the rule.

    `row_vars` and `col_vars` are read for gradients of two or more dimensions, `variances` for
    others. Call it under `no_grad`.
    """
    if not all(isinstance(count, Tensor) for count in state_steps):
        raise RuntimeError("`state_steps` argument must contain a list of singleton tensors")
    if grad_scale is not None or found_inf is not None:
        raise AssertionError("Grad scaling should occur outside of optimizer.step()")
    lr = scalar_of(lr)
    rows = zip(params, grads, row_vars, col_vars, variances, state_steps, strict=True)
    for param, grad, row_var, col_var, variance, count in rows:
        grad = -grad if maximize else grad
        count.add_(1)
        time = count.item()
        least = finfo(param.dtype).eps if eps1 is None else eps1
        rate = max(eps2, _rms(param)) * min(lr, 1 / time**0.5)
        if weight_decay != 0:
            param.mul_(1 - lr * weight_decay)
        share = time**beta2_decay
        if grad.dim() > 1:
            estimate = _factored_variance(grad, row_var, col_var, share, least)
        elif variance is None:
            raise AssertionError("variance should be defined when grad is a vector")
        else:
            variance.lerp_(grad * grad, share)
            estimate = variance.clone()
        update = estimate.clamp_(min=least * least).rsqrt_().mul_(grad)
        param.add_(update, alpha=-rate / max(1.0, _rms(update) / d))


def _rms(values: Tensor) -> float:
    """The root of the mean square."""
    return float(values.norm(2).item() / values.numel() ** 0.5)


def _factored_variance(
    grad: Tensor, row_var: Tensor | None, col_var: Tensor | None, share: float, least: float
) -> Tensor:
    """Brings the means of rows and columns up to date; their product as estimate of the squares."""
    if row_var is None or col_var is None:
        raise AssertionError("row_var and col_var should be defined when grad is multidimensional")
    for factor, dim in ((row_var, -1), (col_var, -2)):
        norms = linalg.vector_norm(grad, dim=dim, keepdim=True)
        factor.lerp_(norms.square_().div_(grad.size(dim)), share)
    scale = row_var.mean(dim=-2, keepdim=True).clamp_(min=least)
    return (row_var @ col_var).div_(scale)


Adafactor.__module__ = __name__.rpartition(".")[0]
