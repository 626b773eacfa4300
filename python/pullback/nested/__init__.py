"""Nested tensors: batches of tensors of different sizes, without padding.

With ``layout=torch.jagged`` one dimension is ragged, and the components are packed into one plain
tensor; with ``layout=torch.strided`` the components may differ in every dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _C
from .._jagged_layout import jagged
from .._tensor import Tensor
from ._jagged import NestedTensor, check_structure, view_of, wrap
from ._strided import StridedNestedTensor
from ._strided import copied as _copied_strided
from ._strided import wrap as _wrap_strided
from ._structure import of_counts, of_offsets

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]

_VF = _C._VariableFunctions


def _chosen(layout: Any) -> Any:
    if layout is None:
        return _C.strided
    if layout is not _C.strided and layout is not jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return layout


def _ragged_of(parts: Sequence[Tensor]) -> int:
    """The dimension in which the components differ, counted with that of the batch."""
    first = parts[0].size()
    differ = [at for at in range(len(first)) if any(x.size(at) != first[at] for x in parts)]
    if not first or len(differ) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note "
            "that the jagged layout only allows for a single ragged dimension. For example: (B, *, "
            "D_0, D_1, ..., D_N), with ragged * dim."
        )
    return differ[0] + 1 if differ else 1


def _joined(parts: list[Tensor], layout: Any) -> Tensor:
    """A nested tensor of these components, with their history."""
    _check_dims(parts, layout)
    if len({(one.dtype, one.device) for one in parts}) > 1:
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must have the same dtype and "
            "device"
        )
    if layout is not jagged:
        return _copied_strided(parts)
    if not parts:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    ragged = _ragged_of(parts)
    counts = [one.size(ragged - 1) for one in parts]
    return wrap(_VF.cat(parts, ragged - 1), of_counts(counts), ragged)


def _check_dims(parts: Sequence[Tensor], layout: Any) -> None:
    dims = [one.dim() for one in parts]
    at = next((at for at in range(1, len(dims)) if dims[at] != dims[at - 1]), None)
    if at is None:
        return
    if layout is jagged:
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must have the same dim, got "
            f"{dims}"
        )
    raise RuntimeError(
        "All Tensors given to nested_tensor must have the same dimension. Found dimension "
        f"{dims[at]} for Tensor at index {at} and dimension {dims[at - 1]} for Tensor at index "
        f"{at - 1}."
    )


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A nested tensor with copies of the components, a leaf of the graph.

    Args:
        tensor_list: tensors, or what ``torch.tensor`` makes tensors of.
        dtype: of the elements; that of the first component unless given.
        layout: ``torch.strided`` or ``torch.jagged``; ``None`` stands for the former.
        device: of the elements.
        requires_grad: whether operations on the result are recorded.
        pin_memory: has no effect on a CPU.

    Raises:
        RuntimeError: for another layout, and components that do not go together.
        TypeError: for what is no list.

    Example:
        >>> import pullback as torch
        >>> x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
        >>> x.size(0)
        2
    """
    chosen = _chosen(layout)
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError(
            "Only lists of tensors, and what torch.tensor takes, are accepted in nested_tensor, "
            f"got {type(tensor_list).__name__}"
        )
    parts: list[Tensor] = []
    for one in tensor_list:
        made = one.detach() if isinstance(one, Tensor) else _C.tensor(one)
        wanted = dtype or (parts[0].dtype if parts else made.dtype)
        parts.append(made.to(device=device, dtype=wanted).clone())
    if not parts and chosen is not jagged:
        like = _VF.empty(0, dtype=dtype, device=device)
        return _wrap_strided([], like).requires_grad_(requires_grad)
    return _joined(parts, chosen).detach().requires_grad_(requires_grad)


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Tensor:
    """A nested tensor of these components, with their history: gradients flow to them.

    Args:
        ts: tensors; or one tensor, whose first dimension becomes that of the batch; or a nested
            tensor of the layout.
        dtype: of the elements.
        device: of the elements.
        layout: ``torch.strided`` or ``torch.jagged``; ``None`` stands for the former.

    Raises:
        TypeError: for what is no list of tensors.
        RuntimeError: for another layout, and components that do not go together.
    """
    chosen = _chosen(layout)
    if isinstance(ts, (NestedTensor, StridedNestedTensor)):
        if ts.layout is not chosen:
            raise RuntimeError("Converting between nested tensor layouts is not supported")
        return ts.to(device=device or ts.device, dtype=dtype or ts.dtype)
    if isinstance(ts, Tensor):
        return _of_rows(ts.to(device=device or ts.device, dtype=dtype or ts.dtype), chosen)
    if isinstance(ts, (list, tuple)) and all(isinstance(one, Tensor) for one in ts):
        parts = list(ts)
    else:
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of "
            "tensors"
        )
    if device is not None or dtype is not None:
        parts = [one.to(device=device or one.device, dtype=dtype or one.dtype) for one in parts]
    return _joined(parts, chosen)


def _of_rows(rows: Tensor, layout: Any) -> Tensor:
    """A nested tensor of the rows of a plain one: a view of it, if that is contiguous."""
    if rows.dim() < 2:
        raise RuntimeError(
            f"as_nested_tensor(): Expected tensor argument to have dim() > 1, got {rows.dim()}"
        )
    whole = rows.contiguous()
    if layout is not jagged:
        return _wrap_strided(list(whole.unbind(0)), whole)._showing(whole)
    structure = of_counts([whole.size(1)] * whole.size(0))
    return view_of(whole.flatten(0, 1), structure)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """A jagged tensor over packed values, which it does not copy.

    Args:
        values: the components one after another.
        offsets: where each component begins, and the end.
        lengths: how long each is. Without ``offsets`` they lie one right after another.
        jagged_dim: the ragged dimension, counted with that of the batch; 1 unless given.
        min_seqlen: a bound of the lengths from below, checked.
        max_seqlen: a bound from above, checked: what is padded is padded to it.

    Raises:
        RuntimeError: without offsets and lengths, or where these do not lie within the values.
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError(
                "nested_tensor_from_jagged(): At least one of offsets or lengths is required."
            )
        offsets = _VF.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        lengths = None
    ragged = 1 if jagged_dim is None else jagged_dim
    check_structure(values, offsets, lengths, ragged)
    structure = of_offsets(offsets, lengths)
    if min_seqlen is not None or max_seqlen is not None:
        structure = structure.bounded(min_seqlen, max_seqlen)
    return view_of(values, structure, ragged)


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = None) -> Tensor:
    """A nested tensor of parts of the rows of a padded tensor.

    With the jagged layout it shows the memory of ``tensor``; with the strided one it is of copies.

    Args:
        tensor: a padded tensor; the first dimension is that of the batch.
        dim: the dimension that becomes ragged; with the jagged layout, 1.
        start: where each row's part begins: a number, or a tensor with one for each.
        length: how long it is: a number, or a tensor with one for each.
        layout: ``torch.strided`` or ``torch.jagged``; ``None`` stands for the former.

    Raises:
        TypeError: for starts or lengths of another type.
        RuntimeError: for parts that do not lie within the rows.
    """
    chosen = _chosen(layout)
    batch = tensor.size(0)
    starts, counts = _numbers("start", start, batch), _numbers("length", length, batch)
    at = dim % tensor.dim()
    for first, count in zip(starts, counts, strict=True):
        if first < 0 or count < 0 or first + count > tensor.size(at):
            raise RuntimeError(
                f"narrow(): start ({first}) + length ({count}) exceeds dimension size "
                f"({tensor.size(at)})."
            )
    if chosen is not jagged:
        if at == 0:
            raise RuntimeError("narrow(): the batch dimension cannot become ragged")
        pieces = zip(tensor.unbind(0), starts, counts, strict=True)
        return _wrap_strided([one.narrow(at - 1, a, n) for one, a, n in pieces], _VF.empty(0))
    if at != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    width = tensor.size(1)
    begins = [row * width + first for row, first in enumerate(starts)]
    end = begins[-1] + counts[-1] if begins else 0
    values = tensor.flatten(0, 1)
    if [a + n for a, n in zip(begins, counts, strict=True)] == [*begins[1:], end][: len(begins)]:
        first = begins[0] if begins else 0
        return view_of(values.narrow(0, first, end - first), of_counts(counts))
    offsets = _C.tensor([*begins, end], dtype=_C.int64)
    structure = of_offsets(offsets, _C.tensor(counts, dtype=_C.int64))
    return view_of(values, structure.bounded(min(counts), max(counts)))


def _numbers(name: str, given: Any, batch: int) -> list[int]:
    if isinstance(given, int):
        return [given] * batch
    if not isinstance(given, Tensor):
        raise TypeError(f"narrow(): {name} must be an int or a Tensor, got {type(given).__name__}")
    if given.dim() == 0:
        return [int(given.item())] * batch
    if given.dim() != 1 or given.size(0) != batch:
        raise RuntimeError(f"narrow(): {name} needs one number for each of {batch} rows")
    return [int(one) for one in given.tolist()]


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """A jagged tensor of what a mask selects of each row, in the last dimension.

    Args:
        tensor: a plain tensor.
        mask: booleans that can be broadcast to its size.

    Raises:
        RuntimeError: for a tensor or mask that does not fit.
    """
    if tensor.layout is not _C.strided or isinstance(tensor, StridedNestedTensor):
        raise RuntimeError(
            f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}"
        )
    whole, fitted = _VF.broadcast_tensors([tensor, mask])
    if whole.dim() == 0:
        raise RuntimeError("torch.nested.masked_select requires a tensor of at least one dimension")
    counts = fitted.sum(-1).flatten().tolist()
    return wrap(whole.masked_select(fitted), of_counts(counts), 1)


def to_padded_tensor(
    input: Tensor,
    padding: float,
    output_size: Sequence[int] | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The components one below another, filled up with ``padding``.

    Args:
        input: a nested tensor.
        padding: what stands where a component has ended.
        output_size: a size to fill up to; the least unless given.
        out: not supported.

    Raises:
        RuntimeError: for a tensor that is not nested, and an ``output_size`` that is too small.
    """
    if out is not None:
        raise RuntimeError("to_padded_tensor(): out= is not supported")
    if isinstance(input, NestedTensor):
        from ._view import to_padded

        with _C.DisableTorchFunctionSubclass():
            return to_padded(input, padding, output_size)
    if not isinstance(input, StridedNestedTensor):
        raise RuntimeError("to_padded_tensor(): expected a nested tensor")
    from ._strided_rules import to_padded as strided_to_padded

    with _C.DisableTorchFunctionSubclass():
        return strided_to_padded(input, padding, output_size)
