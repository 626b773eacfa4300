"""Sequences of different lengths: padded to a rectangle, or packed without padding.

A :class:`PackedSequence` holds the elements step by step: first those of all sequences at step 0,
then at step 1, and so on, longest sequence first. Invariant: ``batch_sizes`` never increases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ... import _C
from ..._tensor import Tensor
from .._native import VF as _VF

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences of different lengths without padding; made by the ``pack_*`` functions.

    Attributes:
        data: ``(sum of lengths, *)``, step by step.
        batch_sizes: how many sequences each step has; on the CPU.
        sorted_indices: which sequence of the caller stands where; ``None`` if as given.
        unsorted_indices: the inverse of that.

    Raises:
        ValueError: ``batch_sizes`` is not on the CPU.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Self:
        """Checks the parts and completes the indices."""
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            # The pair that older programs pass.
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like pack_sequence "
                "and pack_padded_sequences in nn.utils.rnn."
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, convert: Callable[[Tensor], Tensor]) -> Self:
        data = convert(self.data)
        if data is self.data:
            return self
        moved = [
            None if index is None else index.to(data.device)
            for index in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *moved)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves or casts ``data`` as ``Tensor.to`` does, and the indices with it."""
        return self._with(lambda data: data.to(*args, **kwargs))

    def cpu(self) -> Self:
        """Moves ``data`` to the CPU."""
        return self._with(lambda data: data.cpu())

    def cuda(self, *args: Any, **kwargs: Any) -> Self:
        """Moves ``data`` to a GPU."""
        return self._with(lambda data: data.cuda(*args, **kwargs))

    def double(self) -> Self:
        """Casts ``data`` to ``float64``."""
        return self._with(lambda data: data.double())

    def float(self) -> Self:
        """Casts ``data`` to ``float32``."""
        return self._with(lambda data: data.float())

    def half(self) -> Self:
        """Casts ``data`` to ``float16``."""
        return self._with(lambda data: data.half())

    def long(self) -> Self:
        """Casts ``data`` to ``int64``."""
        return self._with(lambda data: data.long())

    def int(self) -> Self:
        """Casts ``data`` to ``int32``."""
        return self._with(lambda data: data.int())

    def short(self) -> Self:
        """Casts ``data`` to ``int16``."""
        return self._with(lambda data: data.short())

    def char(self) -> Self:
        """Casts ``data`` to ``int8``."""
        return self._with(lambda data: data.char())

    def byte(self) -> Self:
        """Casts ``data`` to ``uint8``."""
        return self._with(lambda data: data.byte())

    def is_pinned(self) -> bool:
        """Whether ``data`` is in memory that a GPU copies from."""
        return bool(self.data.is_pinned())

    def pin_memory(self) -> Self:
        """Moves ``data`` to memory that a GPU copies from."""
        return self._with(lambda data: data.pin_memory())

    @property
    def is_cuda(self) -> bool:
        """Whether ``data`` is on a GPU."""
        return bool(self.data.is_cuda)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation ``q`` with ``q[p[i]] = i``; ``None`` for ``None``."""
    if permutation is None:
        return None
    order = _VF.arange(permutation.numel(), device=permutation.device)
    inverse: Tensor = _VF.empty_like(permutation).scatter_(0, permutation, order)
    return inverse


def _as_lengths(lengths: Any) -> list[int]:
    numbers = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    return [int(number) for number in numbers]


def _int_tensor(numbers: Sequence[int]) -> Tensor:
    """An int64 tensor of one dimension, on the CPU."""
    made: Tensor = _C.tensor(list(numbers), device="cpu").long()
    return made


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs a padded batch.

    Args:
        input: ``(T, N, *)``, or ``(N, T, *)`` with ``batch_first``.
        lengths: of the ``N`` sequences, a list or a tensor on the CPU.
        batch_first: the layout of ``input``.
        enforce_sorted: whether lengths must not increase; otherwise the batch is sorted here.

    Raises:
        RuntimeError: there are no lengths, they do not fit, or they are not sorted.
    """
    if isinstance(lengths, Tensor) and lengths.device.type != "cpu":
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.dim()}D {lengths.device} {lengths.dtype} tensor"
        )
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    sizes = _as_lengths(lengths)
    sorted_indices: Tensor | None = None
    if not enforce_sorted:
        order = sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True)
        sizes = [sizes[i] for i in order]
        sorted_indices = _int_tensor(order).to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if batch_first:
        input = input.transpose(0, 1)
    _check_lengths(input, sizes)
    batch_sizes = [sum(size > step for size in sizes) for step in range(sizes[0])]
    # Consecutive steps of one batch size are contiguous blocks.
    parts = [input[step, :batch] for step, batch in enumerate(batch_sizes)]
    data = _VF.cat(parts)
    return PackedSequence(data, _int_tensor(batch_sizes), sorted_indices)


def _check_lengths(input: Tensor, sizes: list[int]) -> None:
    if not sizes:
        raise RuntimeError("Cannot pack empty tensors.")
    if len(sizes) != input.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} "
            f"(batch_size={input.size(1)})"
        )
    if min(sizes) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if sizes != sorted(sizes, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
            "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if sizes[0] > input.size(0):
        raise RuntimeError(
            f"Expected lengths to be at most the number of steps {input.size(0)}, "
            f"but got {sizes[0]}"
        )


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The inverse of :func:`pack_padded_sequence`: the padded batch and the lengths.

    Args:
        sequence: what to unpack.
        batch_first: whether the result is ``(N, T, *)`` instead of ``(T, N, *)``.
        padding_value: what to fill with.
        total_length: the number of steps of the result, at least the greatest length.

    Raises:
        ValueError: ``total_length`` is too small.
    """
    batch_sizes = _as_lengths(sequence.batch_sizes)
    steps = len(batch_sizes)
    if total_length is not None and total_length < steps:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in "
            f"input, but got total_length={total_length} and max sequence length being {steps}"
        )
    data = sequence.data
    count = batch_sizes[0]
    rows = []
    for part in data.split(batch_sizes):
        missing = count - part.size(0)
        if missing:
            fill = data.new_full((missing, *data.shape[1:]), padding_value)
            part = _VF.cat([part, fill])
        rows.append(part)
    extra = (total_length or steps) - steps
    if extra > 0:
        rows += [data.new_full((count, *data.shape[1:]), padding_value)] * extra
    padded: Tensor = _VF.stack(rows, 1 if batch_first else 0)
    lengths = _int_tensor([sum(size > i for size in batch_sizes) for i in range(count)])
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stacks sequences ``(L_i, *)``, filled up to the longest: ``(T, N, *)``.

    Args:
        sequences: tensors that differ in their first size only.
        batch_first: whether the result is ``(N, T, *)``.
        padding_value: what to fill with.
        padding_side: ``'right'`` or ``'left'``.

    Raises:
        RuntimeError: not an iterable, no sequences, or another side.
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, "
            f"but got arg of type: {type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    items = list(sequences)
    if not items:
        raise RuntimeError("received an empty list of sequences")
    longest = max(item.size(0) for item in items)
    rows = []
    for item in items:
        missing = longest - item.size(0)
        if missing:
            fill = item.new_full((missing, *item.shape[1:]), padding_value)
            item = _VF.cat([item, fill] if padding_side == "right" else [fill, item])
        rows.append(item)
    padded: Tensor = _VF.stack(rows, 0 if batch_first else 1)
    return padded


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The inverse of :func:`pad_sequence`: the sequences without their padding."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [rows[i, :length] for i, length in enumerate(_as_lengths(lengths))]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs a list of sequences ``(L_i, *)``; see :func:`pack_padded_sequence`."""
    lengths = [sequence.size(0) for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The inverse of :func:`pack_sequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
