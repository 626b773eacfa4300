"""Adam for sparse gradients: only the specified elements, and their moments, change."""

from __future__ import annotations

from typing import Any

from .. import Tensor, no_grad, zeros_like
from ._functional import sparse_adam
from ._lists import check_betas
from .optimizer import Closure, Optimizer, ParamGroup, ParamsT, evaluate, scalar_of

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    r"""Adam on the elements that a sparse gradient specifies; see `Adam` for the rule.

    Moments and parameters at other indices stay as they are, where Adam would decay the moments and
    move the parameters by them. Parameters are dense, gradients sparse (COO) tensors, such as
    `nn.Embedding(sparse=True)` gives; the count of steps in the state is a plain integer.

    `lr` may be a one-element tensor. There is no native kernel: the work is in a few operations on
    the values of the gradient. Parameters whose `grad` is `None` are left alone.

    Raises `ValueError` for `lr` or `eps` that is not positive, betas outside `[0, 1)`, and sparse
    or complex parameters; `RuntimeError` for dense gradients.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        self._refuse(lambda param: param.is_sparse, "Sparse", "requires dense parameter tensors")
        self._refuse(
            lambda param: param.is_complex(), "Complex", "does not support complex parameters"
        )

    def _refuse(self, is_wrong: Any, word: str, reason: str) -> None:
        numbers = [
            [number, index]
            for number, group in enumerate(self.param_groups)
            for index, param in enumerate(group["params"])
            if is_wrong(param)
        ]
        if numbers:
            raise ValueError(f"{word} params at indices {numbers}: SparseAdam {reason}")

    def step(self, closure: Closure | None = None) -> Any:
        """Updates the parameters once; returns what `closure` returned, if given."""
        loss = None if closure is None else evaluate(closure)
        with no_grad():
            for group in self.param_groups:
                self._step_group(group)
        return loss

    def _step_group(self, group: ParamGroup) -> None:
        params = [param for param in group["params"] if param.grad is not None]
        grads = [param.grad for param in params]
        if not all(grad.is_sparse for grad in grads):
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        states = [self.state[param] for param in params]
        for param, state in zip(params, states, strict=True):
            if not state:
                state["step"] = 0
                state["exp_avg"] = zeros_like(param)
                state["exp_avg_sq"] = zeros_like(param)
            state["step"] += 1
        beta1, beta2 = group["betas"]
        sparse_adam(
            params,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["step"] for state in states],
            eps=group["eps"],
            beta1=beta1,
            beta2=beta2,
            lr=scalar_of(group["lr"]),
            maximize=group.get("maximize", False),
        )
