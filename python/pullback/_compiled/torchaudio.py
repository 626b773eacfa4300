"""The ops of torchaudio: recursive filters, overdrive, RNN-T's loss, alignment.

A recursive filter runs in blocks: within a block its answer to the input is a product with a
triangular matrix, the filter's impulse response. Graves, Sequence Transduction with Recurrent
Neural Networks, 2012 (the loss); Graves et al., Connectionist Temporal Classification, 2006 (the
lattice of the alignment).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback as torch
from pullback import library

Tensor = Any
_LIBRARY = library.Library("torchaudio", "DEF")
_BUILD = library.Library("_torchaudio", "DEF")
_BLOCK = 128


def _op(owner: library.Library, schema: str) -> Callable[[Any], Any]:
    def define(function: Any) -> Any:
        owner.impl(owner.define(schema), function, "CompositeExplicitAutograd")
        return function

    return define


@_op(_BUILD, "cuda_version() -> int?")
def _cuda_version() -> None:
    return None


@_op(_BUILD, "is_align_available() -> bool")
def _is_align_available() -> bool:
    return True


def _lower(coefficients: Tensor, length: int) -> Tensor:
    """``(channels, length, length)``: what each sample of a block takes of those before it."""
    order = coefficients.size(1)
    matrix = coefficients.new_zeros(coefficients.size(0), length, length)
    for lag in range(min(order, length)):
        value = coefficients[:, order - 1 - lag, None].expand(-1, length - lag)
        matrix.diagonal(-lag, 1, 2).copy_(value)
    return matrix


@_op(
    _LIBRARY,
    "_lfilter_core_loop(Tensor input_signal_windows, Tensor a_coeff_flipped, Tensor(a!) "
    "padded_output_waveform) -> Tensor(a!)",
)
def _lfilter_core_loop(signal: Tensor, coefficients: Tensor, padded: Tensor) -> None:
    """``y[t] = x[t] - sum_k a[k] y[t-k]``, after the ``order - 1`` samples that are there."""
    order = coefficients.size(1)
    exact = coefficients.double()
    exact[:, -1] = 1.0
    response = torch.linalg.inv(_lower(exact, _BLOCK))
    # What the samples before a block add to it: the part of the matrix left of the diagonal.
    history = exact.new_zeros(exact.size(0), _BLOCK, order - 1)
    for place in range(min(order - 1, _BLOCK)):
        history[:, place, place:] = exact[:, : order - 1 - place]
    for start in range(0, signal.size(2), _BLOCK):
        block = signal[:, :, start : start + _BLOCK].double()
        length = block.size(2)
        before = padded[:, :, start : start + order - 1].double()
        rest = block - torch.einsum("ctk,bck->bct", history[:, :length], before)
        found = torch.einsum("cts,bcs->bct", response[:, :length, :length], rest)
        padded[:, :, start + order - 1 : start + order - 1 + length] = found.to(padded.dtype)


@_op(
    _LIBRARY,
    "_overdrive_core_loop(Tensor waveform, Tensor temp, Tensor(a!) last_in, Tensor(b!) last_out, "
    "Tensor(c!) output_waveform) -> ()",
)
def _overdrive_core_loop(
    waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output: Tensor
) -> None:
    """``o[t] = i[t] - i[t-1] + 0.995 o[t-1]``, mixed with the waveform."""
    if waveform.size(1) == 0:
        return
    steps = torch.cat([last_in[:, None], temp], 1).diff(dim=1)
    padded = torch.cat([last_out[:, None], torch.zeros_like(steps)], 1)[:, None]
    coefficients = temp.new_tensor([[-0.995, 1.0]])
    _lfilter_core_loop(steps[:, None], coefficients, padded)
    found = padded[:, 0, 1:]
    last_in.copy_(temp[:, -1])
    last_out.copy_(found[:, -1])
    output.copy_(0.5 * waveform + 0.75 * found)


@_op(
    _LIBRARY,
    "rnnt_loss_forward(Tensor logits, Tensor targets, Tensor logit_lengths, Tensor target_lengths, "
    "int blank, float clamp, bool fused_log_softmax) -> (Tensor, Tensor)",
)
def _rnnt_loss_forward(
    logits: Tensor,
    targets: Tensor,
    logit_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    clamp: float,
    fused_log_softmax: bool,
) -> tuple[Tensor, Tensor]:
    """The cost of each example, and its gradient with respect to the logits."""
    with torch.enable_grad():
        given = logits.detach().requires_grad_()
        scores = given.log_softmax(-1) if fused_log_softmax else given
        costs = _rnnt_costs(scores, targets.long(), logit_lengths, target_lengths, blank)
        (gradient,) = torch.autograd.grad(costs.sum(), given)
    if clamp > 0:
        gradient = gradient.clamp(-clamp, clamp)
    return costs.detach(), gradient


def _rnnt_costs(
    scores: Tensor, targets: Tensor, lengths: Tensor, target_lengths: Tensor, blank: int
) -> Tensor:
    """Minus the logarithm of the sum over all paths, by rows of the lattice.

    Within a row, ``a[u] = log(exp(x[u]) + exp(a[u-1] + e[u-1]))`` is a sum that runs along it: with
    ``E`` the running sum of ``e`` it is ``E + logcumsumexp(x - E)``.
    """
    stay = scores[..., blank]
    index = targets[:, None, :, None].expand(-1, scores.size(1), -1, 1)
    emit = scores[:, :, :-1].gather(-1, index)[..., 0]
    runs = torch.nn.functional.pad(emit.cumsum(-1), (1, 0))
    row = runs[:, 0]
    rows = [row]
    for time in range(1, scores.size(1)):
        row = runs[:, time] + (row + stay[:, time - 1] - runs[:, time]).logcumsumexp(-1)
        rows.append(row)
    ends = torch.stack(rows, 1) + stay
    examples = torch.arange(len(scores))
    return -ends[examples, lengths.long() - 1, target_lengths.long()]


@_op(
    _LIBRARY,
    "forced_align(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, "
    "int blank) -> (Tensor, Tensor)",
)
def _forced_align(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int
) -> tuple[Tensor, Tensor]:
    """The likeliest path of labels and blanks that spells the targets, and the scores."""
    if len(log_probs) != 1:
        raise RuntimeError(f"The batch dimension for log_probs must be 1, got {len(log_probs)}")
    scores = log_probs[0].double()
    labels = torch.full((2 * targets.size(1) + 1,), blank, dtype=torch.int64)
    labels[1::2] = targets[0]
    repeats = int((targets[0, 1:] == targets[0, :-1]).sum())
    if len(scores) < targets.size(1) + repeats:
        raise RuntimeError(
            "targets length is too long for CTC. Found log_probs length: "
            f"{len(scores)}, targets length: {targets.size(1)}, and number of repeats: {repeats}"
        )
    skips = torch.zeros(len(labels), dtype=torch.bool)
    skips[3::2] = labels[3::2] != labels[1:-2:2]
    path = [labels[state] for state in _best_states(scores[:, labels], skips)]
    return torch.stack(path)[None].to(targets.dtype), log_probs.clone()


def _best_states(scores: Tensor, skips: Tensor) -> list[int]:
    """The best path through the states: each step stays or advances by one, or two if allowed."""
    low = float("-inf")
    best = torch.full_like(scores[0], low)
    best[:2] = scores[0, :2]
    steps = []
    for score in scores[1:]:
        one = torch.nn.functional.pad(best[:-1], (1, 0), value=low)
        two = torch.nn.functional.pad(best[:-2], (2, 0), value=low)[: len(best)]
        two = torch.where(skips, two, low)
        step = torch.where((two > one) & (two > best), 2, torch.where((one > best), 1, 0))
        best = torch.maximum(torch.maximum(best, one), two) + score
        steps.append(step.tolist())
    count = len(best)
    state = count - 1 if count == 1 or best[-1] > best[-2] else count - 2
    states = [state]
    for step in reversed(steps):
        state -= step[state]
        states.append(state)
    return states[::-1]
