"""L-BFGS: quasi-Newton steps from the last changes of the gradient.

There is no native kernel: the loss is evaluated several times within a step, and what lies between
is dot products and sums of flat vectors, which are ops already.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

from .. import Tensor, cat, contiguous_format, enable_grad, no_grad, view_as_real
from .optimizer import Closure, Optimizer, ParamsT, scalar_of

__all__ = ["LBFGS"]

# The fields of the state between the steps, apart from the counts.
_KEPT = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


class LBFGS(Optimizer):
    r"""L-BFGS: `p <- p + t * d` with `d = -H g`, `H` an estimate of the inverse Hessian.

    `H` comes from the last `history_size` changes of the gradient `y` and of the parameters `s` by
    the two-loop recursion, from `(y . s / y . y) I`. A call of `step` runs up to `max_iter`
    iterations, as long as no more than `max_eval` (by default `1.25 max_iter`) evaluations are
    spent, the largest gradient is above `tolerance_grad` and the loss and the parameters change by
    more than `tolerance_change`. `line_search_fn="strong_wolfe"` looks for the step length `t`;
    without, `t` is `lr`, in the first iteration `min(1, 1 / |g|_1) * lr`.

    There is one group of parameters; a missing gradient counts as zero, a complex parameter as two
    real ones. `step` needs a closure, which clears the gradients, computes the loss, runs its
    backward pass and returns it. The state hangs on the first parameter.

    `lr` may be a one-element tensor; `maximize` climbs.

    Raises `ValueError` for a negative `lr` and for several groups; `RuntimeError` for another line
    search.

    Sources: Nocedal and Wright, Numerical optimization, 2006, algorithms 7.4, 3.5 and 3.6.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]  # type: ignore[no-any-return]

    def step(self, closure: Closure) -> Any:  # type: ignore[override]
        """Runs up to `max_iter` iterations; returns what `closure` returned first."""
        with no_grad():
            return self._step(closure)

    def _step(self, closure: Closure) -> Any:
        if len(self.param_groups) != 1:
            raise AssertionError(
                f"Expected exactly one param_group, but got {len(self.param_groups)}"
            )
        closure = enable_grad()(closure)
        if not self._params:
            return closure()
        group = self.param_groups[0]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss = self._signed(first_loss)
        state["func_evals"] += 1
        flat_grad = self._gather_flat_grad()
        if flat_grad.abs().max() <= group["tolerance_grad"]:
            return first_loss
        kept = SimpleNamespace(**{name: state.get(name) for name in _KEPT})
        evals = 1
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            is_first = state["n_iter"] == 1
            self._choose_direction(kept, state, flat_grad)
            self._remember(kept, flat_grad, loss)
            lr = scalar_of(group["lr"])
            kept.t = min(1.0, 1.0 / flat_grad.abs().sum()) * lr if is_first else lr
            slope = flat_grad.dot(kept.d)
            if slope > -group["tolerance_change"]:
                break
            is_last = iteration == group["max_iter"]
            if group["line_search_fn"] is None:
                spent = 0
                self._add(kept.t, kept.d)
                if not is_last:
                    loss = self._signed(closure())
                    flat_grad = self._gather_flat_grad()
                    spent = 1
            else:
                loss, flat_grad, kept.t, spent = self._search(
                    closure, kept, loss, flat_grad, slope, group["max_eval"] - evals
                )
            evals += spent
            state["func_evals"] += spent
            if is_last or evals >= group["max_eval"] or self._is_done(kept, loss, flat_grad):
                break
        state.update((name, getattr(kept, name)) for name in _KEPT)
        return first_loss

    def _is_done(self, kept: SimpleNamespace, loss: float, flat_grad: Tensor) -> bool:
        group = self.param_groups[0]
        tolerance = group["tolerance_change"]
        return bool(
            flat_grad.abs().max() <= group["tolerance_grad"]
            or kept.d.mul(kept.t).abs().max() <= tolerance
            or abs(loss - kept.prev_loss) < tolerance
        )

    def _choose_direction(
        self, kept: SimpleNamespace, state: dict[str, Any], flat_grad: Tensor
    ) -> None:
        """Sets the direction: downhill at first, then the two-loop recursion over the history."""
        if state["n_iter"] == 1:
            kept.d = flat_grad.neg()
            kept.old_dirs, kept.old_stps, kept.ro, kept.H_diag = [], [], [], 1
            return
        history_size = self.param_groups[0]["history_size"]
        change, move = flat_grad.sub(kept.prev_flat_grad), kept.d.mul(kept.t)
        curvature = change.dot(move)
        if curvature > 1e-10:
            if len(kept.old_dirs) == history_size:
                for history in (kept.old_dirs, kept.old_stps, kept.ro):
                    history.pop(0)
            kept.old_dirs.append(change)
            kept.old_stps.append(move)
            kept.ro.append(1.0 / curvature)
            kept.H_diag = curvature / change.dot(change)
        shares = state.setdefault("al", [None] * history_size)
        direction = flat_grad.neg()
        history = list(zip(kept.old_dirs, kept.old_stps, kept.ro, strict=True))
        for index, (change, move, ro) in reversed(list(enumerate(history))):
            shares[index] = move.dot(direction) * ro
            direction.add_(change, alpha=-shares[index])
        direction = direction.mul(kept.H_diag)
        for index, (change, move, ro) in enumerate(history):
            direction.add_(move, alpha=shares[index] - change.dot(direction) * ro)
        kept.d = direction

    @staticmethod
    def _remember(kept: SimpleNamespace, flat_grad: Tensor, loss: float) -> None:
        if kept.prev_flat_grad is None:
            kept.prev_flat_grad = flat_grad.clone(memory_format=contiguous_format)
        else:
            kept.prev_flat_grad.copy_(flat_grad)
        kept.prev_loss = loss

    def _search(
        self,
        closure: Closure,
        kept: SimpleNamespace,
        loss: float,
        flat_grad: Tensor,
        slope: Tensor,
        max_evals: int,
    ) -> tuple[float, Tensor, Any, int]:
        """Moves to a point that the line search finds; its loss, gradient, step and evaluations."""
        if self.param_groups[0]["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        origin = [p.clone(memory_format=contiguous_format) for p in self._params]

        def evaluate(t: Any) -> _Point:
            self._add(t, kept.d)
            loss = self._signed(closure())
            grad = self._gather_flat_grad()
            for param, value in zip(self._params, origin, strict=True):
                param.copy_(value)
            return _Point(t, loss, grad, grad.dot(kept.d))

        start = _Point(0, loss, flat_grad.clone(memory_format=contiguous_format), slope)
        largest = kept.d.abs().max()
        point, evals = strong_wolfe(evaluate, start, kept.t, largest, max_evals)
        self._add(point.t, kept.d)
        return point.loss, point.grad, point.t, evals

    def _signed(self, loss: Any) -> float:
        value = float(loss)
        return -value if self.param_groups[0].get("maximize", False) else value

    def _gather_flat_grad(self) -> Tensor:
        """The gradients of all parameters as one vector of reals."""
        parts = []
        for param in self._params:
            grad = param.grad
            if grad is None:
                grad = param.new_zeros(param.numel())
            elif grad.is_sparse:
                grad = grad.to_dense()
            flat = grad.reshape(-1)
            parts.append(view_as_real(flat).reshape(-1) if flat.is_complex() else flat)
        flat_grad = cat(parts, 0)
        return flat_grad.neg_() if self.param_groups[0].get("maximize", False) else flat_grad

    def _add(self, step_size: Any, update: Tensor) -> None:
        """Adds `step_size * update` to the parameters, a vector of reals for all."""
        offset = 0
        for param in self._params:
            real = view_as_real(param) if param.is_complex() else param
            count = real.numel()
            real.add_(update[offset : offset + count].view_as(real), alpha=step_size)
            offset += count


class _Point(NamedTuple):
    """A point of a line search: step, loss, gradient, and the slope along the line."""

    t: Any
    loss: float
    grad: Tensor
    slope: Any

    def kept(self) -> _Point:
        """The point with a gradient of its own."""
        return self._replace(grad=self.grad.clone(memory_format=contiguous_format))


def _cubic_minimum(a: _Point, b: _Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Where the cubic through two points with their slopes is least, within `bounds`.

    By default the bounds are the points. Source: Nocedal and Wright, equation 3.59.
    """
    low, high = bounds or ((a.t, b.t) if a.t <= b.t else (b.t, a.t))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    if a.t > b.t:
        a, b = b, a
    least = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(least, low), high)


def strong_wolfe(
    evaluate: Callable[[Any], _Point],
    start: _Point,
    t: Any,
    largest: Tensor,
    max_evals: int,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
) -> tuple[_Point, int]:
    """Looks for a point with `loss <= start.loss + c1 t slope` and `|slope at t| <= c2 |slope|`.

    `largest` is the largest element of the direction. Returns the point and the evaluations spent.
    """

    def rises(point: _Point, other: float) -> bool:
        return bool(point.loss > start.loss + c1 * point.t * start.slope or point.loss >= other)

    def is_flat(point: _Point) -> bool:
        return bool(abs(point.slope) <= -c2 * start.slope)

    # First the step grows until the interval back to the last point holds a minimum.
    previous, point = start, evaluate(t)
    evals, rounds = 1, 0
    bracket = None
    while rounds < max_evals:
        if rises(point, previous.loss if rounds > 1 else float("inf")) or (
            not is_flat(point) and point.slope >= 0
        ):
            bracket = [previous, point.kept()]
            break
        if is_flat(point):
            return point, evals
        least = point.t + 0.01 * (point.t - previous.t)
        t = _cubic_minimum(previous, point, (least, point.t * 10))
        previous, point = point.kept(), evaluate(t)
        evals += 1
        rounds += 1
    if bracket is None:
        bracket = [start, point]
    # Then the interval shrinks until a point in it is flat enough.
    low = 0 if bracket[0].loss <= bracket[1].loss else 1
    stalls = False
    while rounds < max_evals:
        ends = [end.t for end in bracket]
        if abs(ends[1] - ends[0]) * largest < tolerance_change:
            break
        t = _cubic_minimum(bracket[0], bracket[1])
        t, stalls = _away_from_ends(t, min(ends), max(ends), stalls)
        point = evaluate(t)
        evals += 1
        rounds += 1
        high = 1 - low
        if rises(point, bracket[low].loss):
            bracket[high] = point.kept()
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        done = is_flat(point)
        if not done and point.slope * (bracket[high].t - bracket[low].t) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = point.kept()
        if done:
            break
    return bracket[low], evals


def _away_from_ends(t: Any, low: Any, high: Any, stalls: bool) -> tuple[Any, bool]:
    """Moves a step off the ends of the interval if it is there, or close for the second time."""
    margin = 0.1 * (high - low)
    if not min(high - t, t - low) < margin:
        return t, False
    if stalls or t >= high or t <= low:
        near_high = abs(t - high) < abs(t - low)
        return (high - margin if near_high else low + margin), False
    return t, True
