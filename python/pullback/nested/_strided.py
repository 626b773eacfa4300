"""The nested tensor of the strided layout: components that may differ in every dimension."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from .. import _C
from .._tensor import Tensor
from .._utils import _rebuild_nested_strided, _rebuild_nested_tensor
from ..autograd import Function
from ._base import Nested
from ._level import is_below

_VF = _C._VariableFunctions


class StridedNestedTensor(Nested):
    """A batch of tensors of one number of dimensions, whose sizes may differ.

    Made by the functions of ``torch.nested`` with ``layout=torch.strided``.
    """

    _parts: tuple[Tensor, ...]

    @classmethod
    def _made(cls, parts: Sequence[Tensor], like: Tensor) -> StridedNestedTensor:
        """A nested tensor of these components without history, with the options of ``like``."""
        dims = like.dim() if not parts else parts[0].dim()
        longest = [max((one.size(at) for one in parts), default=0) for at in range(dims)]
        made: StridedNestedTensor = _C.TensorBase._make_wrapper_subclass(
            cls, (len(parts), *longest), dtype=like.dtype, device=like.device
        )
        made._parts = tuple(one.detach() for one in parts)
        return made

    @staticmethod
    def _call(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        from ._strided_rules import call

        return call(func, args, kwargs)

    @staticmethod
    def _op(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        from ._strided_rules import op

        return op(func, args, kwargs)

    def _copied(self) -> StridedNestedTensor:
        return self._made([one.clone() for one in self._parts], self)

    def _refuse(self, what: str) -> NoReturn:
        raise RuntimeError(
            f"Internal error: NestedTensorImpl doesn't support {what}. Please file an issue."
        )

    @property
    def shape(self) -> Any:
        """Refused: each component has its own."""
        self._refuse("sizes")

    def size(self, dim: int | None = None) -> Any:
        """The size of a dimension in which all components agree."""
        if dim is None:
            self._refuse("sizes")
        if not -self.dim() <= dim < self.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-self.dim()}, "
                f"{self.dim() - 1}], but got {dim})"
            )
        at = dim % self.dim()
        if at == 0:
            return len(self._parts)
        sizes = {one.size(at - 1) for one in self._parts}
        if len(sizes) != 1:
            raise RuntimeError(f"Given dimension {at} is irregular and does not have a size.")
        return sizes.pop()

    def stride(self, dim: int | None = None) -> Any:
        """Refused: each component has its own."""
        self._refuse("strides")

    def dim(self) -> int:
        """How many dimensions there are, that of the batch among them."""
        return self._parts[0].dim() + 1 if self._parts else 1

    ndim = property(dim)

    def numel(self) -> int:
        """How many elements all components have."""
        return sum(one.numel() for one in self._parts)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether every component is contiguous.

        Raises:
            RuntimeError: for a memory format of images.
        """
        if memory_format not in (None, _C.contiguous_format, _C.preserve_format):
            raise RuntimeError(f"is_contiguous(): a nested tensor has no {memory_format}")
        return all(one.is_contiguous() for one in self._parts)

    def data_ptr(self) -> int:
        """The address of the first component."""
        return self._parts[0].data_ptr() if self._parts else 0

    def _nested_tensor_size(self) -> Tensor:
        """The sizes of the components, a row for each."""
        return self._rows([list(one.size()) for one in self._parts])

    def _nested_tensor_strides(self) -> Tensor:
        """The strides of the components, a row for each."""
        return self._rows([list(one.stride()) for one in self._parts])

    def _rows(self, rows: list[list[int]]) -> Tensor:
        return _C.tensor(rows, dtype=_C.int64).reshape([len(rows), self.dim() - 1])

    def _nested_tensor_storage_offsets(self) -> Tensor:
        """The offset of each component: in their shared memory, else in ``values()``."""
        begins = [one.storage_offset() for one in self._parts]
        if len({one.untyped_storage().data_ptr() for one in self._parts}) > 1:
            ends = itertools.accumulate(one.numel() for one in self._parts)
            begins = [0, *ends][: len(self._parts)]
        return _C.tensor(begins, dtype=_C.int64)

    def values(self) -> Tensor:
        """All elements, one component after another, in one dimension, with their history."""
        parts = [one.reshape(-1) for one in unwrap(self)]
        return _VF.cat(parts) if parts else _VF.empty(0, dtype=self.dtype)

    def __len__(self) -> int:
        self._refuse("sizes")

    def __iter__(self) -> Iterator[Tensor]:
        return iter(unwrap(self))

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        shown = ",\n".join(
            "\n".join(f"  {line}" for line in repr(one).splitlines()) for one in self._parts
        )
        inside = f"\n{shown}\n" if shown else "\n\n"
        return f"nested_tensor([{inside}]{self._history()})"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        self._check_pickled()
        if self._parts and not self.requires_grad:
            return _rebuild_nested_tensor, _as_buffer(self._parts)
        # (PyTorch's form says neither that nor how many dimensions no components have.)
        empty = _VF.empty([0] * (self.dim() - 1), dtype=self.dtype)
        return _rebuild_nested_strided, (list(self._parts), empty, self.requires_grad)

    def tolist(self) -> Any:
        """Refused, as in PyTorch."""
        self._refuse("strides")

    def numpy(self, *, force: bool = False) -> Any:
        """Refused: the components are no one array."""
        self._refuse("strides")


def _as_buffer(parts: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """All elements, and of each component sizes, strides and where it begins."""
    buffer = _VF.cat([one.reshape(-1) for one in parts])
    whole = [_VF.empty(one.shape, device="meta").stride() for one in parts]
    starts = list(itertools.accumulate((one.numel() for one in parts[:-1]), initial=0))
    shape = (len(parts), parts[0].dim())
    sizes = _C.tensor([list(one.shape) for one in parts], dtype=_C.int64).reshape(shape)
    strides = _C.tensor([list(one) for one in whole], dtype=_C.int64).reshape(shape)
    return buffer, sizes, strides, _C.tensor(starts, dtype=_C.int64)


def from_buffer(
    buffer: Tensor, sizes: Tensor, strides: Tensor, starts: Tensor
) -> StridedNestedTensor:
    """The tensor of components that lie in a buffer, from a file."""
    rows = list(zip(sizes.tolist(), strides.tolist(), starts.tolist(), strict=True))
    parts = [buffer.as_strided(size, stride, start) for size, stride, start in rows]
    like = parts[0] if parts else buffer.new_empty([0] * sizes.size(-1))
    return StridedNestedTensor._made(parts, like)


def rebuild(parts: list[Tensor], like: Tensor, requires_grad: bool) -> StridedNestedTensor:
    """The tensor that was pickled."""
    return StridedNestedTensor._made(parts, like).requires_grad_(requires_grad)


class _Parts(Function):
    """The components; their gradients are one nested tensor."""

    @staticmethod
    def forward(source: StridedNestedTensor) -> tuple[Tensor, ...]:
        return tuple(one.detach() for one in source._parts)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return wrap(grads, grads[0])

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> tuple[Tensor, ...]:
        return tuple(unwrap(tangent))


class _NestedFrom(Function):
    """Components as one nested tensor; its gradient is unpacked again."""

    @staticmethod
    def forward(like: Tensor, *parts: Tensor) -> StridedNestedTensor:
        return StridedNestedTensor._made(parts, parts[0] if parts else like)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if not isinstance(grad, StridedNestedTensor):
            raise RuntimeError("the gradient of a nested tensor must be a nested tensor")
        return None, *unwrap(grad)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor) -> Tensor:
        return wrap(tangents, tangents[0])


def unwrap(source: StridedNestedTensor | Tensor) -> list[Tensor]:
    """The components as plain tensors, with the history that the nested tensor has."""
    assert isinstance(source, StridedNestedTensor)
    if is_below() or not source._parts:
        return list(source._parts)
    with _C.DisableTorchFunctionSubclass():
        return list(_Parts.apply(source))


def copied(parts: Sequence[Tensor]) -> StridedNestedTensor:
    """Copies of components, one after another in one piece of memory, with their history."""
    if not parts:
        return wrap([], _VF.empty(0))
    flat = _VF.cat([one.reshape(-1) for one in parts]).split([one.numel() for one in parts])
    pairs = zip(flat, parts, strict=True)
    return wrap([one.view(like.size()) for one, like in pairs], parts[0])


def wrap(parts: Sequence[Tensor], like: Tensor) -> StridedNestedTensor:
    """Components as one nested tensor, with the history that they have."""
    with _C.DisableTorchFunctionSubclass():
        if is_below() or not parts:
            return StridedNestedTensor._made(parts, parts[0] if parts else like)
        made: StridedNestedTensor = _NestedFrom.apply(_VF.empty(0, dtype=parts[0].dtype), *parts)
    return made
