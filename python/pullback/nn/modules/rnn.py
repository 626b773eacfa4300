"""Recurrent layers and cells.

The modules hold the parameters and check the calls; a call is one native function (``torch.lstm``,
``torch.lstm_cell`` and so on), which runs all layers, directions and steps. Sequences of different
lengths (``PackedSequence``) have an overload of their own. Invariant: a state is a tuple whose
first member is the output: ``(h,)``, or ``(h, c)`` for LSTM.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ... import _C
from ..._tensor import Tensor
from .. import init
from .._native import VF as _VF
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

State = tuple[Tensor, ...]

# The number of gates of a cell: the factor between hidden size and rows of its weights.
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}

# The op that runs all layers; a last state or the pair of them comes after the output.
_LAYERS: dict[str, Callable[..., Any]] = {
    "LSTM": _VF.lstm,
    "GRU": _VF.gru,
    "RNN_TANH": _VF.rnn_tanh,
    "RNN_RELU": _VF.rnn_relu,
}
_lstm_cell = _VF.lstm_cell
_gru_cell = _VF.gru_cell
_CELLS = {"tanh": _VF.rnn_tanh_cell, "relu": _VF.rnn_relu_cell}


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

    def __getstate__(self) -> dict[str, Any]:
        """The attributes, and the lists of parameters that PyTorch's classes read from files."""
        state = super().__getstate__()
        names = [name for names in self._all_weights for name in names]
        weights = [self._parameters.get(name) for name in names]
        # (A weight that is computed from others is no parameter; PyTorch cannot read such a file.)
        if all(weight is not None for weight in weights):
            state |= {"_flat_weights_names": names, "_flat_weights": weights}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        lists = ("_flat_weights_names", "_flat_weights")
        super().__setstate__({name: value for name, value in state.items() if name not in lists})

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuses inputs of another dtype, rank or number of features."""
        dtype = getattr(self, self._all_weights[0][0]).dtype
        if input.dtype != dtype and not _C._is_any_autocast_enabled():
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
        output, state = self._run(input, state, None)
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
        output, state = self._run(data, state, batch_sizes)
        packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return packed, self.permute_hidden(self._from_state(state), unsorted_indices)

    def _run(self, x: Tensor, state: State, batch_sizes: Tensor | None) -> tuple[Tensor, State]:
        """All layers and directions."""
        run = _LAYERS[self.mode]
        hx = self._from_state(state)
        rest = (
            hx,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )
        if batch_sizes is None:
            output, *state_out = run(x, *rest, self.batch_first)
        else:
            output, *state_out = run(x, batch_sizes, *rest)
        return output, tuple(state_out)

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
        options: dict[str, Any] = {"dtype": input.dtype, "device": input.device}
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
    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter
    bias_hh: Parameter

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

    def _rank_error(self, name: str, dims: int) -> ValueError:
        return ValueError(
            f"{type(self).__name__}: Expected {name} to be 1D or 2D, got {dims}D instead"
        )

    def _zeros(self, input: Tensor) -> Tensor:
        size = (input.size(0), self.hidden_size)
        return _VF.zeros(size, dtype=input.dtype, device=input.device)

    def _one_state(self, cell: Callable[..., Tensor], input: Tensor, hx: Tensor | None) -> Tensor:
        """One step of a cell whose state is one tensor, on a batch or one sample."""
        dims = input.dim()
        if dims not in (1, 2):
            raise self._rank_error("input", dims)
        if hx is not None and hx.dim() not in (1, 2):
            raise self._rank_error("hidden", hx.dim())
        if dims == 1:
            input = input.unsqueeze(0)
            hx = None if hx is None else hx.unsqueeze(0)
        if hx is None:
            hx = self._zeros(input)
        state = cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return state if dims == 2 else state.squeeze(0)

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
        cell = _CELLS.get(self.nonlinearity)
        if cell is None:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._one_state(cell, input, hx)


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
        dims = input.dim()
        if dims not in (1, 2):
            raise self._rank_error("input", dims)
        for index, part in enumerate(() if hx is None else hx):
            if part.dim() not in (1, 2):
                raise self._rank_error(f"hx[{index}]", part.dim())
        if dims == 1:
            input = input.unsqueeze(0)
            hx = None if hx is None else (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        if hx is None:
            zeros = self._zeros(input)
            hx = (zeros, zeros)
        out = _lstm_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return out if dims == 2 else (out[0].squeeze(0), out[1].squeeze(0))


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
        return self._one_state(_gru_cell, input, hx)
