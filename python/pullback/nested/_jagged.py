"""The tensor of the jagged layout, and the ways into its values and out of them.

A jagged tensor holds one plain tensor in which the components lie one after another. A call on it
is computed on that plain tensor, with its history (``_rules``): so it has every derivative that the
plain operation has. Two nodes of the graph lead from one to the other: ``_Values`` and
``_NestedFrom``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _C
from .._jagged_layout import jagged
from .._tensor import Tensor
from .._utils import _rebuild_njt
from ..autograd import Function
from ._base import Nested
from ._level import is_below
from ._structure import NestedSize, Structure, of_offsets

_VF = _C._VariableFunctions


class NestedTensor(Nested):
    """A batch of tensors that differ in the size of one dimension, packed into one.

    Made by the functions of ``torch.nested`` with ``layout=torch.jagged``.
    """

    _values: Tensor  # type: ignore[assignment]
    _structure: Structure
    _ragged_idx: int

    def __new__(
        cls,
        values: Tensor,
        offsets: Tensor,
        *,
        lengths: Tensor | None = None,
        requires_grad: bool = False,
        _ragged_idx: int = 1,
        _metadata_cache: dict[str, Any] | None = None,
    ) -> NestedTensor:
        """Packed values as a jagged tensor without history.

        Args:
            values: the components one after another.
            offsets: where each component begins, and the end.
            lengths: how long each is, where they do not lie one right after another.
            requires_grad: whether operations on the result are recorded.
            _ragged_idx: the ragged dimension, counted with that of the batch.
            _metadata_cache: bounds of the lengths, ``min_seqlen`` and ``max_seqlen``: numbers, or
                tensors of that size.

        Raises:
            RuntimeError: for offsets, lengths and bounds that do not fit.
        """
        check_structure(values, offsets, lengths, _ragged_idx)
        bounds = {name: _number_of(one) for name, one in (_metadata_cache or {}).items()}
        structure = of_offsets(offsets, lengths)
        if bounds:
            structure = structure.bounded(bounds.get("min_seqlen"), bounds.get("max_seqlen"))
        made = cls._made(values, structure, _ragged_idx)
        return made.requires_grad_() if requires_grad else made

    @classmethod
    def _made(cls, values: Tensor, structure: Structure, ragged: int) -> NestedTensor:
        """A nested tensor with these values, without history."""
        size = list(values.size())
        size[ragged - 1] = structure.longest
        made: NestedTensor = _C.TensorBase._make_wrapper_subclass(
            cls, (structure.batch, *size), dtype=values.dtype, device=values.device
        )
        made._values, made._structure, made._ragged_idx = values.detach(), structure, ragged
        return made

    @staticmethod
    def _call(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        from ._rules import call

        return call(func, args, kwargs)

    @staticmethod
    def _op(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        from ._rules import op

        return op(func, args, kwargs)

    def _copied(self) -> NestedTensor:
        return self._made(self._values.clone(), self._structure, self._ragged_idx)

    @property
    def shape(self) -> Any:
        """The sizes; the ragged one is a symbol."""
        sizes: list[Any] = [self._structure.batch, *self._values.size()]
        sizes[self._ragged_idx] = self._structure.size
        return NestedSize(sizes)

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or that of one dimension."""
        if dim is None:
            return self.shape
        if not -self.dim() <= dim < self.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-self.dim()}, "
                f"{self.dim() - 1}], but got {dim})"
            )
        return self.shape[dim]

    def dim(self) -> int:
        """How many dimensions there are, that of the batch among them."""
        return self._values.dim() + 1

    ndim = property(dim)

    def numel(self) -> int:
        """How many elements the values have."""
        return self._values.numel()

    def stride(self, dim: int | None = None) -> Any:
        """The strides of the values, and how far the components are apart, as a symbol."""
        strides = self._values.stride()
        apart: Any = self._structure.size * strides[self._ragged_idx - 1]
        for at in range(self._ragged_idx - 1):
            if strides[at] >= strides[self._ragged_idx - 1]:
                apart = apart * self._values.size(at)
        whole = (apart, *strides)
        return whole if dim is None else whole[dim]

    @property
    def layout(self) -> Any:
        """``torch.jagged``."""
        return jagged

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the values are, and the components lie one right after another."""
        if memory_format not in (None, _C.contiguous_format, _C.preserve_format):
            return False
        return self._structure.lengths is None and self._values.is_contiguous()

    # Attributes that programs read which look inside of PyTorch's nested tensors.

    @property
    def _offsets(self) -> Tensor:
        return self._structure.offsets

    @property
    def _lengths(self) -> Tensor | None:
        return self._structure.lengths

    @property
    def _size(self) -> Any:
        return self.shape

    @property
    def _strides(self) -> Any:
        return self.stride()

    @property
    def _max_seqlen(self) -> int:
        return self._structure.longest

    @property
    def _min_seqlen(self) -> int:
        return self._structure.shortest

    @property
    def _maybe_max_seqlen(self) -> int | None:
        return self._structure.cache.get("max_seqlen")

    @property
    def _maybe_min_seqlen(self) -> int | None:
        return self._structure.cache.get("min_seqlen")

    @property
    def _metadata_cache(self) -> dict[str, Tensor]:
        """The bounds of the lengths that are kept, each as a tensor of that size."""
        return {name: _VF.zeros([one, 0]) for name, one in self._structure.cache.items()}

    @property
    def _max_seqlen_tensor(self) -> Tensor | None:
        return self._metadata_cache.get("max_seqlen")

    @property
    def _min_seqlen_tensor(self) -> Tensor | None:
        return self._metadata_cache.get("min_seqlen")

    def _view_func(self, new_base: Tensor, *visitors: Any) -> Tensor:
        """The same view of another tensor, for a view of packed values."""
        if self._packed_in is None:
            raise NotImplementedError("_view_func(): only for views of packed values")
        values: Any = new_base
        if self._packed_in._is_view():
            values = self._packed_in._view_func(new_base)
        return view_of(values, self._structure, self._ragged_idx)

    _packed_in: Tensor | None = None

    def __tensor_flatten__(self) -> tuple[list[str], dict[str, Any]]:
        """The names of the tensors that it consists of, and what else it is made from."""
        names = ["_values", "_offsets", *(["_lengths"] if self._lengths is not None else [])]
        names += [f"_{name}_tensor" for name in self._structure.cache]
        return names, {"requires_grad": self.requires_grad, "ragged_idx": self._ragged_idx}

    @staticmethod
    def __tensor_unflatten__(
        inner_tensors: dict[str, Tensor], meta: dict[str, Any], outer_size: Any, outer_stride: Any
    ) -> NestedTensor:
        """The tensor that consists of these."""
        names = {f"_{name}_tensor": name for name in ("min_seqlen", "max_seqlen")}
        return NestedTensor(
            inner_tensors["_values"],
            inner_tensors["_offsets"],
            lengths=inner_tensors.get("_lengths"),
            requires_grad=meta["requires_grad"],
            _ragged_idx=meta["ragged_idx"],
            _metadata_cache={
                names[name]: one for name, one in inner_tensors.items() if name in names
            },
        )

    def values(self) -> Tensor:
        """The packed values, with their history."""
        return unwrap(self)

    def offsets(self) -> Tensor:
        """The offset of each component, and after them the end."""
        return self._structure.offsets

    def lengths(self) -> Tensor | None:
        """The length of each component, if they do not follow one another without gaps."""
        return self._structure.lengths

    def __len__(self) -> int:
        return self._structure.batch

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind())

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        sizes = ", ".join(map(repr, self.shape))
        return (
            f"NestedTensor(size=({sizes}), offsets={self._structure.offsets!r}{self._history()}, "
            f"contiguous={self.is_contiguous()})"
        )

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        self._check_pickled()
        parts = {
            "values": self._values,
            "offsets": self._structure.offsets,
            "lengths": self._structure.lengths,
            "_ragged_idx": self._ragged_idx,
            "_metadata_cache": self._metadata_cache,
            "requires_grad": self.requires_grad,
        }
        return _rebuild_njt, (parts,)

    def __setstate__(self, state: Any) -> None:
        """Ignores further state of PyTorch's files, all of which was given to the constructor."""

    def tolist(self) -> Any:
        """Refused: the lists would have different lengths."""
        raise RuntimeError(
            f".tolist() is not supported for tensor subclasses, got {type(self).__name__}"
        )

    def numpy(self, *, force: bool = False) -> Any:
        """Refused: an array has no ragged dimension."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")


def _number_of(bound: Any) -> int:
    return bound.size(0) if isinstance(bound, Tensor) else int(bound)


def rebuild(
    values: Tensor,
    offsets: Tensor,
    lengths: Tensor | None,
    ragged: int,
    requires_grad: bool,
    bounds: dict[str, Any] | None = None,
) -> NestedTensor:
    """The tensor that was pickled."""
    return NestedTensor(
        values,
        offsets,
        lengths=lengths,
        requires_grad=requires_grad,
        _ragged_idx=ragged,
        _metadata_cache=bounds,
    )


def check_structure(values: Tensor, offsets: Tensor, lengths: Tensor | None, ragged: int) -> None:
    """Refuses offsets and lengths that do not lie within the values."""
    if not 1 <= ragged <= values.dim():
        raise RuntimeError(f"ragged dimension {ragged} is not one of {values.dim()} packed ones")
    for name, one in (("offsets", offsets), ("lengths", lengths)):
        if one is not None and (one.dim() != 1 or one.is_floating_point() or one.is_complex()):
            raise RuntimeError(f"{name} must be a tensor of integers with one dimension")
    starts = offsets.tolist()
    if not starts:
        raise RuntimeError("offsets must have at least one element")
    counts = [end - start for start, end in itertools.pairwise(starts)]
    if lengths is not None:
        counts = lengths.tolist()
        if len(counts) != len(starts) - 1:
            raise RuntimeError(
                f"lengths must have one element fewer than offsets, got {len(counts)} and "
                f"{len(starts)}"
            )
    for start, count in zip(starts, counts, strict=False):
        if start < 0 or count < 0 or start + count > values.size(ragged - 1):
            raise RuntimeError(
                f"a component from {start} of length {count} does not lie within values of size "
                f"{values.size(ragged - 1)} in the ragged dimension"
            )


class _Values(Function):
    """The packed values; their gradient is nested again."""

    @staticmethod
    def forward(source: NestedTensor) -> Tensor:
        return source._values.detach()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.place = inputs[0]._structure, inputs[0]._ragged_idx

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return wrap(grad, *ctx.place)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        return unwrap(tangent) if isinstance(tangent, NestedTensor) else tangent


class _NestedFrom(Function):
    """Values as a jagged tensor; its gradient is unpacked again."""

    @staticmethod
    def forward(values: Tensor, structure: Structure, ragged: int) -> NestedTensor:
        return NestedTensor._made(values, structure, ragged)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.structure, ctx.ragged = inputs[1:]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        if not isinstance(grad, NestedTensor) or grad._structure != ctx.structure:
            raise RuntimeError("the gradient of a NestedTensor must have its ragged structure")
        return unwrap(grad), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        return wrap(tangent, ctx.structure, ctx.ragged)


def unwrap(source: NestedTensor) -> Tensor:
    """The values as a plain tensor, with the history that the jagged tensor has."""
    if is_below():
        return source._values
    with _C.DisableTorchFunctionSubclass():
        values: Tensor = _Values.apply(source)
    return values


def wrap(values: Tensor, structure: Structure, ragged: int = 1) -> NestedTensor:
    """Values as a jagged tensor, with the history that they have."""
    if is_below():
        return NestedTensor._made(values, structure, ragged)
    with _C.DisableTorchFunctionSubclass():
        made: NestedTensor = _NestedFrom.apply(values, structure, ragged)
    return made


def view_of(values: Tensor, structure: Structure, ragged: int = 1) -> NestedTensor:
    """Values as a jagged tensor that is a view of them."""
    made = wrap(values, structure, ragged)._showing(values)
    made._packed_in = values
    return made


class _Components(Function):
    """Values as they are; of their gradient, what belongs to no component is zero."""

    @staticmethod
    def forward(values: Tensor, places: Tensor, dim: int) -> Tensor:
        return values.detach()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.places, ctx.dim = inputs[1:]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        kept = grad.index_select(ctx.dim, ctx.places)
        return _VF.zeros_like(grad).index_copy(ctx.dim, ctx.places, kept), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        return tangent.view_as(tangent)


def wrap_shared(values: Tensor, structure: Structure, ragged: int) -> NestedTensor:
    """Values that were computed with plain tensors, too, which all places share.

    A gradient may have anything in the holes between components: the plain tensors get none of it.
    """
    if _has_gaps(values, structure, ragged) and values.requires_grad and not is_below():
        with _C.DisableTorchFunctionSubclass():
            values = _Components.apply(values, structure.packed_indices(), ragged - 1)
    return wrap(values, structure, ragged)


def _has_gaps(values: Tensor, structure: Structure, ragged: int) -> bool:
    if structure.lengths is not None or structure.starts[:1] not in ([], [0]):
        return True
    end = structure.starts[-1] + structure.counts[-1] if structure.batch else 0
    return end != values.size(ragged - 1)


def components(source: NestedTensor) -> list[Tensor]:
    """Views of the components, with their history."""
    values, at = unwrap(source), source._ragged_idx - 1
    places = zip(source._structure.starts, source._structure.counts, strict=True)
    return [values.narrow(at, start, count) for start, count in places]


def packed(source: NestedTensor) -> NestedTensor:
    """The same components without gaps between them: ``source`` itself if it has no gaps."""
    structure = source._structure
    if not _has_gaps(source._values, structure, source._ragged_idx):
        return source
    values = unwrap(source).index_select(source._ragged_idx - 1, structure.packed_indices())
    return wrap(values, structure.without_gaps(), source._ragged_idx)


__all__ = [
    "NestedTensor",
    "components",
    "packed",
    "rebuild",
    "unwrap",
    "view_of",
    "wrap",
    "wrap_shared",
]
