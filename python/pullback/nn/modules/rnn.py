"""Recurrent layers and cells, written in terms of ops.

A layer projects its whole input at once and then walks over the steps; the three kinds of cell are
functions of ``(projected input, state)``. Sequences of different lengths (``PackedSequence``) take
the same walk with a batch that shrinks (or, backwards, grows). Invariant: a state is a tuple whose
first member is the output: ``(h,)``, or ``(h, c)`` for LSTM.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from .. import init
from .._native import VF as _VF
from .._native import nn as _nn
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_linear = _nn.linear

State = tuple[Tensor, ...]
Cell = Callable[[Tensor, State, Any], State]

# How many gates a cell has: the factor between hidden size and rows of its weights.
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _tanh_cell(x: Tensor, state: State, weights: Any) -> State:
    """``h' = tanh(x + W_hh h + b_hh)``."""
    return ((x + _linear(state[0], weights[0], weights[1])).tanh(),)


def _relu_cell(x: Tensor, state: State, weights: Any) -> State:
    """``h' = relu(x + W_hh h + b_hh)``."""
    return ((x + _linear(state[0], weights[0], weights[1])).relu(),)


def _lstm_cell(x: Tensor, state: State, weights: Any) -> State:
    """``c' = f c + i g``, ``h' = o tanh(c')`` for the gates i, f, g, o; ``h'`` may be projected."""
    h, c = state
    i, f, g, o = (x + _linear(h, weights[0], weights[1])).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return (h if weights[2] is None else _linear(h, weights[2])), c


def _gru_cell(x: Tensor, state: State, weights: Any) -> State:
    """``n = tanh(x_n + r h_n)``, ``h' = n + z (h - n)`` for the gates r, z and candidate n."""
    (h,) = state
    x_r, x_z, x_n = x.chunk(3, -1)
    h_r, h_z, h_n = _linear(h, weights[0], weights[1]).chunk(3, -1)
    r = (x_r + h_r).sigmoid()
    z = (x_z + h_z).sigmoid()
    n = (x_n + r * h_n).tanh()
    return ((h - n) * z + n,)


_CELLS: dict[str, Cell] = {
    "LSTM": _lstm_cell,
    "GRU": _gru_cell,
    "RNN_TANH": _tanh_cell,
    "RNN_RELU": _relu_cell,
}


def _walk(
    cell: Cell, steps: Sequence[Tensor], start: State, weights: Any, reverse: bool
) -> tuple[list[Tensor], State]:
    """Runs a cell over projected steps; the outputs in order of steps, and the last state.

    The rows of steps never increase in number. Rows that end are put aside; backwards they
    enter with their part of ``start`` when their last step comes.
    """
    if reverse:
        return _walk_backwards(cell, steps, start, weights)
    outputs = []
    ended: list[State] = []
    state = start
    rows = start[0].size(0)
    for step in steps:
        now = step.size(0)
        if now < rows:
            ended.append(tuple(part[now:] for part in state))
            state = tuple(part[:now] for part in state)
            rows = now
        state = cell(step, state, weights)
        outputs.append(state[0])
    if ended:
        pieces = [state, *reversed(ended)]
        state = tuple(_VF.cat(parts) for parts in zip(*pieces, strict=True))
    return outputs, state


def _walk_backwards(
    cell: Cell, steps: Sequence[Tensor], start: State, weights: Any
) -> tuple[list[Tensor], State]:
    outputs = []
    rows = steps[-1].size(0)
    state = start if rows == start[0].size(0) else tuple(part[:rows] for part in start)
    for step in reversed(steps):
        now = step.size(0)
        if now > rows:
            entering = [part[rows:now] for part in start]
            state = tuple(_VF.cat(both) for both in zip(state, entering, strict=True))
            rows = now
        state = cell(step, state, weights)
        outputs.append(state[0])
    outputs.reverse()
    return outputs, state


class RNNBase(Module):
    """What the recurrent layers share: parameters, checks, and the walk over layers.

    Args:
        mode: ``'LSTM'``, ``'GRU'``, ``'RNN_TANH'`` or ``'RNN_RELU'``.
        input_size: features of the input.
        hidden_size: features of the state.
        num_layers: how many layers are stacked.
        bias: whether the two biases of each layer exist.
        batch_first: whether batches are ``(N, T, *)`` instead of ``(T, N, *)``.
        dropout: the probability of dropping outputs between layers.
        bidirectional: whether each layer also runs backwards; the outputs are joined.
        proj_size: for LSTM, the size to which outputs are projected; 0 for none.
        device: where the parameters are made.
        dtype: of the parameters.

    Attributes:
        weight_ih_l0: ``(gates * hidden_size, input_size)``; so for layers 1, ... and, with the
            suffix ``_reverse``, for the backward direction. All parameters are at first from
            ``U(-k, k)``, ``k = 1 / sqrt(hidden_size)``.

    Raises:
        ValueError, TypeError: options out of range or of the wrong type.
    """

    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_dropout(dropout, num_layers)
        _check_sizes(input_size, hidden_size, num_layers, bias, batch_first, proj_size)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for direction in range(2 if bidirectional else 1):
                self._add_layer(layer, "_reverse" if direction else "", device, dtype)
        self.reset_parameters()

    def _add_layer(self, layer: int, suffix: str, device: Any, dtype: Any) -> None:
        rows = _GATES[self.mode] * self.hidden_size
        out = self.proj_size or self.hidden_size
        inputs = out * (2 if self.bidirectional else 1) if layer else self.input_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, inputs), "weight_hh": (rows, out)}
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = []
        for kind, shape in shapes.items():
            name = f"{kind}_l{layer}{suffix}"
            setattr(self, name, Parameter(_VF.empty(shape, device=device, dtype=dtype)))
            names.append(name)
        self._all_weights.append(names)

    def reset_parameters(self) -> None:
        """Draws all parameters anew, in order of registration."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for param in self.parameters():
            init.uniform_(param, -bound, bound)

    def flatten_parameters(self) -> None:
        """Has nothing to do: kernels take the parameters wherever they lie."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [weight for weights in self.all_weights for weight in weights]

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuses inputs of another dtype, rank or number of features."""
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). "
                f"Convert input: input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        dims = 3 if batch_sizes is None else 2
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. "
                f"Expected {self.input_size}, got {input.size(-1)}"
            )

    def _state_size(
        self, input: Tensor, batch_sizes: Tensor | None, features: int
    ) -> tuple[int, int, int]:
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0 if self.batch_first else 1)
        return self.num_layers * (2 if self.bidirectional else 1), batch, features

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape that ``h_0`` must have for this input."""
        return self._state_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Refuses a state of another shape."""
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuses inputs and states that do not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state with the batch in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # The state as the caller sees it, to and from a tuple; LSTM's is a tuple already.

    def _to_state(self, hx: Any) -> State:
        return (hx,)

    def _from_state(self, state: State) -> Any:
        return state[0]

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> State:
        size = self.get_expected_hidden_size(input, batch_sizes)
        return (_VF.zeros(size, dtype=input.dtype, device=input.device),)

    def _check_state_rank(self, state: State, batched: bool) -> None:
        dims = 3 if batched else 2
        if state[0].dim() != dims:
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx should also be {dims}-D but got {state[0].dim()}-D tensor"
            )

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Runs over a sequence.

        Args:
            input: ``(T, N, input_size)``, ``(N, T, input_size)`` with ``batch_first``,
                ``(T, input_size)`` for one sequence, or a ``PackedSequence``.
            hx: the state before the first step, ``(layers * directions, N, hidden_size)``,
                without ``N`` for one sequence; a pair of those for LSTM. Default: zeros.

        Returns:
            The outputs of the last layer, laid out as the input, and the state after the last
            step.

        Raises:
            ValueError, RuntimeError: shapes or dtypes do not fit.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            word = "tensor " if self.mode.startswith("RNN") else ""
            name = self.mode.partition("_")[0]
            raise ValueError(
                f"{name}: Expected input to be 2D or 3D, got {input.dim()}D {word}instead"
            )
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            state = self._zeros(input, None)
        else:
            state = self._to_state(hx)
            self._check_state_rank(state, batched)
            if not batched:
                state = tuple(part.unsqueeze(1) for part in state)
        self.check_forward_args(input, self._from_state(state), None)
        steps = input.transpose(0, 1) if self.batch_first else input
        if steps.size(0) == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        output, state = self._run(
            steps, state, lambda x: x.unbind(0), lambda outputs: _VF.stack(outputs)
        )
        if self.batch_first:
            output = output.transpose(0, 1)
        if not batched:
            output = output.squeeze(batch_dim)
            state = tuple(part.squeeze(1) for part in state)
        return output, self._from_state(state)

    def _forward_packed(self, input: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, batch_sizes, sorted_indices, unsorted_indices = input
        if hx is None:
            state = self._zeros(data, batch_sizes)
        else:
            state = self._to_state(self.permute_hidden(hx, sorted_indices))
        self.check_forward_args(data, self._from_state(state), batch_sizes)
        sizes = batch_sizes.tolist()
        output, state = self._run(data, state, lambda x: x.split(sizes), _VF.cat)
        packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return packed, self.permute_hidden(self._from_state(state), unsorted_indices)

    def _run(
        self,
        x: Tensor,
        state: State,
        split: Callable[[Tensor], Sequence[Tensor]],
        join: Callable[[list[Tensor]], Tensor],
    ) -> tuple[Tensor, State]:
        """All layers and directions; ``split`` and ``join`` go to steps and back."""
        directions = 2 if self.bidirectional else 1
        cell = _CELLS[self.mode]
        weights = self.all_weights
        finals: list[State] = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                index = layer * directions + direction
                w_ih, w_hh, b_ih, b_hh, w_hr = self._unpack(weights[index])
                steps = split(_linear(x, w_ih, b_ih))
                start = tuple(part[index] for part in state)
                out, final = _walk(cell, steps, start, (w_hh, b_hh, w_hr), direction == 1)
                outputs.append(join(out))
                finals.append(final)
            x = outputs[0] if directions == 1 else _VF.cat(outputs, -1)
            if self.dropout > 0 and layer < self.num_layers - 1:
                x = _VF.dropout(x, self.dropout, self.training)
        return x, tuple(_VF.stack(parts) for parts in zip(*finals, strict=True))

    def _unpack(self, weights: list[Any]) -> tuple[Any, ...]:
        """``w_ih, w_hh, b_ih, b_hh, w_hr`` with ``None`` for those that do not exist."""
        biases = weights[2:4] if self.bias else [None, None]
        return (*weights[:2], *biases, weights[-1] if self.proj_size else None)

    def extra_repr(self) -> str:
        """The sizes, and the options that differ from their defaults."""
        shown = [f"{self.input_size}", f"{self.hidden_size}"]
        if self.proj_size != 0:
            shown.append(f"proj_size={self.proj_size}")
        if self.num_layers != 1:
            shown.append(f"num_layers={self.num_layers}")
        if self.bias is not True:
            shown.append(f"bias={self.bias}")
        if self.batch_first is not False:
            shown.append(f"batch_first={self.batch_first}")
        if self.dropout != 0:
            shown.append(f"dropout={self.dropout}")
        if self.bidirectional is not False:
            shown.append(f"bidirectional={self.bidirectional}")
        return ", ".join(shown)


def _check_dropout(dropout: Any, num_layers: int) -> None:
    number = isinstance(dropout, (int, float)) and not isinstance(dropout, bool)
    if not number or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an "
            "element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={dropout} and "
            f"num_layers={num_layers}",
            stacklevel=4,
        )


def _check_sizes(
    input_size: Any, hidden_size: Any, num_layers: int, bias: Any, batch_first: Any, proj_size: int
) -> None:
    for name, value, kind in (
        ("bias", bias, bool),
        ("batch_first", batch_first, bool),
        ("input_size", input_size, int),
        ("hidden_size", hidden_size, int),
    ):
        if not isinstance(value, kind):
            raise TypeError(
                f"{name} should be of type {kind.__name__}, got: {type(value).__name__}"
            )
    for name, value in (
        ("input_size", input_size),
        ("hidden_size", hidden_size),
        ("num_layers", num_layers),
    ):
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNN(RNNBase):
    """``h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh)``, or relu in place of tanh.

    Takes ``(input_size, hidden_size, num_layers=1, nonlinearity='tanh', bias=True,
    batch_first=False, dropout=0.0, bidirectional=False, device=None, dtype=None)``.
    """

    nonlinearity: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        if len(args) > 3:
            nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


def _refuse_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class GRU(RNNBase):
    """Gated recurrent units: a reset gate, an update gate and a candidate.

    Takes ``(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, device=None, dtype=None)``.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory: input, forget and output gates around a cell state.

    Takes ``(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, proj_size=0, device=None, dtype=None)``; its state is the pair
    ``(h, c)``.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape that ``c_0`` must have for this input."""
        return self._state_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuses inputs and states that do not fit."""
        self.check_input(input, batch_sizes)
        for index, expected in enumerate(
            (
                self.get_expected_hidden_size(input, batch_sizes),
                self.get_expected_cell_size(input, batch_sizes),
            )
        ):
            message = f"Expected hidden[{index}] size {{}}, got {{}}"
            self.check_hidden_size(hidden[index], expected, message)

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The pair of states with the batch in another order."""
        if permutation is None:
            return hx
        return tuple(part.index_select(1, permutation) for part in hx)

    def _to_state(self, hx: Any) -> State:
        return tuple(hx)

    def _from_state(self, state: State) -> Any:
        return state

    def _zeros(self, input: Tensor, batch_sizes: Tensor | None) -> State:
        options = {"dtype": input.dtype, "device": input.device}
        return (
            _VF.zeros(self.get_expected_hidden_size(input, batch_sizes), **options),
            _VF.zeros(self.get_expected_cell_size(input, batch_sizes), **options),
        )

    def _check_state_rank(self, state: State, batched: bool) -> None:
        dims = 3 if batched else 2
        if any(part.dim() != dims for part in state):
            kind = "batched 3-D" if batched else "unbatched 2-D"
            found = ", ".join(f"{part.dim()}-D" for part in state)
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {dims}-D but got ({found}) tensors"
            )


class RNNCellBase(Module):
    """What the cells share: one step of a recurrent layer.

    Args:
        input_size: features of the input.
        hidden_size: features of the state.
        bias: whether the two biases exist.
        num_chunks: the number of gates.
        device: where the parameters are made.
        dtype: of the parameters.
    """

    input_size: int
    hidden_size: int
    bias: bool
    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        for name, shape in (
            ("weight_ih", (rows, input_size)),
            ("weight_hh", (rows, hidden_size)),
            ("bias_ih", (rows,)),
            ("bias_hh", (rows,)),
        ):
            if bias or name.startswith("weight"):
                setattr(self, name, Parameter(_VF.empty(shape, device=device, dtype=dtype)))
            else:
                self.register_parameter(name, None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all parameters from ``U(-k, k)``, ``k = 1 / sqrt(hidden_size)``."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for param in self.parameters():
            init.uniform_(param, -bound, bound)

    def _step(self, cell: Cell, input: Tensor, state: State | None, names: Sequence[str]) -> State:
        """One step of ``cell``, on a batch ``(N, *)`` or one sample."""
        kind = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{kind}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for name, part in zip(names, state or (), strict=False):
            if part.dim() not in (1, 2):
                raise ValueError(
                    f"{kind}: Expected {name} to be 1D or 2D, got {part.dim()}D instead"
                )
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if state is None:
            size = (input.size(0), self.hidden_size)
            zeros = _VF.zeros(size, dtype=input.dtype, device=input.device)
            state = (zeros,) * len(names)
        elif not batched:
            state = tuple(part.unsqueeze(0) for part in state)
        self._check_step(input, state)
        projected = _linear(input, self.weight_ih, self.bias_ih)
        state = cell(projected, state, (self.weight_hh, self.bias_hh, None))
        return state if batched else tuple(part.squeeze(0) for part in state)

    def _check_step(self, input: Tensor, state: State) -> None:
        if input.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(1)} expected {self.input_size}"
            )
        for index, part in enumerate(state):
            if part.size(0) != input.size(0):
                raise RuntimeError(
                    f"Input batch size {input.size(0)} doesn't match hidden{index} "
                    f"batch size {part.size(0)}"
                )
            if part.size(1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{index} has inconsistent hidden_size: got {part.size(1)}, "
                    f"expected {self.hidden_size}"
                )

    def extra_repr(self) -> str:
        """The sizes, and the options that differ from their defaults."""
        shown = [f"{self.input_size}", f"{self.hidden_size}"]
        if self.bias is not True:
            shown.append(f"bias={self.bias}")
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        if nonlinearity != "tanh":
            shown.append(f"nonlinearity={nonlinearity}")
        return ", ".join(shown)


class RNNCell(RNNCellBase):
    """``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)``, or relu in place of tanh.

    Args:
        input_size: features of the input.
        hidden_size: features of the state.
        bias: whether the two biases exist.
        nonlinearity: ``'tanh'`` or ``'relu'``.
        device: where the parameters are made.
        dtype: of the parameters.
    """

    nonlinearity: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The state after one step: ``(N, hidden_size)``, or without ``N``."""
        cell = _CELLS.get(f"RNN_{self.nonlinearity.upper()}")
        if cell is None:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(cell, input, None if hx is None else (hx,), ("hidden",))[0]


class LSTMCell(RNNCellBase):
    """One step of :class:`LSTM`.

    Args:
        input_size: features of the input.
        hidden_size: features of the state.
        bias: whether the two biases exist.
        device: where the parameters are made.
        dtype: of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The pair ``(h, c)`` after one step."""
        state = None if hx is None else tuple(hx)
        h, c = self._step(_lstm_cell, input, state, ("hx[0]", "hx[1]"))
        return h, c


class GRUCell(RNNCellBase):
    """One step of :class:`GRU`.

    Args:
        input_size: features of the input.
        hidden_size: features of the state.
        bias: whether the two biases exist.
        device: where the parameters are made.
        dtype: of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The state after one step: ``(N, hidden_size)``, or without ``N``."""
        return self._step(_gru_cell, input, None if hx is None else (hx,), ("hidden",))[0]
