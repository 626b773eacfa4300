"""Recurrent layers with expanded weights: step by step, as calls of ``linear``, which has a rule.

The products with the input are one call for the whole sequence; those with the state are one for
each step. A packed sequence is padded first: what stands in the padding reaches no output, so its
gradients are zero. Its later steps have the first samples alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .... import _C
from ...._tensor import Tensor
from ... import functional as F
from .expanded_weights_impl import ExpandedWeight
from .expanded_weights_utils import standard_kwargs

__all__ = ["LAYERS", "Recurrent"]

_VF = _C._VariableFunctions
State = tuple[Tensor, ...]


def _plain_step(activation: Callable[[Tensor], Tensor]) -> Callable[..., State]:
    def step(from_input: Tensor, from_state: Tensor, state: State) -> State:
        return (activation(from_input + from_state),)

    return step


def _lstm_step(from_input: Tensor, from_state: Tensor, state: State) -> State:
    enter, forget, cell, out = (from_input + from_state).chunk(4, -1)
    kept = forget.sigmoid() * state[1] + enter.sigmoid() * cell.tanh()
    return out.sigmoid() * kept.tanh(), kept


def _gru_step(from_input: Tensor, from_state: Tensor, state: State) -> State:
    first, second, third = from_input.chunk(3, -1)
    reset, update, new = from_state.chunk(3, -1)
    gate = (second + update).sigmoid()
    fresh = (third + (first + reset).sigmoid() * new).tanh()
    return (fresh + gate * (state[0] - fresh),)


LAYERS: dict[Callable[..., Any], Callable[..., State]] = {
    _VF.rnn_tanh: _plain_step(_VF.tanh),
    _VF.rnn_relu: _plain_step(_VF.relu),
    _VF.lstm: _lstm_step,
    _VF.gru: _gru_step,
}


def _like(weight: Any, batch_first: bool, smaller: bool) -> Any:
    """A stand-in for the same parameter, for inputs that are laid out in another way."""
    if not isinstance(weight, ExpandedWeight):
        return weight
    made = ExpandedWeight(weight.orig_weight, weight.batch_size, weight.loss_reduction)
    made.set_batch_first(batch_first)
    made.set_allow_smaller_batches(smaller)
    return made


def _run(
    source: Tensor,
    state: State,
    weights: Sequence[Any],
    step: Callable[..., State],
    counts: list[int],
    backwards: bool,
    has_biases: bool,
) -> tuple[Tensor, State]:
    """One direction of one layer over ``(T, N, features)``; step ``t`` has ``counts[t]`` samples.

    Samples that are not yet, or no longer, part of a step keep their state.
    """
    by_input, by_state, *rest = weights
    biases, projection = (rest[:2], rest[2:]) if has_biases else ([None, None], rest)
    from_input = F.linear(source, _like(by_input, False, False), _like(biases[0], False, False))
    by_state, bias, *projection = [_like(x, True, True) for x in (by_state, biases[1], *projection)]
    outputs: list[Any] = [None] * len(counts)
    order = range(len(counts))
    for at in reversed(order) if backwards else order:
        count = counts[at]
        now = tuple(one[:count] for one in state)
        new = step(from_input[at, :count], F.linear(now[0], by_state, bias), now)
        if projection:
            new = F.linear(new[0], projection[0]), *new[1:]
        outputs[at] = _padded(new[0], source.size(1))
        pairs = zip(new, state, strict=True)
        state = tuple(_VF.cat([a, b[count:]]) if count < b.size(0) else a for a, b in pairs)
    return _VF.stack(outputs), state


def _padded(rows: Tensor, count: int) -> Tensor:
    missing = count - rows.size(0)
    return F.pad(rows, [0, 0, 0, missing]) if missing else rows


def _layers(
    source: Tensor,
    state: State,
    params: Sequence[Any],
    step: Callable[..., State],
    counts: list[int],
    options: tuple[bool, int, float, bool, bool],
) -> tuple[Tensor, ...]:
    """All layers and directions."""
    has_biases, num_layers, dropout, train, bidirectional = options
    directions = 2 if bidirectional else 1
    runs = num_layers * directions
    width = len(params) // runs
    last: list[State] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            begin = tuple(one[at] for one in state)
            weights = params[at * width : (at + 1) * width]
            found, end = _run(source, begin, weights, step, counts, direction == 1, has_biases)
            outputs.append(found)
            last.append(end)
        source = _VF.cat(outputs, -1) if bidirectional else outputs[0]
        if dropout and train and layer + 1 < num_layers:
            source = F.dropout(source, dropout, True)
    return source, *(_VF.stack(parts) for parts in zip(*last, strict=True))


class Recurrent:
    """Takes the calls of recurrent layers that have expanded weights."""

    @staticmethod
    def apply(kwarg_names: tuple[str, ...], func: Any, *given: Any) -> tuple[Tensor, ...]:
        """Computes one call. For a packed sequence there is one argument more, before the state."""
        args, kwargs = standard_kwargs(kwarg_names, given)
        if kwargs:
            raise RuntimeError(
                f"{func.__name__}(): with Expanded Weights all arguments must be positional"
            )
        step = LAYERS[func]
        if isinstance(args[3], bool):
            source, hx, params, *options, batch_first = args
            source = source.transpose(0, 1) if batch_first else source
            counts = [source.size(1)] * source.size(0)
            output, *last = _layers(source, _state(hx), params, step, counts, tuple(options))
            return output.transpose(0, 1) if batch_first else output, *last
        data, batch_sizes, hx, params, *options = args
        counts = batch_sizes.tolist()
        parts = [_padded(one, counts[0]) for one in data.split(counts)]
        found, *last = _layers(_VF.stack(parts), _state(hx), params, step, counts, tuple(options))
        return _VF.cat([one[:count] for one, count in zip(found, counts, strict=True)]), *last


def _state(hx: Any) -> State:
    return tuple(hx) if isinstance(hx, (list, tuple)) else (hx,)
